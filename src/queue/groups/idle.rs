//! Groups without jobs. Such a group is kept while its rate or a pause still counts. Each operation
//! looks at some of them, so that every server with the same log keeps the same ones.

use crate::queue::memory::impossible::OrImpossible;
use std::ops::Bound;

use super::group::{GroupNumber, Groups};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::rate::{Rate, Tat};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// Each operation looks at this many idle groups, and at two for each group that it left without
/// jobs.
const LOOKED_AT: usize = 2;

/// One FORGET of the timer looks at this many idle groups. More than may be paused, so that it also
/// reaches others. Replay depends on it: it must not change.
const LOOKED_AT_BY_TIMER: usize = 2 * PAUSED_GROUPS_MAX;

/// How many groups without jobs may be paused. They take memory, and a pause isn't refused when
/// memory is full. Replay depends on it: it must not change.
pub const PAUSED_GROUPS_MAX: usize = 1_000;

impl Groups {
    /// Adds a group without jobs to the idle set.
    pub(super) fn add_idle(&mut self, number: GroupNumber) {
        if let Some(group) = self.table.slab.get(number) {
            self.idle.insert((group.serial, number));
            if group.paused_until > Time::ZERO {
                self.paused.insert((group.paused_until, number));
            }
        }
    }

    /// Removes the group from the idle set. Returns whether it was in it.
    pub(super) fn take_idle(&mut self, number: GroupNumber) -> bool {
        self.table.slab.get(number).is_some_and(|group| {
            self.paused.remove(&(group.paused_until, number));
            self.idle.remove(&(group.serial, number))
        })
    }

    /// Whether this group may be paused.
    pub fn may_be_paused(&self, name: Id, now: Time) -> bool {
        let group = self.find(name).and_then(|number| self.table.slab.get(number));
        let is_counted = group.is_some_and(|group| group.jobs > 0 || group.paused_until > now);
        let last = self.paused.iter().nth_back(PAUSED_GROUPS_MAX - 1);
        is_counted || last.is_none_or(|(until, _)| *until <= now)
    }

    /// Whether any group has no jobs.
    pub fn has_idle(&self) -> bool {
        !self.idle.is_empty()
    }

    /// As [`Groups::forget_some`], for the timer, which looks at more of them. Returns how many
    /// were forgotten.
    pub fn forget_by_timer(&mut self, now: Time, settings: &Settings) -> usize {
        let swept = self.swept;
        let forgotten = self.forget_among(LOOKED_AT_BY_TIMER, now, settings);
        if forgotten == 0 {
            // If nothing changes, nothing is logged: so there must be no trace.
            self.swept = swept;
        }
        forgotten
    }

    /// Forgets some groups without jobs that count for nothing any longer. Continues after those
    /// looked at last.
    pub fn forget_some(&mut self, now: Time, settings: &Settings) {
        let looks = LOOKED_AT + 2 * self.idle.len().saturating_sub(self.idle_before);
        self.forget_among(looks, now, settings);
        self.idle_before = self.idle.len();
    }

    /// Looks at `looks` idle groups. Returns how many were forgotten.
    fn forget_among(&mut self, looks: usize, now: Time, settings: &Settings) -> usize {
        let before = self.idle.len();
        for _ in 0..looks.min(before) {
            let behind = (Bound::Excluded((self.swept, GroupNumber::MAX)), Bound::Unbounded);
            let next = self.idle.range(behind).next().or(self.idle.first()).copied();
            let Some((serial, number)) = next.or_impossible("there is an idle group") else {
                break;
            };
            self.swept = serial;
            if self.counts_for_nothing(number, now, settings) {
                self.forget(number);
            }
        }
        before - self.idle.len()
    }

    /// The time from which one FORGET of the timer would forget a group.
    pub fn forgets_at(&self, settings: &Settings) -> Option<Time> {
        let behind = (Bound::Excluded((self.swept, GroupNumber::MAX)), Bound::Unbounded);
        let all =
            self.idle.range(behind).chain(&self.idle).take(LOOKED_AT_BY_TIMER.min(self.idle.len()));
        let ends = all.map(|(_, number)| self.counts_until(*number, settings));
        // No time for a group that is paused until DQ.RESUME.
        ends.min().filter(|end| *end < Time::MAX)
    }

    /// Until when the rate or the pause of a group without jobs counts.
    fn counts_until(&self, number: GroupNumber, settings: &Settings) -> Time {
        self.table.slab.get(number).map_or(Time::ZERO, |group| {
            let over = settings.group_rate.map_or(Time::ZERO, |rate| rate.over_at(group.tat));
            group.paused_until.max(over)
        })
    }

    fn counts_for_nothing(&self, number: GroupNumber, now: Time, settings: &Settings) -> bool {
        self.counts_until(number, settings) <= now
    }

    pub(super) fn has_had_turn(&self, member: Slot) -> bool {
        let member = self.members.get(member);
        member.is_some_and(|member| {
            self.lane(member.priority).is_some_and(|lane| member.turn > lane.round)
        })
    }

    fn forget(&mut self, number: GroupNumber) {
        self.index.remove(number, &mut self.table.slab);
        self.take_idle(number);
        let group = self.table.slab.remove(number).or_impossible("an idle group is there");
        let Some(group) = group else {
            return;
        };
        let lines = group.dying.memory() + group.leases.memory() + group.expiring.memory();
        self.bytes = self.bytes.saturating_sub(lines + group.name.len());
        self.forget_members(group.members);
    }

    /// Removes the lines of a group that is gone or has no jobs.
    pub(super) fn forget_members(&mut self, members: Vec<Slot>) {
        self.bytes = self.bytes.saturating_sub(members.capacity() * size_of::<Slot>());
        for slot in members {
            let member = self.members.remove(slot);
            self.bytes = self.bytes.saturating_sub(member.map_or(0, |member| member.line.memory()));
        }
    }

    /// Delivers no job of this group until `until`; zero ends the pause. Returns when the group
    /// may deliver a job again, if it has any.
    pub fn pause(&mut self, name: Id, until: Time, settings: &Settings) -> Option<Time> {
        let number = self.find_or_make(name)?;
        let was_idle = self.take_idle(number);
        self.table.slab.get_mut(number)?.paused_until = until;
        if was_idle {
            self.add_idle(number);
        }
        self.reindex(number, settings)
    }

    /// Whether this group is paused, or was.
    pub fn is_paused(&self, name: Id) -> bool {
        let group = self.find(name).and_then(|number| self.table.slab.get(number));
        group.is_some_and(|group| group.paused_until > Time::ZERO)
    }

    /// Applies another GROUPRATE.
    pub fn change_rate(&mut self, before: Option<Rate>, settings: &Settings, now: Time) {
        let rate = settings.group_rate;
        // An unchanged limit leaves everything as it is.
        if rate.is_none() || rate != before {
            self.change_tats(rate, now, |tat| match (rate, before) {
                (Some(rate), Some(other)) => rate.instead_of(&other, tat, now),
                (Some(_), None) | (None, _) => Tat::default(),
            });
        }
        self.reindex_all(settings);
    }

    /// The clock was set back: no group waits longer than one distance of its rate.
    pub fn set_back(&mut self, now: Time, settings: &Settings) {
        let Some(rate) = settings.group_rate else {
            return;
        };
        self.change_tats(Some(rate), now, |tat| rate.at_most_one_ahead(tat, now));
        self.reindex_all(settings);
    }

    fn change_tats(&mut self, rate: Option<Rate>, now: Time, change: impl Fn(Tat) -> Tat) {
        for (_, group) in
            self.table.slab.iter_mut().filter(|(_, group)| group.tat != Tat::default())
        {
            group.set_tat(change(group.tat), rate, now);
        }
    }
}
