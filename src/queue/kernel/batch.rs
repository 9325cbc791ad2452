//! Consumers that wait until a delivery is worth it: until enough jobs are together, or the first of
//! them has waited for long enough.

use super::delivery::Mode;
use super::queue::Queue;
use crate::queue::value::time::{Millis, Time};

/// When a delivery is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Batch {
    /// When so many jobs may go …
    pub min: usize,
    /// … or when the job that is ready longest has been so for this time.
    pub linger: Millis,
}

impl Queue {
    /// Whether a delivery at `now` is worth it. Jobs that only their group holds back count as ready:
    /// to tell them apart, each group would have to be looked at. O(lanes).
    pub fn is_worth(&self, now: Time, mode: Mode, batch: Batch) -> bool {
        self.may_leave(now, mode) >= batch.min
            || self.lingers_until(now, batch.linger).is_some_and(|end| end <= now)
    }

    /// When the job that is ready longest at `now` will have been so for this time; `None` when no
    /// job is ready. O(lanes).
    pub fn lingers_until(&self, now: Time, linger: Millis) -> Option<Time> {
        Some(self.lanes.oldest_ready(now, &self.store)?.saturating_add(linger))
    }

    /// How many jobs are ready and not held back by a limit or a pause of the queue.
    fn may_leave(&self, now: Time, mode: Mode) -> usize {
        if self.limits.is_paused(now) {
            return 0;
        }
        let allowance = self.limits.allowance(now, mode == Mode::Lease, &self.lanes);
        self.lanes.ready_at(now).min(allowance.map_or(usize::MAX, |allowance| allowance.jobs))
    }
}
