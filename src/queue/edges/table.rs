//! All edges of a queue.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::edge::{Dependent, Edge, Ending};
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::time::Time;

/// An edge as its predecessor knows it. It is good while the dependent has this serial and the edge
/// is open: nothing is written here when the dependent is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeRef {
    serial: u64,
    pub dependent: Slot,
    /// Which one of the dependent's edges.
    index: u32,
}

const _: () = assert!(size_of::<EdgeRef>() == 16, "bytes per edge are a feature");

/// A job that others wait for.
#[derive(Clone, Default)]
struct Predecessor {
    /// Sorted by the serial of the dependent.
    edges: Vec<EdgeRef>,
    /// How many of `edges` are good. Never 0.
    good: u32,
    /// How many of these are known to come from a dead job.
    dead: u32,
    /// When it dies, if no command changes it before.
    death: Option<Time>,
}

impl Predecessor {
    /// Most have one edge.
    fn of_one() -> Predecessor {
        Predecessor { edges: Vec::with_capacity(1), ..Predecessor::default() }
    }
}

/// Keyed by slots. O(log n) for each operation, and for each edge that it is about.
#[derive(Default)]
pub struct Edges {
    dependents: BTreeMap<Slot, Dependent>,
    predecessors: BTreeMap<Slot, Predecessor>,
    /// The predecessors that die by time.
    deaths: BTreeSet<(Time, Slot)>,
    last_serial: u64,
    /// Dependents that have stopped waiting during this operation.
    released: VecDeque<(Slot, u64)>,
    /// How many held jobs wait for a dead one.
    behind_dead: usize,
    /// Bytes outside the trees.
    bytes: usize,
}

/// Bytes of an entry of a tree, with its part of the nodes: those of a tree that grows at its end,
/// as slots do, have 6 entries and room for 11.
const DEPENDENT_BYTES: usize = (size_of::<Dependent>() + size_of::<Slot>()) * 11 / 6;
const PREDECESSOR_BYTES: usize = (size_of::<Predecessor>() + size_of::<Slot>()) * 11 / 6;
const DEATH_BYTES: usize = size_of::<(Time, Slot)>() * 3 / 2;

impl Edges {
    pub fn is_empty(&self) -> bool {
        self.dependents.is_empty() && self.released.is_empty()
    }

    /// How many jobs have, or had, edges to them, or were held by a command.
    pub fn dependents_len(&self) -> usize {
        self.dependents.len()
    }

    pub fn behind_dead(&self) -> usize {
        self.behind_dead
    }

    pub fn dependent(&self, slot: Slot) -> Option<&Dependent> {
        self.dependents.get(&slot)
    }

    /// All dependents, in the order in which they were added.
    pub fn in_order(&self) -> Vec<(Slot, &Dependent)> {
        let mut all: Vec<_> = self.dependents.iter().map(|(slot, job)| (*slot, job)).collect();
        all.sort_by_key(|(_, dependent)| dependent.serial);
        all
    }

    /// How many jobs wait for this one.
    pub fn waiting_for(&self, slot: Slot) -> usize {
        self.predecessors.get(&slot).map_or(0, |predecessor| predecessor.good as usize)
    }

    /// How many of these know that it is dead.
    pub fn waiting_for_dead(&self, slot: Slot) -> usize {
        self.predecessors.get(&slot).map_or(0, |predecessor| predecessor.dead as usize)
    }

    /// How many jobs wait for this one, and for how many it waits or has waited.
    pub fn of_job(&self, slot: Slot) -> usize {
        self.waiting_for(slot) + self.dependent(slot).map_or(0, |job| job.edges.len())
    }

    /// The open edges from this job, in the order in which their dependents were added.
    pub fn edges_from(&self, from: Slot) -> Vec<EdgeRef> {
        let edges = self.predecessors.get(&from).map_or(&[][..], |job| &job.edges);
        edges.iter().copied().filter(|edge| self.is_good(from, edge)).collect()
    }

    fn is_good(&self, from: Slot, edge: &EdgeRef) -> bool {
        is_good(&self.dependents, from, edge)
    }

    /// Adds a job that depends on others, behind all dependents.
    pub fn add_dependent(&mut self, slot: Slot, dependent: Dependent) {
        self.last_serial += 1;
        let dependent = Dependent { serial: self.last_serial, ..dependent };
        for (index, edge) in dependent.edges.iter().enumerate() {
            if let Edge::Open { from, is_dead } = edge {
                let edge =
                    EdgeRef { serial: self.last_serial, dependent: slot, index: index as u32 };
                let predecessor =
                    self.predecessors.entry(*from).or_insert_with(Predecessor::of_one);
                self.bytes += size_of::<EdgeRef>();
                predecessor.edges.push(edge);
                predecessor.good += 1;
                predecessor.dead += u32::from(*is_dead);
            }
        }
        self.bytes += dependent.size();
        self.behind_dead += usize::from(dependent.is_behind_dead());
        self.dependents.insert(slot, dependent);
    }

    /// A dependent has one more edge. `false` if it isn't a dependent.
    pub fn add_edge(&mut self, dependent: Slot, edge: Edge) -> bool {
        let Some(job) = self.dependents.get_mut(&dependent) else {
            return false;
        };
        let was_behind_dead = job.is_behind_dead();
        let reference = EdgeRef { serial: job.serial, dependent, index: job.edges.len() as u32 };
        let from = edge.from();
        self.bytes += size_of::<Edge>() + edge.own_bytes();
        job.edges.push(edge);
        if let Some((from, is_dead)) = from {
            (job.open, job.dead) = (job.open + 1, job.dead + u32::from(is_dead));
            let predecessor = self.predecessors.entry(from).or_insert_with(Predecessor::of_one);
            let at = predecessor.edges.partition_point(|other| other.serial <= reference.serial);
            predecessor.edges.insert(at, reference);
            predecessor.good += 1;
            predecessor.dead += u32::from(is_dead);
            self.bytes += size_of::<EdgeRef>();
        }
        let is_behind_dead = job.is_behind_dead();
        self.count_behind_dead(was_behind_dead, is_behind_dead);
        true
    }

    /// Settles an open edge.
    pub fn settle(&mut self, from: Slot, edge: &EdgeRef, ending: &Arc<Ending>) {
        let settled = Edge::Settled(ending.clone());
        self.bytes += if Arc::strong_count(ending) == 2 { ending.size() } else { 0 };
        if let Some(job) = self.close(from, edge, settled).filter(|job| job.can_go()) {
            let released = (edge.dependent, job.serial);
            self.released.push_back(released);
        }
    }

    /// Replaces an open edge by a settled one. Returns its dependent.
    fn close(&mut self, from: Slot, edge: &EdgeRef, settled: Edge) -> Option<&Dependent> {
        debug_assert!(self.is_good(from, edge), "an edge that is not open was used");
        let job = self.dependents.get_mut(&edge.dependent)?;
        let was_behind_dead = job.is_behind_dead();
        let open = std::mem::replace(job.edges.get_mut(edge.index as usize)?, settled);
        let is_dead = matches!(open, Edge::Open { is_dead: true, .. });
        (job.open, job.dead) = (job.open - 1, job.dead - u32::from(is_dead));
        let is_behind_dead = job.is_behind_dead();
        self.count_behind_dead(was_behind_dead, is_behind_dead);
        self.lose_good_edge(from, is_dead);
        self.dependents.get(&edge.dependent)
    }

    /// The predecessor of this edge is dead, or isn't any more.
    pub fn note_life(&mut self, from: Slot, edge: &EdgeRef, is_now_dead: bool) {
        debug_assert!(self.is_good(from, edge), "an edge that is not open was used");
        let Some(job) = self.dependents.get_mut(&edge.dependent) else {
            return;
        };
        let Some(Edge::Open { is_dead, .. }) = job.edges.get_mut(edge.index as usize) else {
            return;
        };
        if *is_dead == is_now_dead {
            return;
        }
        let was_behind_dead = job.is_held && job.dead > 0;
        let predecessor = self.predecessors.get_mut(&from);
        for count in predecessor.map(|job| &mut job.dead).into_iter().chain([&mut job.dead]) {
            *count = if is_now_dead { *count + 1 } else { *count - 1 };
        }
        *is_dead = is_now_dead;
        let is_behind_dead = job.is_behind_dead();
        self.count_behind_dead(was_behind_dead, is_behind_dead);
    }

    fn count_behind_dead(&mut self, before: bool, after: bool) {
        self.behind_dead = self.behind_dead + usize::from(after) - usize::from(before);
    }

    /// The job waits for commands no more. Returns whether it did.
    pub fn end_hold(&mut self, slot: Slot) -> bool {
        let Some(job) = self.dependents.get_mut(&slot).filter(|job| job.is_on_hold) else {
            return false;
        };
        job.is_on_hold = false;
        if job.can_go() {
            self.released.push_back((slot, job.serial));
        }
        true
    }

    /// The next job that has stopped waiting during this operation, and still does: it is held no
    /// more. Returns when it is due.
    pub fn next_released(&mut self) -> Option<(Slot, Due)> {
        while let Some((slot, serial)) = self.released.pop_front() {
            let job = self.dependents.get_mut(&slot);
            if let Some(job) = job.filter(|job| job.serial == serial && job.can_go()) {
                job.is_held = false;
                return Some((slot, job.due));
            }
        }
        None
    }

    /// The job is held no more, whatever it waits for.
    pub fn leave_hold(&mut self, slot: Slot) {
        if let Some(job) = self.dependents.get_mut(&slot) {
            let was_behind_dead = job.is_behind_dead();
            job.is_held = false;
            self.count_behind_dead(was_behind_dead, false);
        }
    }

    /// Drops the open edges of a job, which is held no more. Keeps the settled ones.
    pub fn drop_open(&mut self, slot: Slot) {
        let waits = |job: &Dependent| job.open > 0 || job.is_held || job.is_on_hold;
        if !self.dependents.get(&slot).is_some_and(waits) {
            return;
        }
        let Some(mut job) = self.take_dependent(slot) else {
            return;
        };
        for edge in &job.edges {
            if let Edge::Open { from, is_dead } = edge {
                self.bytes -= size_of::<Edge>();
                self.lose_good_edge(*from, *is_dead);
            }
        }
        job.edges.retain(|edge| matches!(edge, Edge::Settled(_)));
        (job.open, job.dead, job.is_on_hold, job.is_held) = (0, 0, false, false);
        if !job.edges.is_empty() {
            self.dependents.insert(slot, job);
        }
    }

    /// The job in this slot is gone, or depends on nothing. Returns what it knew.
    pub fn forget_dependent(&mut self, slot: Slot) -> Option<Dependent> {
        let job = self.take_dependent(slot)?;
        self.bytes -= job.size();
        for edge in &job.edges {
            if let Edge::Open { from, is_dead } = edge {
                self.lose_good_edge(*from, *is_dead);
            }
        }
        Some(job)
    }

    fn take_dependent(&mut self, slot: Slot) -> Option<Dependent> {
        let job = self.dependents.remove(&slot)?;
        self.count_behind_dead(job.is_behind_dead(), false);
        Some(job)
    }

    /// An edge from this job is open no more, or is about to be: forgets the job when it was the
    /// last one, and references that aren't good when they are the most.
    fn lose_good_edge(&mut self, from: Slot, is_dead: bool) {
        let Some(job) = self.predecessors.get_mut(&from) else {
            return;
        };
        job.good = job.good.saturating_sub(1);
        job.dead -= u32::from(is_dead);
        if job.good == 0 {
            self.set_death(from, None);
            let removed = self.predecessors.remove(&from);
            self.bytes -= removed.map_or(0, |job| job.edges.len() * size_of::<EdgeRef>());
        } else if job.edges.len() > 2 * job.good as usize + SPARE_EDGES {
            let before = job.edges.len();
            job.edges.retain(|edge| is_good(&self.dependents, from, edge));
            self.bytes -= (before - job.edges.len()) * size_of::<EdgeRef>();
        }
    }

    /// Removes the open edges from this job, which are about to be settled, from what is known of
    /// it. Returns them as [`Edges::edges_from`] does.
    pub fn take_edges_from(&mut self, from: Slot) -> Vec<EdgeRef> {
        let Some(Predecessor { mut edges, good, death, .. }) = self.predecessors.remove(&from)
        else {
            return Vec::new();
        };
        death.map(|time| self.deaths.remove(&(time, from)));
        self.bytes -= edges.len() * size_of::<EdgeRef>();
        if edges.len() > good as usize {
            edges.retain(|edge| is_good(&self.dependents, from, edge));
        }
        edges
    }

    /// The job that others wait for is another one now, in another slot.
    pub fn move_predecessor(&mut self, from: Slot, to: Slot) {
        let edges = self.edges_from(from);
        self.set_death(from, None);
        let Some(job) = self.predecessors.remove(&from) else {
            return;
        };
        for edge in &edges {
            let dependent = self.dependents.get_mut(&edge.dependent);
            let edge = dependent.and_then(|job| job.edges.get_mut(edge.index as usize));
            if let Some(Edge::Open { from, .. }) = edge {
                *from = to;
            }
        }
        self.bytes -= (job.edges.len() - edges.len()) * size_of::<EdgeRef>();
        let Predecessor { good, dead, .. } = job;
        self.predecessors.insert(to, Predecessor { good, dead, edges, death: None });
    }

    /// When this job dies, which others wait for, if no command changes it before.
    pub fn set_death(&mut self, slot: Slot, death: Option<Time>) {
        let Some(job) = self.predecessors.get_mut(&slot) else {
            return;
        };
        let before = std::mem::replace(&mut job.death, death);
        before.map(|time| self.deaths.remove(&(time, slot)));
        death.map(|time| self.deaths.insert((time, slot)));
    }

    /// When the next job dies that others wait for.
    #[inline]
    pub fn next_death(&self) -> Option<Time> {
        self.deaths.first().map(|(time, _)| *time)
    }

    /// The jobs that have died by `now` and that others wait for.
    pub fn died_by(&self, now: Time) -> impl Iterator<Item = Slot> + '_ {
        self.deaths.iter().take_while(move |(time, _)| *time <= now).map(|(_, slot)| *slot)
    }

    pub fn memory(&self) -> usize {
        size_of::<Edges>()
            + self.dependents.len() * DEPENDENT_BYTES
            + self.predecessors.len() * PREDECESSOR_BYTES
            + self.deaths.len() * DEATH_BYTES
            + self.bytes
    }
}

/// A predecessor keeps at least this many references that aren't good.
const SPARE_EDGES: usize = 16;

fn is_good(dependents: &BTreeMap<Slot, Dependent>, from: Slot, edge: &EdgeRef) -> bool {
    let job = dependents.get(&edge.dependent).filter(|job| job.serial == edge.serial);
    let edge = job.and_then(|job| job.edges.get(edge.index as usize));
    matches!(edge, Some(Edge::Open { from: it, .. }) if *it == from)
}

/// A copy has endings of its own, so that each queue knows how many bytes it would free.
impl Clone for Edges {
    fn clone(&self) -> Edges {
        let mut endings = BTreeMap::new();
        let mut own = |edge: &Edge| match edge {
            Edge::Settled(ending) => {
                let own = endings.entry(Arc::as_ptr(ending));
                Edge::Settled(own.or_insert_with(|| Arc::new((**ending).clone())).clone())
            }
            Edge::Open { .. } => edge.clone(),
        };
        let dependents = self.dependents.iter().map(|(slot, job)| {
            (*slot, Dependent { edges: job.edges.iter().map(&mut own).collect(), ..job.clone() })
        });
        Edges {
            dependents: dependents.collect(),
            predecessors: self.predecessors.clone(),
            deaths: self.deaths.clone(),
            released: self.released.clone(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests;
