//! How a job that stays gets another place: all that an operation does to one goes through here, but for the most frequent
//! hand-out (`lease.rs`).

use super::details::{Details, Rare};
use super::job::{Progress, Stage};
use super::policy::Policy;
use super::queue_record::count;
use super::slab::{self, Slot};
use super::tally::Tally;
use super::terms::Terms;
use super::time::Time;
use super::Queue;

/// What becomes of the reason that a worker gave for a job.
#[derive(Clone, Copy)]
pub(super) enum Reason<'r> {
    /// It is this one.
    Is(&'r [u8]),
    /// The job keeps the one it had, if any.
    Keep,
    None,
}

/// Why a job gets another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    Popped,
    Released,
    Touched,
    Buried,
    /// And is kept.
    Finished,
    Kicked,
}

/// Another place for a job, and why it gets it.
#[derive(Clone, Copy)]
pub(super) struct Shift<'r> {
    pub cause: Cause,
    pub now: Time,
    pub time: Time,
    pub progress: Progress,
    pub reason: Reason<'r>,
    /// Whether the job's tally counts the cause.
    pub is_counted: bool,
    /// `None`: it keeps the one it has.
    pub priority: Option<u8>,
}

impl<'r> Shift<'r> {
    pub fn new(cause: Cause, now: Time, time: Time, progress: &Progress) -> Shift<'r> {
        let progress = *progress;
        Shift { cause, now, time, progress, reason: Reason::Keep, is_counted: true, priority: None }
    }

    pub fn because(self, reason: Reason<'r>) -> Shift<'r> {
        Shift { reason, ..self }
    }

    /// What few jobs have, of one that had these details.
    fn rare_of(&self, details: Option<Details>) -> Option<Box<Rare>> {
        let has_timed_out = details.as_ref().is_some_and(|details| details.has_timed_out(self.now));
        let rare = details.and_then(Details::into_rare);
        let rare = match self.reason {
            Reason::Keep => rare,
            Reason::Is(reason) => Rare::with_reason(rare, Some(reason)),
            Reason::None => Rare::with_reason(rare, None),
        };
        let before = rare.as_ref().map_or(Tally::default(), |rare| rare.tally());
        let by_time = if has_timed_out { before.with_time_out() } else { before };
        let tally = if self.is_counted { self.cause.counted_in(by_time) } else { by_time };
        if tally == before {
            rare
        } else {
            Rare::with_tally(rare, tally)
        }
    }
}

impl Cause {
    pub(super) fn counted_in(self, tally: Tally) -> Tally {
        match self {
            Cause::Released => Tally { released: tally.released.saturating_add(1), ..tally },
            Cause::Buried => Tally { buried: tally.buried.saturating_add(1), ..tally },
            Cause::Kicked => Tally { kicked: tally.kicked.saturating_add(1), ..tally },
            Cause::Popped | Cause::Touched | Cause::Finished => tally,
        }
    }
}

impl<'r> Reason<'r> {
    pub fn given(reason: Option<&'r [u8]>) -> Reason<'r> {
        reason.map_or(Reason::Keep, Reason::Is)
    }
}

impl Queue {
    /// Gives a job another progress and time, and with them another place. All that an operation does to a job that
    /// stays goes through here.
    pub(super) fn shift(&mut self, slot: Slot, shift: &Shift) {
        let Shift { cause, time, progress, .. } = shift;
        let becomes_dead = progress.stage == Stage::Dead && !self.is_dead(slot);
        let rare = shift.rare_of(self.unplace(slot));
        if let Some(priority) = shift.priority {
            self.prioritise(slot, priority);
        }
        self.last_lease = self.last_lease.max(progress.lease.unwrap_or_default());
        self.place(slot, *time, progress, rare);
        match cause {
            // Counted by those who hand out, together.
            Cause::Popped => (),
            Cause::Released => count(&mut self.totals.released, 1),
            Cause::Buried => count(&mut self.totals.buried, 1),
            Cause::Finished => count(&mut self.totals.finished, 1),
            Cause::Kicked => count(&mut self.totals.kicked, 1),
            Cause::Touched => (),
        }
        count(&mut self.totals.died, usize::from(becomes_dead));
    }

    /// Gives another priority to a job that stands in no line, and has no details.
    fn prioritise(&mut self, slot: Slot, priority: u8) {
        let before = self.pool.get(slot).and_then(|job| job.policy()).unwrap_or(slab::NO_SLOT);
        let Some(terms) = self.policies.get(before).copied() else {
            return self.bug("a job's policy is kept as long as the job");
        };
        let policy = Policy { priority, ..terms.policy };
        let number = self.policies.take(&Terms { policy, ..terms });
        if let (Some(number), Some(job)) = (number, self.pool.get_mut(slot)) {
            job.set_policy(number);
            self.policies.release(before);
        }
    }
}
