//! The most frequent delivery, at a third of the cost of the general one.

use super::queue::Queue;
use super::store::PlainLease;
use crate::queue::lines::buckets::NewEntry;
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::window::Window;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Lease;
use crate::queue::value::time::{Millis, Time};

impl Queue {
    /// Leases a job that was never delivered, doesn't expire, has no group, and will be ready when
    /// its lease runs out: it stays in its lane. Has the effect of [`Queue::transition`]. Returns
    /// the end of the lease and the length of the body; `None`, with nothing done, for any other
    /// job.
    pub(in crate::queue) fn lease_plain(
        &mut self,
        slot: Slot,
        lease: Lease,
        now: Time,
        ttr: Option<Millis>,
    ) -> Option<(Time, u32)> {
        let PlainLease { priority, bucket, progress, end, body_bytes } =
            self.store.lease_plain(slot, lease, now, ttr)?;
        let window = Window { opens: end, closes: Time::MAX };
        let new_entry = NewEntry { time: end, slot, kind: EntryKind::Leased, window };
        if !self.lanes.move_in_lane(priority, bucket, &new_entry, &mut self.store) {
            self.ledger.bug("a job to lease was not in its lane");
        }
        let horizon = self.lanes.horizon();
        self.ledger.add_events(end <= horizon, false);
        if end > horizon {
            self.ledger.wake_by(end);
        }
        self.ledger.checksum_mut().placement(end, &progress);
        self.ledger.raise_lease(lease);
        Some((end, body_bytes))
    }
}
