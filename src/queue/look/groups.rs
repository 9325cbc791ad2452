//! Looking at groups.

use crate::queue::groups::view::GroupView;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;

impl Queue {
    /// Some groups, from this place on: those that have jobs or are paused; and where to go on, if
    /// there are more. Every group that stays is seen. O(1) for each group, O(its buckets) for one
    /// with many jobs.
    pub fn scan_groups(&self, from: Slot, at_most: usize) -> (Vec<GroupView<'_>>, Option<Slot>) {
        let groups = self.groups.as_ref();
        groups.map_or((Vec::new(), None), |groups| groups.scan(from, at_most, self.horizon()))
    }

    /// The group with this name, if it is remembered.
    pub fn group(&self, name: Id) -> Option<GroupView<'_>> {
        self.groups.as_ref()?.look_up(name, self.horizon())
    }

    /// How many groups have jobs, or something else that is to be remembered.
    pub fn groups_len(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.len())
    }
}
