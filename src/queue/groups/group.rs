//! What a group consists of, and when it may leave.

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

use super::line::{GroupLine, Places};
use super::seats::{NothingReady, Seat, Seats};

/// The number of a group in its queue. It shows in nothing.
pub type GroupNumber = Slot;

#[derive(Clone)]
pub struct Groups {
    pub(super) table: GroupTable,
    pub(super) index: Index,
    pub(super) members: Slab<GroupQueue>,
    /// By priority.
    pub(super) lanes: Vec<GroupLane>,
    pub(super) main_lines: Places,
    pub(super) leases: Places,
    pub(super) expiring: Places,
    /// Groups without jobs, by their serial.
    pub(super) idle: BTreeSet<(u64, GroupNumber)>,
    /// Those of them that are paused, or were, by when that ends.
    pub(super) paused: BTreeSet<(Time, GroupNumber)>,
    /// The last serial that was given.
    pub(super) last_serial: u64,
    /// Up to this one, those that are idle have been looked at.
    pub(super) swept: u64,
    /// So many were without jobs behind the last operation.
    pub(super) idle_before: usize,
    /// Bytes that groups own elsewhere.
    pub(super) bytes: usize,
    /// The group from which a job was taken that is still to be put somewhere.
    pub(super) stale: Option<GroupNumber>,
    /// The lines that have changed, of which the seats are still to hear.
    pub(super) dirty: Vec<Slot>,
    /// The time of the last job that was put somewhere: what was ready by then is ready.
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
    /// In the order in which groups got their first job, since they had none. Of two that could
    /// leave since the same time, the one that came first leaves first.
    pub(super) serial: u64,
    /// Whatever their state.
    pub(super) jobs: u32,
    pub(super) link: Link,
    /// By GROUPRATE.
    pub(super) tat: Tat,
    /// Until then its rate held it back last, or does. Of a burst that isn't used up, `tat` creeps
    /// on in the past with each job; this doesn't, and neither does what stands in seats.
    pub(super) blocked_until: Time,
    pub(super) paused_until: Time,
    /// From when on none of its jobs is held back, as the seats have been told: see
    /// [`Group::opens`].
    pub(super) told_opens: Time,
    /// Its jobs that may leave, a line for each priority, in the order of these.
    pub(super) members: Vec<Slot>,
    /// So many of these lines, from the best priority on, may have a seat. Either that is all, or
    /// the last one of them had, when it was resolved_at, a job that is ready until somebody takes it:
    /// no job behind it leaves before.
    pub(super) indexed: usize,
    /// Its jobs that die before they may leave.
    pub(super) dying: GroupLine,
    /// Its leases, by their end.
    pub(super) leases: GroupLine,
    /// Of its jobs that may leave, those that expire, by when they do.
    pub(super) expiring: GroupLine,
}

/// The jobs of a group in one priority.
#[derive(Clone)]
pub(super) struct GroupQueue {
    pub(super) group: GroupNumber,
    pub(super) priority: u8,
    pub(super) line: GroupLine,
    /// The time of the first of them, if there is any.
    pub(super) since: Time,
    /// The round in which it may leave next.
    pub(super) turn: u64,
    /// While nothing of its line may leave; and what the seats have been told of that.
    pub(super) nothing_ready: Cell<NothingReady>,
    pub(super) indexed_nothing_ready: Cell<NothingReady>,
    /// Where it stands in the seats, if there is anything in its line.
    pub(super) seat: Option<Seat>,
}

/// The groups with jobs of one priority.
#[derive(Clone)]
pub(super) struct GroupLane {
    pub(super) priority: u8,
    pub(super) round: u64,
    /// When this round began. A group that opens later has the next one.
    pub(super) began: Time,
    /// The last serial that had been given by then. A group that came later has the next one, also
    /// if its jobs had been due before.
    pub(super) last_of_round: u64,
    /// When it is the turn of those without a group.
    pub(super) own_turn: u64,
    /// Of those that aren't behind another line of their group: see [`Group::indexed`].
    pub(super) seats: Seats,
    /// How many groups have jobs here.
    pub(super) lines: usize,
}

/// No queue comes to this serial by itself; and from here it can go on for as long again.
pub(super) const SERIAL_MAX: u64 = 1 << 62;

/// Rounds begin here, so that a turn can have been before.
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

    /// Whether there is anything to be remembered of its rounds.
    pub(super) fn has_begun(&self) -> bool {
        (self.began, self.last_of_round) != (Time::ZERO, 0) || self.own_turn > self.round
    }

    /// Whether there has been a round: some group had come by then. Before the first one, nothing
    /// has a turn, at the time 0 either.
    pub(super) fn has_round(&self) -> bool {
        self.last_of_round > 0
    }

    /// Whether groups have jobs here.
    pub(super) fn takes_turns(&self) -> bool {
        self.lines > 0
    }

    /// All that may leave now are in this round.
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
    /// From when on none of its jobs is held back, as things stand.
    pub(super) fn opens(&self, settings: &Settings) -> Time {
        let mut opens = self.paused_until;
        if let Some(concurrency) = settings.group_concurrency {
            // When this lease ends, fewer are live.
            let behind = concurrency.get() as usize - 1;
            let end = self.leases.time_from_end(behind);
            opens = opens.max(end.unwrap_or_default());
        }
        if settings.group_rate.is_some() {
            opens = opens.max(self.blocked_until);
        }
        opens
    }

    /// One of its jobs has left.
    pub(super) fn one_has_left(&mut self, rate: &Rate, now: Time) {
        self.tat = rate.after(self.tat, now, 1);
        let opens = rate.open(self.tat);
        if opens > now {
            self.blocked_until = opens;
        }
    }

    /// Its rate has got there by other means than by jobs that left.
    pub(super) fn set_tat(&mut self, tat: Tat, rate: Option<Rate>, now: Time) {
        self.tat = tat;
        self.blocked_until =
            rate.map(|rate| rate.open(tat)).filter(|opens| *opens > now).unwrap_or_default();
    }
}

impl Groups {
    /// Group names are looked up by this hash, which shows in nothing.
    pub fn new(hash: RandomState) -> Groups {
        Groups {
            table: GroupTable { slab: Slab::default(), hash },
            index: Index::default(),
            members: Slab::default(),
            lanes: Vec::new(),
            main_lines: Places::default(),
            leases: Places::default(),
            expiring: Places::default(),
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

    /// The group with this name, made if there is none; `None` when there are 2^32 − 1 others.
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
            told_opens: Time::ZERO,
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

    /// One job more is of this group.
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

    /// A group that was kept without jobs has one again: it comes as one that is made now. So it
    /// makes no difference for turns when such groups are forgotten. Its lines, which are empty,
    /// are gone, too: a replica that was loaded meanwhile has none.
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

    /// One job less is.
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

    /// The first time after `now` from which on some group may leave that may not before. O(lanes ×
    /// log groups).
    pub fn opens_after(&self, now: Time) -> Option<Time> {
        self.lanes.iter().filter_map(|lane| lane.seats.opens_after(now)).min()
    }

    pub(super) fn lane_mut(&mut self, priority: u8) -> Option<&mut GroupLane> {
        let at = place_of(&self.lanes, priority).unwrap_or_else(|at| {
            self.lanes.insert(at, GroupLane::new(priority));
            at
        });
        self.lanes.get_mut(at)
    }

    pub(super) fn lane(&self, priority: u8) -> Option<&GroupLane> {
        self.lanes.get(place_of(&self.lanes, priority).ok()?)
    }
}

/// Where the lane of this priority is, or is to be.
pub(super) fn place_of(lanes: &[GroupLane], priority: u8) -> Result<usize, usize> {
    lanes.binary_search_by_key(&priority, |lane| lane.priority)
}

#[cfg(test)]
mod tests;
