//! Reading groups.

use crate::queue::groups::view::GroupView;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;

impl Queue {
    /// Some groups, from the slot `from` on: those that have jobs or are paused. Also returns where
    /// to continue, if there are more. Every group that stays in the queue is returned by one of
    /// the calls. O(1) for each group; O(its buckets) for a group with many jobs.
    pub fn scan_groups(&self, from: Slot, at_most: usize) -> (Vec<GroupView<'_>>, Option<Slot>) {
        let groups = self.groups.as_ref();
        groups.map_or((Vec::new(), None), |groups| groups.scan(from, at_most, self.horizon()))
    }

    /// The group with this name, if the queue remembers one.
    pub fn group(&self, name: Id) -> Option<GroupView<'_>> {
        self.groups.as_ref()?.look_up(name, self.horizon())
    }
}
