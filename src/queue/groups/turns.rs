//! Whose turn it is.

use super::super::buckets::Windows;
use super::super::details::Standing;
use super::super::rate::Tat;
use super::super::schedule::{FromLane, Schedule};
use super::super::settings::Settings;
use super::super::slab::Slot;
use super::super::time::Time;
use super::super::Queue;
use super::ring::{Met, Rest, Span};
use super::{GroupNumber, Groups, Lane};

/// The job that leaves next, and as whose turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    pub due: Time,
    pub slot: Slot,
    /// Where something counts: that is where jobs of groups are.
    counted: Option<Counted>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Turn {
        priority: u8,
        /// `None`: of those without a group.
        member: Option<Slot>,
        /// All have had their turn.
        is_new_round: bool,
    },
    /// Out of turn: only its rate has to hear of it.
    ById(GroupNumber),
}

impl Groups {
    /// The job that leaves next at `now`, from this priority on.
    #[inline(never)]
    pub fn first_ready(
        &self,
        now: Time,
        from: &mut FromLane,
        schedule: &Schedule,
        windows: &impl Windows,
    ) -> Option<Turn> {
        while let Some(priority) = from.priority() {
            let lane = self.lane(priority).filter(|lane| lane.takes_turns());
            let turn = match lane {
                Some(lane) => self.first_in(lane, now, schedule, windows),
                None => schedule.first_in_lane(priority, now, windows).map(|(due, slot)| Turn {
                    due,
                    slot,
                    counted: None,
                }),
            };
            if turn.is_some() {
                return turn;
            }
            let next = schedule.next_priority(priority);
            from.go_on(next);
        }
        None
    }

    fn first_in(&self, lane: &Lane, now: Time, schedule: &Schedule, windows: &impl Windows) -> Option<Turn> {
        let find = &mut |member| self.first_open_of(member, now, windows);
        let own = schedule.first_in_lane(lane.priority, now, windows);
        // As of others, also when the first of them has expired.
        let own_since = schedule.first_time_in_lane(lane.priority).unwrap_or(Time::MAX);
        let is_own_turn = lane.has_round() && lane.own_turn <= lane.round && own_since <= lane.began;
        let met = lane.ring.first_in_round(now, (lane.round, lane.began), find);
        let own_first = |met: &Option<Met<_>>| met.as_ref().is_none_or(|met| own_since <= met.seat.opens);
        let turn = |(due, slot), member, is_new_round| Turn {
            due,
            slot,
            counted: Some(Counted::Turn { priority: lane.priority, member, is_new_round }),
        };
        if let Some(own) = own.filter(|_| is_own_turn && own_first(&met)) {
            return Some(turn(own, None, false));
        }
        if let Some(met) = met {
            return Some(turn(met.found, Some(met.member), false));
        }
        let met = lane.ring.first(now, find);
        if let Some(own) = own.filter(|_| own_first(&met)) {
            return Some(turn(own, None, true));
        }
        met.map(|met| turn(met.found, Some(met.member), true))
    }

    /// What leaves first of a group.
    fn first_open_of(&self, member: Slot, now: Time, windows: &impl Windows) -> Result<(Time, Slot), Rest> {
        let Some(member) = self.members.get(member) else {
            return Err(Rest::ALWAYS);
        };
        member.line.first_open(now, windows).ok_or_else(|| {
            let until = member.line.first_after(now).unwrap_or(Time::MAX);
            let rest = Rest { span: Span { since: now, until }, ..member.rest.get() };
            // The ring notes it, too.
            member.rest.set(rest);
            member.told_rest.set(rest);
            rest
        })
    }

    /// This job leaves now. Says of which group it is, and where its rate has got to. The group is to be settled after
    /// that.
    pub fn take(&mut self, turn: &Turn, now: Time, settings: &Settings) -> Option<(u64, Tat)> {
        let number = match turn.counted? {
            Counted::ById(number) => number,
            Counted::Turn { priority, member, is_new_round } => {
                let last_serial = self.last_serial;
                let lane = self.lane_mut(priority)?;
                if is_new_round {
                    lane.begin_round(now, last_serial);
                }
                // The clock may have been set back.
                lane.began = lane.began.min(now);
                let next = lane.round + 1;
                #[cfg(feature = "planted-faults")]
                let next = next - u64::from(crate::planted::has(crate::planted::Fault::UnfairTurns));
                let Some(member) = member else {
                    lane.own_turn = next;
                    return Some((0, Tat::default()));
                };
                self.set_turn(member, next)?
            }
        };
        self.unsettled = Some(number);
        let group = self.shelf.slab.get_mut(number)?;
        if let Some(rate) = &settings.group_rate {
            group.one_has_left(rate, now);
        }
        Some((group.serial, group.tat))
    }

    /// A group has its turn next in that round. Says which group it is.
    pub(super) fn set_turn(&mut self, slot: Slot, next: u64) -> Option<GroupNumber> {
        let member = self.members.get_mut(slot)?;
        let group = member.group;
        member.turn = next;
        self.touch(slot);
        Some(group)
    }

    /// Whether nothing holds back this group now.
    fn is_open(&self, number: GroupNumber, now: Time, settings: &Settings) -> bool {
        self.shelf.slab.get(number).is_none_or(|group| group.opens(settings) <= now)
    }

    /// Whether a lease of this group may live that has run out.
    pub fn has_free_place(&self, number: GroupNumber, now: Time, settings: &Settings) -> bool {
        let Some(concurrency) = settings.group_concurrency else {
            return true;
        };
        let group = self.shelf.slab.get(number);
        group.is_none_or(|group| group.leases.after(now) < concurrency.get() as usize)
    }
}

impl Queue {
    /// The job to be handed out at `now`, if one is ready and nothing holds it back. From the lane on in which the search
    /// begins, which then is the one where it ended.
    #[inline(always)]
    pub(in crate::queue) fn first_to_leave(&self, now: Time, from: &mut FromLane) -> Option<Turn> {
        match &self.groups {
            None => {
                let (due, slot) = self.schedule.first_ready(now, from, self)?;
                Some(Turn { due, slot, counted: None })
            }
            Some(groups) => groups.first_ready(now, from, &self.schedule, self),
        }
    }

    /// It leaves.
    #[inline]
    pub(in crate::queue) fn take_turn(&mut self, turn: &Turn, now: Time) {
        if turn.counted.is_some() {
            self.count_turn(turn, now);
        }
    }

    #[inline(never)]
    fn count_turn(&mut self, turn: &Turn, now: Time) {
        let Some(groups) = &mut self.groups else {
            return;
        };
        if let Some((serial, tat)) = groups.take(turn, now, &self.settings) {
            let departures = self.settings.group_rate.map_or((0, 0), |rate| rate.parts_of(tat));
            self.heading.mix_turn(serial, departures);
        }
    }

    /// Whether a lease of this job that has run out may live again, as far as its group goes.
    pub(in crate::queue) fn has_place_in_group(&self, slot: Slot, now: Time) -> bool {
        let (Some(groups), Some(terms)) = (&self.groups, self.terms_of(slot)) else {
            return true;
        };
        groups.has_free_place(terms.group, now, &self.settings)
    }

    /// Whether nothing holds back the group of this job, if it has one.
    pub(in crate::queue) fn may_leave_its_group(&self, slot: Slot, now: Time) -> bool {
        let (Some(groups), Some(terms)) = (&self.groups, self.terms_of(slot)) else {
            return true;
        };
        groups.is_open(terms.group, now, &self.settings)
    }

    /// Somebody takes this job by its id. That is no turn of its group, so the others needn't wait for it; but what its
    /// group takes in a span of time counts for GROUPRATE.
    pub(in crate::queue) fn out_of_turn(&self, due: Time, slot: Slot) -> Turn {
        let group = self.terms_of(slot).filter(|terms| terms.has_group()).map(|terms| terms.group);
        Turn { due, slot, counted: group.map(Counted::ById) }
    }

    /// A job that is put somewhere is of this group, if of any.
    pub(in crate::queue) fn join_group(&mut self, name: Option<super::Id>) -> Option<GroupNumber> {
        let Some(name) = name else {
            return Some(super::NO_SLOT);
        };
        let pool = &self.pool;
        self.groups.get_or_insert_with(|| Box::new(Groups::new(pool.hash_state()))).join(name)
    }

    /// A job of this group is gone.
    pub(in crate::queue) fn leave_group(&mut self, number: GroupNumber) {
        let Some(groups) = self.groups.as_mut().filter(|_| number != super::NO_SLOT) else {
            return;
        };
        let opens = groups.settle_unsettled(&self.settings);
        groups.leave(number);
        if let Some(opens) = opens {
            self.expect_group(opens);
        }
    }

    /// A job stands in its group, too.
    #[inline(never)]
    pub(in crate::queue) fn stand_in_group(&mut self, number: GroupNumber, slot: Slot, standing: &Standing) {
        let now = self.heading.clock;
        let Some(groups) = &mut self.groups else {
            return self.bug("a job's group is kept as long as the job");
        };
        if groups.place(number, slot, standing, now).is_none() {
            return self.bug("a job stands in its group");
        }
        if let Some(opens) = groups.settle(number, &self.settings) {
            self.expect_group(opens);
        }
    }

    /// Before an operation, or a look, at this time.
    #[inline]
    pub(in crate::queue) fn leave_shadows_if_set_back(&mut self, now: Time) {
        if let Some(groups) = &mut self.groups {
            if now < groups.now {
                groups.leave_shadows(now, &self.settings);
            }
        }
    }

    /// A group may leave then: the timer has to come.
    pub(in crate::queue) fn expect_group(&mut self, opens: Time) {
        if opens > self.schedule.horizon() {
            self.wake_at = self.wake_at.min(opens);
        }
    }

    /// The first time after that of those who look at which a group may leave that may not before.
    pub(in crate::queue) fn group_opens(&self) -> Option<Time> {
        self.groups.as_ref()?.opens_after(self.schedule.horizon())
    }
}
