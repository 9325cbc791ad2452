//! The most frequent hand-out of all, at a third of what the general one costs.

use super::ledger::Ledger;
use super::queue::Queue;
use super::store::Simply;
use crate::queue::lines::buckets::Arrival;
use crate::queue::lines::entry::Hold;
use crate::queue::lines::window::Window;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Lease;
use crate::queue::value::time::{Millis, Time};

impl Queue {
    /// Leases a job that nobody has had, doesn't expire, has no group and will be ready when its
    /// lease runs out: it stays in its lane. Does what [`Queue::shift`] would; `None`, and nothing
    /// is done, when the job isn't such a one. Otherwise the end of the lease, and how long the
    /// body is.
    pub(in crate::queue) fn lease_simply(
        &mut self,
        slot: Slot,
        lease: Lease,
        now: Time,
        ttr: Option<Millis>,
    ) -> Option<(Time, u32)> {
        let Simply { priority, bucket, progress, end, body_bytes } =
            self.store.lease_simply(slot, lease, now, ttr)?;
        let window = Window { opens: end, closes: Time::MAX };
        let arrival = Arrival { time: end, slot, hold: Hold::Leased, window };
        if !self.lanes.shift_in_lane(priority, bucket, &arrival, &mut self.store) {
            self.ledger.bug("a job that nobody has had stands in its lane");
        }
        let horizon = self.lanes.horizon();
        self.ledger.tell(end <= horizon, false);
        if end > horizon {
            self.ledger.wake_by(end);
        }
        self.ledger.mix().place(end, &progress);
        self.ledger.raise_lease(lease);
        Some((end, body_bytes))
    }

    /// The lease that a pop at this time would give, at least.
    pub fn lease_at(now: Time) -> Lease {
        Ledger::lease_at(now)
    }
}
