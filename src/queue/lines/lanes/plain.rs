//! Jobs that are in a lane and in no other line: most are.

use super::{lane_mut, Lanes};
use crate::queue::lines::buckets::{BucketListener, BucketNumber, NewEntry};
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::window::Window;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

impl Lanes {
    /// Inserts jobs that wait without a group, never expire, and have this priority, in this order.
    pub fn insert_waiting(
        &mut self,
        priority: u8,
        jobs: impl Iterator<Item = (Time, Slot)>,
        residents: &mut impl BucketListener,
    ) {
        let (kind, window) = (EntryKind::Waiting, Window::ALWAYS);
        let line = lane_mut(&mut self.lanes, &mut self.recent_lane, priority);
        line.advance(self.horizon);
        for (time, slot) in jobs {
            line.insert(&NewEntry { time, slot, kind, window }, residents);
        }
        self.next_at_earliest = self.next_at_earliest.min(line.next_at_earliest());
    }

    /// Gives a job that stays in its lane another time and kind. Returns whether it was there.
    pub fn move_in_lane(
        &mut self,
        priority: u8,
        bucket: BucketNumber,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) -> bool {
        self.wake_by(new_entry.time);
        let line = lane_mut(&mut self.lanes, &mut self.recent_lane, priority);
        line.advance(self.horizon);
        let removed = line.remove(new_entry.slot, bucket, jobs);
        line.insert(new_entry, jobs);
        removed.is_some()
    }

    /// As [`Lanes::remove`], from a lane.
    #[inline]
    pub fn remove_from_lane(
        &mut self,
        priority: u8,
        slot: Slot,
        bucket: BucketNumber,
        jobs: &mut impl BucketListener,
    ) -> bool {
        let line = lane_mut(&mut self.lanes, &mut self.recent_lane, priority);
        line.advance(self.horizon);
        line.remove(slot, bucket, jobs).is_some()
    }
}
