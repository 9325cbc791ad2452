//! Schedules: when a job comes back. The rule, where a job has got to in it, and what follows from
//! both. (What users call a schedule. In the core, `lines/lanes.rs` is where all jobs wait.)
//!
//! An *occurrence* is a time at which the job is due; it names a run. The occurrence behind it is
//! decided when this one is delivered for the first time, and stored as a time. So what the end of
//! a lease means follows from stored times. EVERY is arithmetic. CRON needs a [`Calendar`], whose
//! answers are part of the log.

use crate::queue::memory::impossible::impossible;
use serde::{Deserialize, Serialize};

use super::cron_words::is_same_expression;
use super::ids::Id;
use super::policy::splitmix64;
use super::record::read_where_possible;
use super::time::{Millis, Time};

/// How a job comes back. Kept once for all jobs that have the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recurrence {
    pub timing: Timing,
    pub misfire: Misfire,
    /// A job is ready up to so much later than it is due.
    pub jitter: Millis,
    /// After so many runs it ends; 0 is never.
    pub runs: u32,
    /// No occurrence is later.
    pub until: Option<Time>,
    /// An occurrence that isn't delivered this long after it came due is passed over; zero is no
    /// limit.
    pub late: Millis,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "StoredTiming", into = "StoredTiming")]
pub enum Timing {
    Every(Millis),
    Cron(Cron),
}

/// A period, or zero and an expression.
type StoredTiming = (Millis, Option<Cron>);

read_where_possible!(Timing, StoredTiming, |stored| match stored {
    (Millis::ZERO, cron) => cron.map(Timing::Cron),
    (period, None) => Some(Timing::Every(period)),
    (_, Some(_)) => None,
});

impl From<Timing> for StoredTiming {
    fn from(timing: Timing) -> StoredTiming {
        match timing {
            Timing::Every(period) => (period, None),
            Timing::Cron(cron) => (Millis::ZERO, Some(cron)),
        }
    }
}

/// A cron expression and the time zone by which it goes, in words: the core doesn't read them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "(Box<str>, Box<str>)")]
pub struct Cron {
    pub expression: Box<str>,
    /// Empty: UTC.
    pub zone: Box<str>,
}

read_where_possible!(Cron, (Box<str>, Box<str>), |(expression, zone): (Box<str>, Box<str>)| {
    let is_cron = (1..=CRON_BYTES_MAX).contains(&expression.len()) && zone.len() <= ZONE_BYTES_MAX;
    is_cron.then_some(Cron { expression, zone })
});

impl Timing {
    /// Whether this is the same, in whatever words.
    fn is_as(&self, other: &Timing) -> bool {
        match (self, other) {
            (Timing::Cron(one), Timing::Cron(other)) => {
                is_same_expression(&one.expression, &other.expression)
                    && is_same_zone(&one.zone, &other.zone)
            }
            (Timing::Every(_) | Timing::Cron(_), _) => self == other,
        }
    }
}

/// Commands give a zone one name. What was stored by earlier ones may be in small letters, or say
/// UTC.
fn is_same_zone(one: &str, other: &str) -> bool {
    let is_utc = |zone: &str| zone.is_empty() || zone.eq_ignore_ascii_case("UTC");
    one.eq_ignore_ascii_case(other) || is_utc(one) && is_utc(other)
}

/// No expression, and no zone, is longer.
pub const CRON_BYTES_MAX: usize = 256;
pub const ZONE_BYTES_MAX: usize = 64;

/// What becomes of occurrences that passed before somebody took the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Misfire {
    /// However many they are, they come as one.
    One,
    /// Each is made up for, one after the other.
    All,
}

impl Misfire {
    pub const ALL: [Misfire; 2] = [Misfire::One, Misfire::All];

    pub const fn name(self) -> &'static str {
        match self {
            Misfire::One => "ONE",
            Misfire::All => "ALL",
        }
    }

    /// By which it is stored: its place in [`Misfire::ALL`].
    pub const fn number(self) -> u8 {
        self as u8
    }
}

read_where_possible!(Misfire, u8, |number| Misfire::ALL.get(usize::from(number)).copied());

impl From<Misfire> for u8 {
    fn from(misfire: Misfire) -> u8 {
        misfire.number()
    }
}

/// Where a job has got to in its schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    /// EVERY counts from here.
    pub anchor: Time,
    /// The occurrence that is to come, is being worked on or waits for another attempt.
    pub occurrence: Time,
    /// The one behind it, or [`RunState::UNDECIDED`], or [`RunState::NO_NEXT`].
    pub(in crate::queue) next: Time,
    /// Runs that were begun.
    pub runs: u32,
    /// Occurrences that came as one with another, or were never delivered.
    pub missed: u32,
    /// Runs that were out of attempts.
    pub failed: u32,
}

/// A job's schedule, as it is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleView<'a> {
    pub rule: &'a Recurrence,
    pub run_state: RunState,
}

/// Who knows when the occurrences of a cron expression are.
pub trait Calendar {
    /// The first occurrence after `after`; and how many there are behind `from`, up to and with
    /// `after`.
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Following {
    /// `None`: there is none any more.
    pub next: Option<Time>,
    pub missed: u32,
}

/// Answers that were given before, in their order: those of a log. None, for queues without CRON.
#[derive(Clone, Copy, Debug, Default)]
pub struct Answers<'a>(pub &'a [Following]);

impl Calendar for Answers<'_> {
    /// A log that tells too little is one of another queue: the check shows it.
    fn following(&mut self, _: &Cron, _: Time, _: Time) -> Following {
        let Some((first, rest)) = self.0.split_first() else {
            return Following::default();
        };
        self.0 = rest;
        *first
    }
}

impl RunState {
    /// No occurrence is at the beginning of time, and none is at its end.
    const UNDECIDED: Time = Time::ZERO;
    const NO_NEXT: Time = Time::MAX;

    pub fn new(anchor: Time, occurrence: Time) -> RunState {
        RunState { anchor, occurrence, next: RunState::UNDECIDED, runs: 0, missed: 0, failed: 0 }
    }

    /// `None`: it isn't decided, or there is none.
    pub fn next(&self) -> Option<Time> {
        (self.is_decided() && self.next != RunState::NO_NEXT).then_some(self.next)
    }

    /// Whether the run has been delivered, so that what it missed is counted; or was kicked.
    pub fn is_decided(&self) -> bool {
        self.next != RunState::UNDECIDED
    }

    /// It is decided: this one, or none.
    pub fn with_next(self, next: Option<Time>) -> RunState {
        let next = next.filter(|next| *next != RunState::UNDECIDED).unwrap_or(RunState::NO_NEXT);
        RunState { next, ..self }
    }

    pub fn undecided(self) -> RunState {
        RunState { next: RunState::UNDECIDED, ..self }
    }

    /// The run is over; the next occurrence is to come, if there is one.
    pub fn armed(self) -> Option<RunState> {
        self.next().map(|next| RunState { occurrence: next, ..self.undecided() })
    }

    /// The same after a run that was out of attempts.
    pub fn failed(self) -> Option<RunState> {
        Some(RunState { failed: self.failed.saturating_add(1), ..self.armed()? })
    }

    /// The job runs now, besides; then it goes on as it would have.
    pub fn kicked(self, now: Time) -> RunState {
        let next = if self.is_decided() { self.next() } else { Some(self.occurrence) };
        RunState { occurrence: now, ..self.with_next(next) }
    }

    /// It begins anew, after it had ended.
    pub fn revived(self, now: Time) -> RunState {
        RunState { occurrence: now, ..self.undecided() }
    }
}

impl Recurrence {
    /// Whether the run with this number is the last one.
    pub fn ends_with(&self, run: u32) -> bool {
        self.runs != 0 && run >= self.runs
    }

    pub fn allows(&self, occurrence: Time) -> bool {
        // The end of time never comes.
        occurrence < Time::MAX && self.until.is_none_or(|until| occurrence <= until)
    }

    /// When the job is ready for an occurrence: later by a jitter that follows from both, so that
    /// everyone comes to the same and jobs of one time spread.
    pub fn ready_at(&self, id: Id, occurrence: Time) -> Time {
        if self.jitter.is_zero() {
            return occurrence;
        }
        let stirred = id.bytes().chunks(size_of::<u64>()).fold(
            splitmix64(occurrence.unix_ms()),
            |hash, chunk| {
                let word =
                    chunk.iter().rev().fold(0, |word, byte| word << u8::BITS | u64::from(*byte));
                splitmix64(hash ^ word)
            },
        );
        let range = u128::from(self.jitter.as_u64()) + 1;
        let jitter = (u128::from(stirred) * range) >> u64::BITS;
        Millis::new(jitter as u64).map_or(Time::MAX, |jitter| occurrence.saturating_add(jitter))
    }

    /// The first occurrence of a job that is added now, and the anchor of EVERY. `None`: there is
    /// none.
    pub fn first(
        &self,
        now: Time,
        starts: Starts,
        calendar: &mut dyn Calendar,
    ) -> Option<RunState> {
        let starts_at = starts.time(now);
        let (anchor, occurrence) = match &self.timing {
            Timing::Every(period) => {
                let anchor = starts_at.unwrap_or(now.saturating_add(*period));
                (anchor, anchor.max(now))
            }
            Timing::Cron(cron) => {
                let before =
                    starts_at.filter(|time| *time > now).map(|time| time.saturating_sub(one()));
                let after = before.unwrap_or(now);
                (Time::ZERO, calendar.following(cron, after, after).next?)
            }
        };
        (occurrence < Time::MAX && self.allows(occurrence))
            .then(|| RunState::new(anchor, occurrence))
    }

    /// As `first`, but not at once: what takes the place of another schedule.
    pub fn first_after(
        &self,
        now: Time,
        starts: Starts,
        calendar: &mut dyn Calendar,
    ) -> Option<RunState> {
        let run_state = self.first(now, starts, calendar)?;
        match &self.timing {
            Timing::Every(period) if run_state.occurrence <= now => {
                let next = every(run_state.anchor, *period, now, now).next?;
                (next < Time::MAX && self.allows(next))
                    .then_some(RunState { occurrence: next, ..run_state })
            }
            Timing::Every(_) | Timing::Cron(_) => Some(run_state),
        }
    }

    /// A run begins: what comes behind it is decided, unless it was before.
    pub fn begun(&self, run_state: RunState, now: Time, calendar: &mut dyn Calendar) -> RunState {
        let run_state = RunState { runs: run_state.runs.saturating_add(1), ..run_state };
        if self.ends_with(run_state.runs) {
            return run_state.with_next(None);
        }
        if run_state.is_decided() {
            return run_state;
        }
        let missed_until = match self.misfire {
            Misfire::One => now.min(self.until.unwrap_or(Time::MAX)).max(run_state.occurrence),
            Misfire::All => run_state.occurrence,
        };
        let Following { next, missed } = self.following(&run_state, missed_until, calendar);
        RunState { missed: run_state.missed.saturating_add(missed), ..run_state.with_next(next) }
    }

    /// The first occurrence after `after`, and how many lie between the present one and that.
    pub fn following(
        &self,
        run_state: &RunState,
        after: Time,
        calendar: &mut dyn Calendar,
    ) -> Following {
        let from = run_state.occurrence;
        let found = match &self.timing {
            Timing::Every(period) => every(run_state.anchor, *period, from, after),
            Timing::Cron(cron) => calendar.following(cron, from, after),
        };
        Following { next: found.next.filter(|next| self.allows(*next)), ..found }
    }

    /// Whether this is the same schedule, so that what is due stays: the times are. An EVERY that
    /// is to begin at a time has to keep the other's step.
    pub fn is_as(&self, other: &Recurrence, run_state: &RunState, starts: Starts) -> bool {
        let is_in_step = match (&self.timing, starts) {
            (Timing::Every(period), Starts::At(time)) if !period.is_zero() => {
                let apart = time
                    .since(run_state.anchor)
                    .as_u64()
                    .max(run_state.anchor.since(time).as_u64());
                apart % period.as_u64() == 0
            }
            _ => true,
        };
        self.timing.is_as(&other.timing) && is_in_step
    }
}

/// From when on a schedule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    /// EVERY: after one period. CRON: now.
    ByItself,
    In(Millis),
    At(Time),
}

/// How a job that is added is to come back.
#[derive(Clone, Debug)]
pub struct NewSchedule {
    pub rule: Recurrence,
    pub starts: Starts,
}

impl Starts {
    fn time(self, now: Time) -> Option<Time> {
        match self {
            Starts::ByItself => None,
            Starts::In(delay) => Some(now.saturating_add(delay)),
            Starts::At(time) => Some(time),
        }
    }
}

fn one() -> Millis {
    Millis::new(1).unwrap_or_default()
}

/// The times `anchor + n × period`: the first one after `after`, and how many are behind `from` up
/// to it.
fn every(anchor: Time, period: Millis, from: Time, after: Time) -> Following {
    let Some(periods) = after.since(anchor).as_u64().checked_div(period.as_u64()) else {
        impossible("a period is at least a millisecond");
        return Following::default();
    };
    let up_to = |time: Time| {
        let periods = time.since(anchor).as_u64().checked_div(period.as_u64()).unwrap_or_default();
        if time < anchor {
            0
        } else {
            periods + 1
        }
    };
    let next = if after < anchor {
        Some(anchor)
    } else {
        let ahead = (periods + 1).checked_mul(period.as_u64()).and_then(Millis::new);
        ahead.and_then(|ahead| anchor.checked_add(ahead))
    };
    let missed = up_to(after).saturating_sub(up_to(from));
    Following { next, missed: u32::try_from(missed).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests;
