//! Which group has its turn.

use super::group::{GroupLane, GroupNumber, Groups};
use super::seats::{Candidate, Interval, NothingReady};
use crate::queue::lines::lanes::{LaneCursor, Lanes};
use crate::queue::lines::window::Windows;
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::rate::Tat;
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// The job that leaves next, and whose turn that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextJob {
    pub due: Time,
    pub slot: Slot,
    /// `None` if no group and no turn is concerned.
    counted: Option<Counted>,
}

impl NextJob {
    pub fn without_group(due: Time, slot: Slot) -> NextJob {
        NextJob { due, slot, counted: None }
    }

    /// A job that is taken by its id.
    pub fn by_id(due: Time, slot: Slot, group: Option<GroupNumber>) -> NextJob {
        NextJob { due, slot, counted: group.map(Counted::ById) }
    }

    #[inline]
    pub fn is_counted(&self) -> bool {
        self.counted.is_some()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    InTurn {
        priority: u8,
        /// `None`: the turn of the jobs without a group.
        member: Option<Slot>,
        /// All groups had their turn in the current round.
        is_new_round: bool,
    },
    /// Out of turn: it counts only for the rate of this group.
    ById(GroupNumber),
}

impl Groups {
    /// The job that leaves next at `now`, from the priority in `from` on.
    #[inline(never)]
    pub fn first_ready(
        &self,
        now: Time,
        from: &mut LaneCursor,
        lanes: &Lanes,
        windows: &impl Windows,
    ) -> Option<NextJob> {
        while let Some(priority) = from.priority() {
            let lane = self.lane(priority).filter(|lane| lane.takes_turns());
            let next =
                match lane {
                    Some(lane) => self.first_in(lane, now, lanes, windows),
                    None => lanes
                        .first_in_lane(priority, now, windows)
                        .map(|(due, slot)| NextJob { due, slot, counted: None }),
                };
            if next.is_some() {
                return next;
            }
            from.continue_at(lanes.next_priority(priority));
        }
        None
    }

    fn first_in(
        &self,
        lane: &GroupLane,
        now: Time,
        lanes: &Lanes,
        windows: &impl Windows,
    ) -> Option<NextJob> {
        let find = &mut |member| self.first_open_of(member, now, windows);
        let own = lanes.first_in_lane(lane.priority, now, windows);
        // Uses the first job's time even if it has expired, as for groups.
        let own_since = lanes.first_time_in_lane(lane.priority).unwrap_or(Time::MAX);
        let is_own_turn =
            lane.has_round() && lane.own_turn <= lane.round && own_since <= lane.began;
        let met = lane.seats.first_in_round(now, (lane.round, lane.began), find);
        let own_first =
            |met: &Option<Candidate<_>>| met.as_ref().is_none_or(|met| own_since <= met.seat.opens);
        let turn = |(due, slot), member, is_new_round| NextJob {
            due,
            slot,
            counted: Some(Counted::InTurn { priority: lane.priority, member, is_new_round }),
        };
        if let Some(own) = own.filter(|_| is_own_turn && own_first(&met)) {
            return Some(turn(own, None, false));
        }
        if let Some(met) = met {
            return Some(turn(met.found, Some(met.member), false));
        }
        let met = lane.seats.first(now, find);
        if let Some(own) = own.filter(|_| own_first(&met)) {
            return Some(turn(own, None, true));
        }
        met.map(|met| turn(met.found, Some(met.member), true))
    }

    /// The first job that this line can deliver.
    fn first_open_of(
        &self,
        member: Slot,
        now: Time,
        windows: &impl Windows,
    ) -> Result<(Time, Slot), NothingReady> {
        let member = self.members.get(member).or_impossible("a line at a seat is there");
        let Some(member) = member else {
            return Err(NothingReady::ALWAYS);
        };
        member.line.first_open(now, windows).ok_or_else(|| {
            let until = member.line.first_after(now).unwrap_or(Time::MAX);
            let nothing_ready =
                NothingReady { span: Interval { since: now, until }, ..member.nothing_ready.get() };
            // The caller stores the same value in the index.
            member.nothing_ready.set(nothing_ready);
            member.indexed_nothing_ready.set(nothing_ready);
            nothing_ready
        })
    }

    /// Counts that this job leaves. Returns the serial of its group and the state of its rate. The
    /// caller must then call [`Groups::reindex_stale`].
    pub fn take(&mut self, job: &NextJob, now: Time, settings: &Settings) -> Option<(u64, Tat)> {
        let number = match job.counted? {
            Counted::ById(number) => number,
            Counted::InTurn { priority, member, is_new_round } => {
                let last_serial = self.last_serial;
                let lane = self.lane_mut(priority).or_impossible("a turn is in a lane")?;
                if is_new_round {
                    lane.begin_round(now, last_serial);
                }
                // The clock may have been set back.
                lane.began = lane.began.min(now);
                let next = lane.round + 1;
                let Some(member) = member else {
                    lane.own_turn = next;
                    return Some((0, Tat::default()));
                };
                self.set_turn(member, next)?
            }
        };
        self.stale = Some(number);
        let group = self.table.slab.get_mut(number).or_impossible("a turn is of a group")?;
        if let Some(rate) = &settings.group_rate {
            group.one_has_left(rate, now);
        }
        Some((group.serial, group.tat))
    }

    /// Sets the next turn of a group's line. Returns the group.
    pub(super) fn set_turn(&mut self, slot: Slot, next: u64) -> Option<GroupNumber> {
        let member = self.members.get_mut(slot).or_impossible("a line at a seat is there")?;
        let group = member.group;
        member.turn = next;
        self.touch(slot);
        Some(group)
    }

    /// Whether no limit and no pause holds back this group now.
    pub fn is_open(&self, number: GroupNumber, now: Time, settings: &Settings) -> bool {
        self.table.slab.get(number).is_none_or(|group| group.opens(settings) <= now)
    }

    /// Whether GROUPCONCURRENCY allows that an expired lease of this group lives again.
    pub fn has_free_place(&self, number: GroupNumber, now: Time, settings: &Settings) -> bool {
        let Some(concurrency) = settings.group_concurrency else {
            return true;
        };
        let group = self.table.slab.get(number);
        group.is_none_or(|group| group.leases.after(now) < concurrency.get() as usize)
    }
}
