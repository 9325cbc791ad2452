//! How much happened in the last minute: what the totals were at the beginning of each of its parts in which anything
//! was asked of the queue. That is neither part of the value nor of the log: a replica and whoever loads an AOF come to it by
//! the times of what they repeat; a queue that was loaded from a file counts from then on.

use super::mover::Mover;
use super::queue_record::Totals;
use super::time::{Millis, Time};

/// A minute has so many parts, of so many milliseconds.
const PARTS: usize = 6;
const PART_MS: u64 = 10_000;
const MINUTE_MS: u64 = PARTS as u64 * PART_MS;

/// What happened in a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Happened {
    /// Or put in another's place.
    pub added: u64,
    pub popped: u64,
    pub finished: u64,
    /// Attempts that came to nothing: released, timed out or buried.
    pub failed: u64,
}

#[derive(Clone, Default)]
pub(super) struct Recent {
    /// The part that has begun last.
    since: Time,
    until: Time,
    /// Nothing is known of what was before.
    counts_since: Time,
    /// The parts of the last minute that have begun, the latest one last.
    begun: Option<Box<[Begun; PARTS]>>,
}

#[derive(Clone, Copy, Default)]
struct Begun {
    since: Time,
    so_far: Happened,
}

impl Happened {
    fn so_far(totals: &Totals) -> Happened {
        Happened {
            added: totals.added.saturating_add(totals.replaced),
            popped: totals.popped,
            finished: totals.finished,
            failed: totals.released.saturating_add(totals.timed_out).saturating_add(totals.buried),
        }
    }

    /// What is given back was handed out, and is no longer in the totals.
    fn since(self, before: Happened) -> Happened {
        Happened {
            added: self.added.saturating_sub(before.added),
            popped: self.popped.saturating_sub(before.popped),
            finished: self.finished.saturating_sub(before.finished),
            failed: self.failed.saturating_sub(before.failed),
        }
    }

    /// As many as in a minute, where it was in so long.
    fn in_a_minute(self, span: Millis) -> Happened {
        let scaled = |count: u64| {
            let scaled = u128::from(count) * u128::from(MINUTE_MS) / u128::from(span.as_u64().max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        Happened {
            added: scaled(self.added),
            popped: scaled(self.popped),
            finished: scaled(self.finished),
            failed: scaled(self.failed),
        }
    }
}

impl Recent {
    /// Something is about to happen at this time, or somebody looks. The totals are those of before.
    #[inline]
    pub fn pass(&mut self, now: Time, totals: &Totals) {
        if !(self.since..self.until).contains(&now) {
            self.begin(now, totals);
        }
    }

    #[cold]
    fn begin(&mut self, now: Time, totals: &Totals) {
        // A clock that was set back: what was counted is of a time that is to come.
        if self.begun.is_none() || now < self.since {
            *self = Recent { counts_since: now, ..Recent::default() };
        }
        self.since = Time::new(now.unix_ms() / PART_MS * PART_MS).unwrap_or(now);
        self.until = Millis::new(PART_MS).map_or(Time::MAX, |part| self.since.saturating_add(part));
        let begun = self.begun.get_or_insert_default();
        begun.rotate_left(1);
        if let Some(last) = begun.last_mut() {
            *last = Begun { since: self.since, so_far: Happened::so_far(totals) };
        }
    }

    /// What happened in the minute up to `now`, by the parts of it that have begun. Where less than a minute is known, as much
    /// as it would be in one.
    pub fn in_the_last_minute(&self, now: Time, totals: &Totals) -> Happened {
        let first = (now.unix_ms() / PART_MS + 1).saturating_sub(PARTS as u64) * PART_MS;
        let first = Time::new(first).unwrap_or_default().max(self.counts_since);
        let mut parts = self.begun.iter().flat_map(|begun| begun.iter());
        let is_in_it = |part: &&Begun| part.since.unix_ms().saturating_add(PART_MS) > first.unix_ms();
        let Some(before) = parts.find(|part| is_in_it(part) && part.since > Time::ZERO) else {
            return Happened::default();
        };
        let span = now.since(first).max(Millis::new(1_000).unwrap_or_default());
        Happened::so_far(totals).since(before.so_far).in_a_minute(span)
    }

    pub fn relocate(&mut self, mover: &mut impl Mover) {
        self.begun.iter_mut().for_each(|begun| mover.boxed(begun));
    }

    pub fn memory(&self) -> usize {
        self.begun.as_ref().map_or(0, |begun| size_of_val(&**begun))
    }
}
