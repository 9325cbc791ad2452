//! Groups of jobs, which take turns. In each priority the groups that have something ready are handed out one job each in
//! a round, so none waits for the others' many; what has no group takes part as one of them.
//!
//! A group's *turn* is the round in which it may leave next: this one, or the one behind it. A round takes in the groups that
//! could leave when it began. Of those, the one leaves first that could have left for longest; when all had their turn, the
//! round is over. What comes later has the next round: a group that opens by the passing of time, since the round knows when it
//! began; and a group that is made, since the round knows which one had been made last. So a round has an end however many
//! groups come, and each group waits for at most two jobs of each other one: for the rest of a round and for the next.
//!
//! That is start-time fair queueing (P. Goyal, H. Vin, H. Cheng, "Start-time fair queuing", SIGCOMM 1996) where all jobs cost
//! the same, but for newcomers. There, one starts at the virtual time, which is this round: where each job has a group of its
//! own, no round would end.
//!
//! | file | what it is |
//! | --- | --- |
//! | `mod.rs` | what a group consists of, and when it may leave |
//! | `turns.rs` | whose turn it is; |
//! | `standing.rs` | where jobs of groups stand; what other limits do to that |
//! | `idle.rs` | what becomes of groups without jobs |
//! | `ring.rs` | the groups of a priority, in the order in which they may leave |
//! | `line.rs` | the jobs of a group, few or many |
//! | `look.rs`, `group_record.rs` | looking; files |
//! | `relocate.rs` | putting their memory elsewhere |
//!
//! Jobs of groups stand in lines of their lane as all others do, and are counted there: see [`super::schedule`]. What is here
//! comes on top, so a queue without groups pays nothing.

mod group_record;
mod idle;
mod line;
mod look;
mod relocate;
mod ring;
mod standing;
mod turns;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use super::ids::Id;
use super::index::{Chained, Index};
use super::rate::{Rate, Tat};
use super::settings::Settings;
use super::slab::{Slab, Slot, NO_SLOT};
use super::time::Time;
pub use group_record::GroupRecord;
pub use idle::PAUSED_GROUPS_MAX;
use line::{Line, Places};
pub use look::GroupView;
use ring::{Rest, Ring, Seat};
pub use standing::Stood;
pub use turns::Turn;

/// The number of a group in its queue; [`NO_SLOT`] is none. It shows in nothing.
pub type GroupNumber = Slot;

#[derive(Clone)]
pub struct Groups {
    shelf: Shelf,
    index: Index,
    members: Slab<Member>,
    /// By priority.
    lanes: Vec<Lane>,
    homes: Places,
    leases: Places,
    expiring: Places,
    /// Groups without jobs, by their serial.
    idle: BTreeSet<(u64, GroupNumber)>,
    /// Those of them that are paused, or were, by when that ends.
    paused: BTreeSet<(Time, GroupNumber)>,
    /// The last serial that was given.
    last_serial: u64,
    /// Up to this one, those that are idle have been looked at.
    swept: u64,
    /// So many were without jobs behind the last operation.
    idle_before: usize,
    /// Bytes that groups own elsewhere.
    bytes: usize,
    /// The group from which a job was taken that is still to be put somewhere.
    unsettled: Option<GroupNumber>,
    /// The lines that have changed, of which the ring is still to hear.
    touched: Vec<Slot>,
    /// The time of the last job that was put somewhere: what was ready by then is ready.
    now: Time,
}

#[derive(Clone)]
struct Shelf {
    slab: Slab<Group>,
    hash: RandomState,
}

#[derive(Clone)]
struct Group {
    name: Box<[u8]>,
    /// In the order in which groups got their first job, since they had none. Of two that could leave since the same time, the
    /// one that came first leaves first.
    serial: u64,
    /// Whatever their state.
    jobs: u32,
    next: Slot,
    /// By GROUPRATE.
    tat: Tat,
    /// Until then its rate held it back last, or does. Of a burst that isn't used up, `tat` creeps on in the past with each job;
    /// this doesn't, and neither does what stands in rings.
    held_until: Time,
    paused_until: Time,
    /// From when on none of its jobs is held back, as the rings have been told: see [`Group::opens`].
    told_opens: Time,
    /// Its jobs that may leave, a line for each priority, in the order of these.
    members: Vec<Slot>,
    /// So many of these lines, from the best priority on, may have a seat. Either that is all, or the last one of them had, when it
    /// was settled, a job that is ready until somebody takes it: no job behind it leaves before.
    seated: usize,
    /// Its jobs that die before they may leave.
    dying: Line,
    /// Its leases, by their end.
    leases: Line,
    /// Of its jobs that may leave, those that expire, by when they do.
    expiring: Line,
}

/// The jobs of a group in one priority.
#[derive(Clone)]
struct Member {
    group: GroupNumber,
    priority: u8,
    line: Line,
    /// The time of the first of them, if there is any.
    since: Time,
    /// The round in which it may leave next.
    turn: u64,
    /// While nothing of its line may leave; and what the ring has been told of that.
    rest: Cell<Rest>,
    told_rest: Cell<Rest>,
    /// Where it stands in the ring, if there is anything in its line.
    seat: Option<Seat>,
}

/// The groups with jobs of one priority.
#[derive(Clone)]
struct Lane {
    priority: u8,
    round: u64,
    /// When this round began. A group that opens later has the next one.
    began: Time,
    /// The last serial that had been given by then. A group that came later has the next one, also if its jobs had been due
    /// before.
    last_of_round: u64,
    /// When it is the turn of those without a group.
    own_turn: u64,
    /// Of those that aren't behind another line of their group: see [`Group::seated`].
    ring: Ring,
    /// How many groups have jobs here.
    lines: usize,
}

/// Rounds begin here, so that a turn can have been before.
const FIRST_ROUND: u64 = 1;

impl Shelf {
    fn hash_of(&self, name: &[u8]) -> u32 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(name);
        hasher.finish() as u32
    }
}

impl Chained for Shelf {
    fn hash(&self, slot: Slot) -> u32 {
        self.slab.get(slot).map_or(0, |group| self.hash_of(&group.name))
    }

    fn next(&self, slot: Slot) -> Slot {
        self.slab.get(slot).map_or(NO_SLOT, |group| group.next)
    }

    fn set_next(&mut self, slot: Slot, next: Slot) {
        if let Some(group) = self.slab.get_mut(slot) {
            group.next = next;
        }
    }
}

impl Lane {
    fn new(priority: u8) -> Lane {
        let ring = Ring::default();
        Lane {
            priority,
            round: FIRST_ROUND,
            began: Time::ZERO,
            last_of_round: 0,
            own_turn: 0,
            ring,
            lines: 0,
        }
    }

    /// Whether there is anything to be remembered of its rounds.
    fn has_begun(&self) -> bool {
        (self.began, self.last_of_round) != (Time::ZERO, 0) || self.own_turn > self.round
    }

    /// Whether there has been a round: some group had come by then. Before the first one, nothing has a turn, at the time 0 either.
    fn has_round(&self) -> bool {
        self.last_of_round > 0
    }

    /// Whether groups have jobs here.
    fn takes_turns(&self) -> bool {
        self.lines > 0
    }

    /// All that may leave now are in this round.
    fn begin_round(&mut self, now: Time, last_serial: u64) {
        self.round += 1;
        (self.began, self.last_of_round) = (now, last_serial);
        self.ring.begin_round(self.round);
    }

    /// The first turn of a group with this serial.
    fn first_turn(&self, serial: u64) -> u64 {
        if serial > self.last_of_round {
            self.round + 1
        } else {
            0
        }
    }
}

impl Group {
    /// From when on none of its jobs is held back, as things stand.
    fn opens(&self, settings: &Settings) -> Time {
        let mut opens = self.paused_until;
        if let Some(concurrency) = settings.group_concurrency {
            // When this lease ends, fewer are live.
            let behind = concurrency.get() as usize - 1;
            #[cfg(feature = "planted-faults")]
            let behind = behind + usize::from(crate::planted::has(crate::planted::Fault::OverfullGroup));
            let end = self.leases.time_from_end(behind);
            opens = opens.max(end.unwrap_or_default());
        }
        if settings.group_rate.is_some() {
            opens = opens.max(self.held_until);
        }
        opens
    }

    /// One of its jobs has left.
    fn one_has_left(&mut self, rate: &Rate, now: Time) {
        self.tat = rate.after(self.tat, now, 1);
        let opens = rate.open(self.tat);
        if opens > now {
            self.held_until = opens;
        }
    }

    /// Its rate has got there by other means than by jobs that left.
    fn set_tat(&mut self, tat: Tat, rate: Option<Rate>, now: Time) {
        self.tat = tat;
        self.held_until = rate.map(|rate| rate.open(tat)).filter(|opens| *opens > now).unwrap_or_default();
    }
}

impl Groups {
    /// Names are found by this hash, which shows in nothing.
    pub fn new(hash: RandomState) -> Groups {
        Groups {
            shelf: Shelf { slab: Slab::default(), hash },
            index: Index::default(),
            members: Slab::default(),
            lanes: Vec::new(),
            homes: Places::default(),
            leases: Places::default(),
            expiring: Places::default(),
            idle: BTreeSet::new(),
            paused: BTreeSet::new(),
            last_serial: 0,
            swept: 0,
            idle_before: 0,
            bytes: 0,
            unsettled: None,
            touched: Vec::new(),
            now: Time::ZERO,
        }
    }

    pub fn len(&self) -> usize {
        self.shelf.slab.len()
    }

    pub fn name(&self, number: GroupNumber) -> Option<Id<'_>> {
        self.shelf.slab.get(number).map(|group| Id::of(&group.name))
    }

    pub fn find(&self, name: Id) -> Option<GroupNumber> {
        let is_it = |slot| self.shelf.slab.get(slot).is_some_and(|group| *group.name == *name.bytes());
        self.index.find(self.shelf.hash_of(name.bytes()), &self.shelf, is_it)
    }

    /// The group with this name, made if there is none; `None` when there are 2^32 − 1 others.
    fn find_or_make(&mut self, name: Id) -> Option<GroupNumber> {
        if let Some(number) = self.find(name) {
            return Some(number);
        }
        let serial = self.next_serial();
        let group = Group {
            name: name.bytes().into(),
            serial,
            jobs: 0,
            next: NO_SLOT,
            tat: Tat::default(),
            held_until: Time::ZERO,
            paused_until: Time::ZERO,
            told_opens: Time::ZERO,
            members: Vec::new(),
            seated: 0,
            dying: Line::Empty,
            leases: Line::Empty,
            expiring: Line::Empty,
        };
        let hash = self.shelf.hash_of(name.bytes());
        let number = self.shelf.slab.insert(group)?;
        self.index.insert(hash, number, &mut self.shelf);
        self.bytes += name.bytes().len();
        self.last_serial = serial;
        self.idle.insert((serial, number));
        Some(number)
    }

    /// One job more is of this group.
    pub fn join(&mut self, name: Id) -> Option<GroupNumber> {
        let last_serial = self.last_serial;
        let number = self.find_or_make(name)?;
        let group = self.shelf.slab.get_mut(number)?;
        group.jobs += 1;
        if group.jobs == 1 {
            self.take_idle(number);
            if self.last_serial == last_serial {
                self.come_again(number);
            }
        }
        Some(number)
    }

    /// A group that was kept without jobs has one again: it comes as one that is made now. So it makes no difference for turns
    /// when such groups are forgotten. Its lines, which are empty, are gone, too: a replica that was loaded meanwhile has none.
    fn come_again(&mut self, number: GroupNumber) -> Option<()> {
        let serial = self.next_serial();
        self.last_serial = serial;
        let group = self.shelf.slab.get_mut(number)?;
        group.serial = serial;
        group.seated = 0;
        let members = std::mem::take(&mut group.members);
        self.forget_members(members);
        Some(())
    }

    fn next_serial(&self) -> u64 {
        self.last_serial.saturating_add(1).min(group_record::SERIAL_MAX)
    }

    /// One job less is.
    pub fn leave(&mut self, number: GroupNumber) {
        if let Some(group) = self.shelf.slab.get_mut(number) {
            group.jobs = group.jobs.saturating_sub(1);
            if group.jobs == 0 {
                self.add_idle(number);
            }
        }
    }

    pub fn memory(&self) -> usize {
        let rings: usize = self.lanes.iter().map(|lane| lane.ring.memory()).sum();
        size_of::<Groups>()
            + self.shelf.slab.memory()
            + self.index.memory()
            + self.members.memory()
            + self.lanes.capacity() * size_of::<Lane>()
            + rings
            + self.homes.memory()
            + self.leases.memory()
            + self.expiring.memory()
            + (self.idle.len() + self.paused.len()) * size_of::<(u64, GroupNumber)>()
            + self.touched.capacity() * size_of::<Slot>()
            + self.bytes
    }

    /// The first time after `now` from which on some group may leave that may not before. O(lanes × log groups).
    pub fn opens_after(&self, now: Time) -> Option<Time> {
        self.lanes.iter().filter_map(|lane| lane.ring.opens_after(now)).min()
    }

    fn lane_mut(&mut self, priority: u8) -> Option<&mut Lane> {
        let at = place_of(&self.lanes, priority).unwrap_or_else(|at| {
            self.lanes.insert(at, Lane::new(priority));
            at
        });
        self.lanes.get_mut(at)
    }

    fn lane(&self, priority: u8) -> Option<&Lane> {
        self.lanes.get(place_of(&self.lanes, priority).ok()?)
    }
}

/// Where the lane of this priority is, or is to be.
fn place_of(lanes: &[Lane], priority: u8) -> Result<usize, usize> {
    lanes.binary_search_by_key(&priority, |lane| lane.priority)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
