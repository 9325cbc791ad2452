//! The parts of a group, and when it may deliver a job.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use crate::queue::memory::index::{Index, Link, Linked};
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::ids::Id;
use crate::queue::value::rate::{Rate, Tat};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

use super::line::{BucketsBySlot, GroupLine};
use super::seats::{NothingReady, Seat, Seats};

/// The number of a group in its queue. No reply or record contains it.
pub type GroupNumber = Slot;

#[derive(Clone)]
pub struct Groups {
    pub(super) table: GroupTable,
    pub(super) index: Index,
    pub(super) members: Slab<GroupQueue>,
    /// Sorted by priority.
    pub(super) lanes: Vec<GroupLane>,
    pub(super) main_lines: BucketsBySlot,
    pub(super) leases: BucketsBySlot,
    pub(super) expiring: BucketsBySlot,
    /// Groups without jobs, by their serial.
    pub(super) idle: BTreeSet<(u64, GroupNumber)>,
    /// Idle groups that are paused, or were, by the end of the pause.
    pub(super) paused: BTreeSet<(Time, GroupNumber)>,
    /// The last serial that was given out.
    pub(super) last_serial: u64,
    /// Idle groups up to this serial have been looked at.
    pub(super) swept: u64,
    /// How many groups were idle after the last operation.
    pub(super) idle_before: usize,
    /// Bytes that groups own outside their slab.
    pub(super) bytes: usize,
    /// A group that lost a job, and isn't in the index again yet.
    pub(super) stale: Option<GroupNumber>,
    /// Lines that have changed, and aren't in the index again yet.
    pub(super) dirty: Vec<Slot>,
    /// The time at which a job got its place last: what was ready by then is ready.
    pub(super) now: Time,
}

#[derive(Clone)]
pub(super) struct GroupTable {
    pub(super) slab: Slab<Group>,
    pub(super) hash: RandomState,
}

#[derive(Clone)]
pub(super) struct Group {
    pub(super) name: Box<[u8]>,
    /// Order of arrival: renewed when an empty group gets a job. Of two groups that could deliver
    /// a job since the same time, the one with the lower serial goes first.
    pub(super) serial: u64,
    /// In any state.
    pub(super) jobs: u32,
    pub(super) link: Link,
    /// The state of GROUPRATE.
    pub(super) tat: Tat,
    /// When GROUPRATE last allowed the next job. Unlike `tat` it doesn't move with each job of an
    /// unused burst, and so the group keeps its seat.
    pub(super) blocked_until: Time,
    pub(super) paused_until: Time,
    /// The value of [`Group::opens`] that the seats were computed with.
    pub(super) indexed_opens: Time,
    /// Its jobs in lanes: a line for each priority, sorted by priority.
    pub(super) members: Vec<Slot>,
    /// `members[..indexed]`, the best priorities, may have a seat. If these aren't all, the last of
    /// them had, when it was indexed, a job that stays ready until it is taken: no job of a later
    /// line leaves before that.
    pub(super) indexed: usize,
    /// Its jobs that die before they become ready.
    pub(super) dying: GroupLine,
    /// Its leases, by their end.
    pub(super) leases: GroupLine,
    /// Its jobs in lanes that expire, by when they do.
    pub(super) expiring: GroupLine,
}

/// The jobs of a group in one priority.
#[derive(Clone)]
pub(super) struct GroupQueue {
    pub(super) group: GroupNumber,
    pub(super) priority: u8,
    pub(super) line: GroupLine,
    /// The time of its first job, if it has one.
    pub(super) since: Time,
    /// The round in which it may leave next.
    pub(super) turn: u64,
    /// When this line has no ready job; and the value of it that the seats have.
    pub(super) nothing_ready: Cell<NothingReady>,
    pub(super) indexed_nothing_ready: Cell<NothingReady>,
    /// Its place in the seats, if the line has jobs.
    pub(super) seat: Option<Seat>,
}

/// The groups with jobs of one priority.
#[derive(Clone)]
pub(super) struct GroupLane {
    pub(super) priority: u8,
    pub(super) round: u64,
    /// When this round began. A group that opens later is in the next round.
    pub(super) began: Time,
    /// The last serial given out before this round began. A group with a later one is in the next
    /// round, even if its jobs were due before.
    pub(super) last_of_round: u64,
    /// The round in which the jobs without a group have their next turn.
    pub(super) own_turn: u64,
    /// The seats of groups, without those that an earlier line of the same group precedes: see
    /// [`Group::indexed`].
    pub(super) seats: Seats,
    /// How many groups have jobs here.
    pub(super) lines: usize,
}

/// Serials end here. No queue reaches it by itself, and a loaded record may start anywhere below.
pub(super) const SERIAL_MAX: u64 = 1 << 62;

/// The first round, above 0, so that there can be a turn before it.
pub(super) const FIRST_ROUND: u64 = 1;

impl GroupTable {
    pub(super) fn hash_of(&self, name: &[u8]) -> u32 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(name);
        hasher.finish() as u32
    }
}

impl Linked for Group {
    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl GroupLane {
    pub(super) fn new(priority: u8) -> GroupLane {
        let seats = Seats::default();
        GroupLane {
            priority,
            round: FIRST_ROUND,
            began: Time::ZERO,
            last_of_round: 0,
            own_turn: 0,
            seats,
            lines: 0,
        }
    }

    /// Whether its rounds have a state that must be saved.
    pub(super) fn has_begun(&self) -> bool {
        (self.began, self.last_of_round) != (Time::ZERO, 0) || self.own_turn > self.round
    }

    /// Whether a round has begun, with at least one group. Before the first one, no group or job
    /// has a turn, even at time 0.
    pub(super) fn has_round(&self) -> bool {
        self.last_of_round > 0
    }

    /// Whether groups have jobs here.
    pub(super) fn takes_turns(&self) -> bool {
        self.lines > 0
    }

    /// All groups that may deliver a job now are in this round.
    pub(super) fn begin_round(&mut self, now: Time, last_serial: u64) {
        self.round += 1;
        (self.began, self.last_of_round) = (now, last_serial);
        self.seats.begin_round(self.round);
    }

    /// The first turn of a group with this serial.
    pub(super) fn first_turn(&self, serial: u64) -> u64 {
        if serial > self.last_of_round {
            self.round + 1
        } else {
            0
        }
    }
}

impl Group {
    /// From when on no limit or pause holds back the group's jobs, as of now.
    pub(super) fn opens(&self, settings: &Settings) -> Time {
        let mut opens = self.paused_until;
        if let Some(concurrency) = settings.group_concurrency {
            // When this lease ends, fewer than GROUPCONCURRENCY are live.
            let behind = concurrency.get() as usize - 1;
            let end = self.leases.time_from_end(behind);
            opens = opens.max(end.unwrap_or_default());
        }
        if settings.group_rate.is_some() {
            opens = opens.max(self.blocked_until);
        }
        opens
    }

    /// Counts one job that left.
    pub(super) fn one_has_left(&mut self, rate: &Rate, now: Time) {
        self.tat = rate.after(self.tat, now, 1);
        let opens = rate.open(self.tat);
        if opens > now {
            self.blocked_until = opens;
        }
    }

    /// Sets the state of its rate, other than by a job that left.
    pub(super) fn set_tat(&mut self, tat: Tat, rate: Option<Rate>, now: Time) {
        self.tat = tat;
        self.blocked_until =
            rate.map(|rate| rate.open(tat)).filter(|opens| *opens > now).unwrap_or_default();
    }
}

impl Groups {
    /// `hash` is for group names. No reply or record depends on it.
    pub fn new(hash: RandomState) -> Groups {
        Groups {
            table: GroupTable { slab: Slab::default(), hash },
            index: Index::default(),
            members: Slab::default(),
            lanes: Vec::new(),
            main_lines: BucketsBySlot::default(),
            leases: BucketsBySlot::default(),
            expiring: BucketsBySlot::default(),
            idle: BTreeSet::new(),
            paused: BTreeSet::new(),
            last_serial: 0,
            swept: 0,
            idle_before: 0,
            bytes: 0,
            stale: None,
            dirty: Vec::new(),
            now: Time::ZERO,
        }
    }

    pub fn len(&self) -> usize {
        self.table.slab.len()
    }

    pub fn name(&self, number: GroupNumber) -> Option<Id<'_>> {
        self.table.slab.get(number).map(|group| Id::of(&group.name))
    }

    pub fn find(&self, name: Id) -> Option<GroupNumber> {
        let hash = self.table.hash_of(name.bytes());
        self.index.find(hash, &self.table.slab, |group| *group.name == *name.bytes())
    }

    /// The group with this name, created if there is none. `None` if there are 2^31 groups.
    pub(super) fn find_or_make(&mut self, name: Id) -> Option<GroupNumber> {
        if let Some(number) = self.find(name) {
            return Some(number);
        }
        let serial = self.next_serial();
        let group = Group {
            name: name.bytes().into(),
            serial,
            jobs: 0,
            link: Link::new(self.table.hash_of(name.bytes())),
            tat: Tat::default(),
            blocked_until: Time::ZERO,
            paused_until: Time::ZERO,
            indexed_opens: Time::ZERO,
            members: Vec::new(),
            indexed: 0,
            dying: GroupLine::Empty,
            leases: GroupLine::Empty,
            expiring: GroupLine::Empty,
        };
        let number = self.table.slab.insert(group)?;
        self.index.insert(number, &mut self.table.slab);
        self.bytes += name.bytes().len();
        self.last_serial = serial;
        self.idle.insert((serial, number));
        Some(number)
    }

    /// Counts one more job of this group.
    pub fn join(&mut self, name: Id) -> Option<GroupNumber> {
        let last_serial = self.last_serial;
        let number = self.find_or_make(name)?;
        let group = self.table.slab.get_mut(number)?;
        group.jobs += 1;
        if group.jobs == 1 {
            self.take_idle(number);
            if self.last_serial == last_serial {
                self.come_again(number);
            }
        }
        Some(number)
    }

    /// Treats a group that was kept without jobs like a new one when it gets a job. So it makes no
    /// difference to turns whether such a group was forgotten before. Its empty lines are removed,
    /// too: a replica that was loaded meanwhile has none.
    pub(super) fn come_again(&mut self, number: GroupNumber) -> Option<()> {
        let serial = self.next_serial();
        self.last_serial = serial;
        let group = self.table.slab.get_mut(number)?;
        group.serial = serial;
        group.indexed = 0;
        let members = std::mem::take(&mut group.members);
        self.forget_members(members);
        Some(())
    }

    pub(super) fn next_serial(&self) -> u64 {
        self.last_serial.saturating_add(1).min(SERIAL_MAX)
    }

    /// Removes one job from the group's count.
    pub fn leave(&mut self, number: GroupNumber) {
        if let Some(group) = self.table.slab.get_mut(number) {
            group.jobs = group.jobs.saturating_sub(1);
            if group.jobs == 0 {
                self.add_idle(number);
            }
        }
    }

    pub fn memory(&self) -> usize {
        let seats: usize = self.lanes.iter().map(|lane| lane.seats.memory()).sum();
        size_of::<Groups>()
            + self.table.slab.memory()
            + self.index.memory()
            + self.members.memory()
            + self.lanes.capacity() * size_of::<GroupLane>()
            + seats
            + self.main_lines.memory()
            + self.leases.memory()
            + self.expiring.memory()
            + (self.idle.len() + self.paused.len()) * size_of::<(u64, GroupNumber)>()
            + self.dirty.capacity() * size_of::<Slot>()
            + self.bytes
    }

    /// The first time after `now` at which another group may deliver a job. O(lanes × log groups).
    pub fn opens_after(&self, now: Time) -> Option<Time> {
        self.lanes.iter().filter_map(|lane| lane.seats.opens_after(now)).min()
    }

    pub(super) fn lane_mut(&mut self, priority: u8) -> Option<&mut GroupLane> {
        let at = position_of(&self.lanes, priority).unwrap_or_else(|at| {
            self.lanes.insert(at, GroupLane::new(priority));
            at
        });
        self.lanes.get_mut(at)
    }

    pub(super) fn lane(&self, priority: u8) -> Option<&GroupLane> {
        self.lanes.get(position_of(&self.lanes, priority).ok()?)
    }
}

/// The index of the lane of this priority, or where to insert it.
pub(super) fn position_of(lanes: &[GroupLane], priority: u8) -> Result<usize, usize> {
    lanes.binary_search_by_key(&priority, |lane| lane.priority)
}

#[cfg(test)]
mod tests;
