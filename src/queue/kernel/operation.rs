//! The one way to change a queue. An operation is carried out under its circumstances: the time,
//! and whatever else what comes of it depends on that isn't in the queue. A log of both makes the
//! same queue anywhere: that is what replicas and the AOF get.

use super::log_state::{Checksum, Circumstances, LogState};
use super::queue::Queue;
use crate::queue::value::ids::Lease;
use crate::queue::value::recurrence::{Answers, Calendar};
use crate::queue::value::time::Time;

/// What one can do to a queue.
pub trait Operation {
    type Outcome: Changed;

    /// It takes over what came to be elsewhere, as it is.
    const IS_RECORD: bool = false;

    /// Reads no clock and no config: what comes of it follows from the queue, the operation and
    /// `now`; and, where a job with CRON comes back, from what the calendar says, which is told
    /// with it.
    #[doc(hidden)]
    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Self::Outcome;
}

/// What came of an operation.
pub trait Changed {
    /// Whether the queue is another one now. Otherwise nobody has to be told.
    fn has_changed(&self) -> bool;
}

/// This was done to so many jobs, or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done(pub usize);

impl Changed for Done {
    fn has_changed(&self) -> bool {
        self.0 > 0
    }
}

impl Queue {
    /// Carries an operation out, where no CRON has to be asked for.
    pub fn apply<O: Operation>(
        &mut self,
        circumstances: &Circumstances,
        operation: &O,
    ) -> O::Outcome {
        self.apply_by(circumstances, operation, &mut Answers::default())
    }

    /// Carries an operation out. When that changes nothing, the queue is as it was, circumstances
    /// and all.
    #[inline]
    pub fn apply_by<O: Operation>(
        &mut self,
        circumstances: &Circumstances,
        operation: &O,
        calendar: &mut dyn Calendar,
    ) -> O::Outcome {
        self.store.free_removed();
        let before = self.ledger.begin(circumstances);
        self.reindex_if_clock_went_back(circumstances.now);
        let outcome = operation.run(self, circumstances.now, calendar);
        if outcome.has_changed() {
            if !O::IS_RECORD {
                self.look_after_groups(circumstances.now);
            }
        } else {
            self.ledger.roll_back(&before);
        }
        outcome
    }

    pub fn log_state(&self) -> &LogState {
        self.ledger.log_state()
    }

    /// The circumstances that the log told last, which are those of an entry that tells none.
    pub fn circumstances(&self) -> Circumstances {
        let LogState { clock, defaults, .. } = *self.log_state();
        Circumstances { now: clock, defaults, lease_floor: Lease::default() }
    }

    /// Somebody else came to this check at this point of the log. False when it is another one
    /// here: the queues have diverged. From here on, it is theirs.
    pub fn compare_checksum(&mut self, theirs: Checksum) -> bool {
        std::mem::replace(self.ledger.mix(), theirs) == theirs
    }
}
