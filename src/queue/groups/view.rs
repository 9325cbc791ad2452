//! Reading groups.

use super::group::{Group, Groups};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::time::Time;

/// A group, as of the last [`Queue::advance`](crate::queue::Queue::advance).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView<'q> {
    pub name: Id<'q>,
    /// Includes jobs that a limit or a pause holds back.
    pub ready: usize,
    pub reserved: usize,
    pub delayed: usize,
    /// `None` if the group isn't paused.
    pub paused_until: Option<Time>,
    /// From when on one of its jobs may leave, in any priority, if it has jobs: by their times, its
    /// leases, its rate and a pause.
    pub opens: Option<Time>,
}

/// A scan of groups looks at up to this many slots for each group that it may return.
const PLACES_A_GROUP: usize = 16;

impl Groups {
    /// Some groups, from the slot `from` on: those that have jobs or are paused. Also returns where
    /// to continue, if there are more.
    pub fn scan(
        &self,
        from: Slot,
        at_most: usize,
        now: Time,
    ) -> (Vec<GroupView<'_>>, Option<Slot>) {
        let (slots, next) =
            self.table.slab.scan(from, at_most, at_most.saturating_mul(PLACES_A_GROUP));
        let slots = slots.into_iter().filter_map(|slot| self.table.slab.get(slot));
        let seen = slots.filter(|group| group.jobs > 0 || group.paused_until > now);
        (seen.map(|group| self.view(group, now)).collect(), next)
    }

    /// The group with this name, if the queue remembers one.
    pub fn look_up(&self, name: Id, now: Time) -> Option<GroupView<'_>> {
        let group = self.table.slab.get(self.find(name)?)?;
        Some(self.view(group, now))
    }

    fn view<'q>(&'q self, group: &'q Group, now: Time) -> GroupView<'q> {
        let members = || group.members.iter().filter_map(|slot| self.members.get(*slot));
        let reserved = group.leases.after(now);
        let expired = group.expiring.up_to(now);
        let to_come =
            members().map(|member| member.line.after(now)).sum::<usize>() + group.dying.after(now);
        GroupView {
            name: Id::of(&group.name),
            // A job that has expired had come due before.
            ready: members()
                .map(|member| member.line.up_to(now))
                .sum::<usize>()
                .saturating_sub(expired),
            reserved,
            // A reserved job's next time is after now.
            delayed: to_come.saturating_sub(reserved),
            paused_until: Some(group.paused_until).filter(|until| *until > now),
            opens: members()
                .filter_map(|member| member.line.first_time())
                .min()
                .map(|time| time.max(group.indexed_opens)),
        }
    }
}
