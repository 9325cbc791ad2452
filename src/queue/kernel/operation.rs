//! The one way to change a queue. An operation is applied under its circumstances: the time, the
//! defaults and the lease floor, which are all inputs that are not in the queue. A log of both
//! gives replicas and the AOF the same queue.

use super::delivery::Deliveries;
use super::log_state::{Checksum, Circumstances, LogState};
use super::queue::Queue;
use crate::queue::edges::pending::SettleBudget;
use crate::queue::value::ids::Lease;
use crate::queue::value::recurrence::{Answers, Calendar};
use crate::queue::value::time::Time;

/// A change that can be applied to a queue.
pub trait Operation {
    type Outcome: Changed;

    /// The operation restores a saved record.
    const IS_RECORD: bool = false;

    /// It gives lease numbers: its circumstances say up to where those belong to others.
    const GIVES_LEASES: bool = false;

    /// How much of what follows for jobs that wait for others it carries out.
    #[doc(hidden)]
    const CARRIES_OUT: CarriesOut = CarriesOut::All;

    /// Reads no clock and no config. The outcome depends only on the queue, the operation and
    /// `now`. For a job with CRON it also depends on the calendar's answers, which are logged with
    /// the entry.
    #[doc(hidden)]
    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Self::Outcome;
}

/// How much an operation carries out of what follows for jobs that wait for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriesOut {
    /// All that follows from the end of one job; nothing where more was pending before: of a thousand
    /// commands in a pipeline, each would carry out its part in the same turn.
    All,
    /// A slice.
    OneSlice,
}

/// The outcome of an operation.
pub trait Changed {
    /// Whether the operation changed the queue. If not, it isn't logged.
    fn has_changed(&self) -> bool;

    /// The jobs that it delivered, if it is one that does.
    fn deliveries(&self) -> Option<&Deliveries> {
        None
    }
}

/// This was done to so many jobs, or groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affected(pub usize);

impl Changed for Affected {
    fn has_changed(&self) -> bool {
        self.0 > 0
    }
}

impl Queue {
    /// Applies an operation that needs no calendar.
    pub fn apply<O: Operation>(
        &mut self,
        circumstances: &Circumstances,
        operation: &O,
    ) -> O::Outcome {
        self.apply_by(circumstances, operation, &mut Answers::default())
    }

    /// Applies an operation. If it changes nothing, the queue is exactly as before, circumstances
    /// included.
    #[inline(always)]
    pub fn apply_by<O: Operation>(
        &mut self,
        circumstances: &Circumstances,
        operation: &O,
        calendar: &mut dyn Calendar,
    ) -> O::Outcome {
        self.store.removed_mut().free();
        let before = self.ledger.begin(circumstances);
        self.reindex_if_clock_went_back(circumstances.now);
        let had_pending = self.has_pending();
        let outcome = operation.run(self, circumstances.now, calendar);
        if !outcome.has_changed() {
            self.ledger.roll_back(&before);
        } else if !O::IS_RECORD {
            self.follow_up(circumstances.now, O::CARRIES_OUT, had_pending);
        }
        outcome
    }

    /// After a change: what it means for jobs that wait for others, and for groups.
    #[inline(always)]
    pub(in crate::queue) fn follow_up(
        &mut self,
        now: Time,
        carries_out: CarriesOut,
        had_pending: bool,
    ) {
        if self.edges.is_some() || self.groups.is_some() {
            let SettleBudget { of_operation, of_slice } = self.settle_budget;
            let budget = match carries_out {
                CarriesOut::OneSlice => of_slice,
                CarriesOut::All if had_pending => 0,
                CarriesOut::All => of_operation,
            };
            self.carry_out_rest(now, budget);
        }
    }

    #[inline(never)]
    fn carry_out_rest(&mut self, now: Time, budget: u32) {
        self.carry_out(now, budget);
        self.check_idle_groups(now);
    }

    pub fn log_state(&self) -> &LogState {
        self.ledger.log_state()
    }

    /// The circumstances that the log gave last. An entry that gives none uses these.
    pub fn circumstances(&self) -> Circumstances {
        let LogState { clock, defaults, .. } = *self.log_state();
        Circumstances { now: clock, defaults, lease_floor: Lease::default() }
    }

    /// Compares the primary's checksum with ours and adopts it. False: the queues have diverged.
    pub fn compare_checksum(&mut self, theirs: Checksum) -> bool {
        std::mem::replace(self.ledger.checksum_mut(), theirs) == theirs
    }
}
