//! The most frequent delivery and its end, at a third of the cost of the general ones.

use super::change::{Cause, Change, Former, Standing};
use super::job::Job;
use super::queue::Queue;
use super::store::PlainLease;
use crate::queue::lines::buckets::NewEntry;
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::lanes::MainLine;
use crate::queue::lines::placement::Placement;
use crate::queue::lines::window::Window;
use crate::queue::memory::impossible::{impossible, OrImpossible};
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
            impossible("a job to lease was not in its lane");
        }
        let placement = &Placement {
            main_line: MainLine::Lane(priority),
            time: end,
            kind: EntryKind::Leased,
            window,
            expiry: None,
            lease_end: None,
        };
        let after = Standing { time: end, progress: &progress, placement };
        let before = Former::default();
        self.record_change(&Change { slot, cause: Cause::Delivered, before, after: Some(after) });
        Some((end, body_bytes))
    }

    /// Removes a job that was leased so, and isn't kept, when its work is done; where no job waits
    /// for others. Has the effect of [`Queue::remove`]. `None`, with nothing done, for any other
    /// job.
    pub(in crate::queue) fn finish_plain(&mut self, slot: Slot) -> Option<Job> {
        if self.edges.is_some() {
            return None;
        }
        let (priority, bucket, lease) = self.store.end_plain_lease(slot)?;
        if !self.lanes.remove_from_lane(priority, slot, bucket, &mut self.store) {
            impossible("a leased job was not in its lane");
        }
        let before = Former { lease, ..Former::default() };
        let cause = Cause::Finished { result: None };
        self.record_change(&Change { slot, cause, before, after: None });
        let removed = self.store.remove(slot).or_impossible("a job to remove has its policy");
        removed.map(|(job, _)| job)
    }
}
