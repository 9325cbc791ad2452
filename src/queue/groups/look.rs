//! Looking at groups.

use super::super::ids::Id;
use super::super::slab::Slot;
use super::super::time::Time;
use super::super::Queue;
use super::{Group, Groups};

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
    /// From when on one of its jobs may leave, in whichever priority, if it has any: by their times, its leases, its rate
    /// and a pause.
    pub opens: Option<Time>,
}

/// Places that a look at groups goes through for each group that it may show.
const PLACES_A_GROUP: usize = 16;

impl Groups {
    fn view<'q>(&'q self, group: &'q Group, now: Time) -> GroupView<'q> {
        let members = || group.members.iter().filter_map(|slot| self.members.get(*slot));
        let reserved = group.leases.after(now);
        let expired = group.expiring.up_to(now);
        let to_come = members().map(|member| member.line.after(now)).sum::<usize>() + group.dying.after(now);
        GroupView {
            name: Id::of(&group.name),
            // What has expired had come due before.
            ready: members().map(|member| member.line.up_to(now)).sum::<usize>().saturating_sub(expired),
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

impl Queue {
    /// Some groups, from this place on: those that have jobs or are paused; and where to go on, if there are more. Every
    /// group that stays is seen. O(1) for each group, O(its buckets) for one with many jobs.
    pub fn scan_groups(&self, from: Slot, at_most: usize) -> (Vec<GroupView<'_>>, Option<Slot>) {
        let Some(groups) = &self.groups else {
            return (Vec::new(), None);
        };
        let now = self.schedule.horizon();
        let (slots, next) = groups.shelf.slab.scan(from, at_most, at_most.saturating_mul(PLACES_A_GROUP));
        let slots = slots.into_iter().filter_map(|slot| groups.shelf.slab.get(slot));
        let seen = slots.filter(|group| group.jobs > 0 || group.paused_until > now);
        (seen.map(|group| groups.view(group, now)).collect(), next)
    }

    /// The group with this name, if it is remembered.
    pub fn group(&self, name: Id) -> Option<GroupView<'_>> {
        let groups = self.groups.as_ref()?;
        let group = groups.shelf.slab.get(groups.find(name)?)?;
        Some(groups.view(group, self.schedule.horizon()))
    }

    /// How many groups have jobs, or something else that is to be remembered.
    pub fn groups_len(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.len())
    }
}
