//! Many jobs that are put into one lane.

use super::{lane_mut, Lanes};
use crate::queue::lines::buckets::{BucketListener, NewEntry};
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
            line.insert_here(&NewEntry { time, slot, kind, window }, residents);
        }
        self.next_at_earliest = self.next_at_earliest.min(line.next_at_earliest());
    }
}
