//! Looking at groups.

use super::group::{Group, Groups};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::time::Time;

/// A group, as of the last [`Queue::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupView<'q> {
    pub name: Id<'q>,
    /// Also those that are held back.
    pub ready: usize,
    pub reserved: usize,
    pub delayed: usize,
    /// If that is to come.
    pub paused_until: Option<Time>,
    /// From when on one of its jobs may leave, in whichever priority, if it has any: by their
    /// times, its leases, its rate and a pause.
    pub opens: Option<Time>,
}

/// Places that a look at groups goes through for each group that it may show.
const PLACES_A_GROUP: usize = 16;

impl Groups {
    /// Some groups, from this place on: those that have jobs or are paused; and where to go on, if
    /// there are more.
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

    /// The group with this name, if it is remembered.
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
            // What has expired had come due before.
            ready: members()
                .map(|member| member.line.up_to(now))
                .sum::<usize>()
                .saturating_sub(expired),
            reserved,
            // What is reserved has its next time to come.
            delayed: to_come.saturating_sub(reserved),
            paused_until: Some(group.paused_until).filter(|until| *until > now),
            opens: members()
                .filter_map(|member| member.line.first_time())
                .min()
                .map(|time| time.max(group.told_opens)),
        }
    }
}
