//! All edges of a queue.

use crate::queue::memory::impossible::OrImpossible;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::edge::{
    BundleKey, Dependent, DependentKey, Edge, EdgeKey, EdgeLink, NewDependent, NewEdge, OnDead,
    PredecessorEnd,
};
use super::lists::{Bundle, Lists, Origin, Pending};
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// A job that others wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Predecessor {
    /// The edges to dependents with ONDEAD HOLD, and to those with RUN.
    pub hold: Option<BundleKey>,
    pub run: Option<BundleKey>,
    /// When it dies, if no command changes it before.
    pub death: Option<Time>,
}

impl Predecessor {
    fn bundle_mut(&mut self, on_dead: OnDead) -> &mut Option<BundleKey> {
        match on_dead {
            OnDead::Hold => &mut self.hold,
            OnDead::Run => &mut self.run,
        }
    }

    pub fn bundles(&self) -> impl Iterator<Item = BundleKey> {
        self.hold.into_iter().chain(self.run)
    }
}

/// What an edge says to its dependent.
#[derive(Clone, Copy, Debug)]
pub enum EdgeSight<'e> {
    /// The dependent waits for the job in this slot, and may have been counted as behind a dead one.
    Waits {
        from: Slot,
        is_marked: bool,
    },
    /// It waits until this ending has got to it.
    Pending {
        ending: &'e PredecessorEnd,
        bundle: Slot,
        is_marked: bool,
    },
    Settled(&'e PredecessorEnd),
}

/// Keyed by slots. O(log n) for each operation, and O(1) for each edge that it is about.
#[derive(Default)]
pub struct Edges {
    pub(super) lists: Lists,
    pub(super) dependents: BTreeMap<Slot, DependentKey>,
    pub(super) predecessors: BTreeMap<Slot, Predecessor>,
    /// The predecessors that die by time.
    pub(super) deaths: BTreeSet<(Time, Slot)>,
    last_serial: u64,
    /// What follows from the ends of jobs, and isn't carried out yet.
    pub(super) pending: VecDeque<Pending>,
    /// Dependents that have stopped waiting for a command during this operation.
    pub(super) released: VecDeque<(DependentKey, u64)>,
    /// How many held jobs wait for a dead one.
    pub(super) behind_dead: usize,
    /// Bytes outside the trees and slabs.
    pub(super) bytes: usize,
}

/// Bytes of an entry of a tree, with its part of the nodes: those of a tree that grows at its end,
/// as slots do, have 6 entries and room for 11.
const DEPENDENT_BYTES: usize = size_of::<(Slot, DependentKey)>() * 11 / 6;
const PREDECESSOR_BYTES: usize = (size_of::<Predecessor>() + size_of::<Slot>()) * 11 / 6;
const DEATH_BYTES: usize = size_of::<(Time, Slot)>() * 3 / 2;

impl Edges {
    pub fn is_empty(&self) -> bool {
        self.dependents.is_empty() && self.released.is_empty() && self.pending.is_empty()
    }

    /// How many jobs have, or had, edges to them, or were held by a command.
    pub fn dependents_len(&self) -> usize {
        self.dependents.len()
    }

    pub fn behind_dead(&self) -> usize {
        self.behind_dead
    }

    pub fn dependent(&self, slot: Slot) -> Option<&Dependent> {
        self.lists.dependents.get(*self.dependents.get(&slot)?)
    }

    pub(super) fn dependent_mut(&mut self, slot: Slot) -> Option<&mut Dependent> {
        self.lists.dependents.get_mut(*self.dependents.get(&slot)?)
    }

    /// All dependents, in the order in which they were added.
    pub fn in_order(&self) -> Vec<(Slot, &Dependent)> {
        let of =
            |(slot, key): (&Slot, &DependentKey)| Some((*slot, self.lists.dependents.get(*key)?));
        let mut all: Vec<_> = self.dependents.iter().filter_map(of).collect();
        all.sort_by_key(|(_, dependent)| dependent.serial);
        all
    }

    /// The edges of a dependent, in the order in which they were named.
    pub fn edges_of<'e>(
        &'e self,
        dependent: &'e Dependent,
    ) -> impl Iterator<Item = EdgeSight<'e>> + 'e {
        dependent.edges.iter().filter_map(|edge| match edge {
            Edge::Settled(ending) => Some(EdgeSight::Settled(ending)),
            Edge::Open(EdgeLink { bundle, is_marked, .. }) => {
                match &self.lists.bundles.get(*bundle)?.origin {
                    Origin::Job(from) => {
                        Some(EdgeSight::Waits { from: *from, is_marked: *is_marked })
                    }
                    Origin::Ended(ending) => {
                        Some(EdgeSight::Pending { ending, bundle: *bundle, is_marked: *is_marked })
                    }
                    Origin::Nothing => None,
                }
            }
        })
    }

    /// Whether this job was the last one to get its edges.
    pub fn is_last(&self, dependent: &Dependent) -> bool {
        dependent.serial == self.last_serial
    }

    /// How many jobs wait for this one.
    pub fn waiting_for(&self, slot: Slot) -> usize {
        let of = |key| self.lists.bundles.get(key).map_or(0, |bundle| bundle.len as usize);
        self.predecessors.get(&slot).map_or(0, |job| job.bundles().map(of).sum())
    }

    /// For how many jobs it waits or has waited.
    pub fn edges_to(&self, slot: Slot) -> usize {
        self.dependent(slot).map_or(0, |job| job.edges.len())
    }

    /// The dependents of this job that wait for it.
    pub fn dependents_of(&self, from: Slot) -> BTreeSet<Slot> {
        let bundles = self.predecessors.get(&from).copied().unwrap_or_default().bundles();
        let edges = bundles.flat_map(|bundle| self.lists.edges_of(bundle));
        edges.filter_map(|edge| Some(self.lists.dependents.get(edge.dependent)?.slot)).collect()
    }

    /// Adds a job that depends on others, behind all dependents. It has no edges yet.
    pub fn add_dependent(&mut self, slot: Slot, new: NewDependent) {
        self.last_serial += 1;
        let dependent = Dependent {
            slot,
            serial: self.last_serial,
            edges: Vec::with_capacity(new.edges.len()),
            open: 0,
            marked: 0,
            on_dead: new.on_dead,
            is_on_hold: new.is_on_hold,
            is_held: new.is_held,
            due: new.due,
            due_from: new.due_from,
        };
        let Some(key) = self.lists.dependents.insert(dependent) else {
            return;
        };
        self.dependents.insert(slot, key);
        new.edges.into_iter().for_each(|edge| self.add_edge_to(key, new.on_dead, edge));
    }

    /// A dependent has one more edge, which comes last. `false` if it isn't a dependent.
    pub fn add_edge(&mut self, dependent: Slot, edge: NewEdge) -> bool {
        let Some(key) = self.dependents.get(&dependent).copied() else {
            return false;
        };
        let on_dead = self.lists.dependents.get(key).map(Dependent::on_dead);
        let Some(on_dead) = on_dead.or_impossible("a dependent is there") else {
            return false;
        };
        self.add_edge_to(key, on_dead, edge);
        true
    }

    fn add_edge_to(&mut self, key: DependentKey, on_dead: OnDead, edge: NewEdge) {
        self.bytes += size_of::<Edge>();
        match edge {
            NewEdge::Open(from) => {
                let bundle = self.bundle_or_new(from, on_dead);
                self.link(key, bundle, EdgeKey::NONE);
            }
            NewEdge::OfDead(from) => {
                let bundle = self.bundle_or_new(from, on_dead);
                self.link(key, bundle, EdgeKey::NONE);
                self.mark_loaded(key, bundle);
                if let Some(bundle) = self.lists.bundles.get_mut(bundle) {
                    bundle.is_of_dead |= !bundle.is_pending;
                }
            }
            NewEdge::Pending { position, is_marked } => {
                let bundle = self.pending_bundle_or_new(position, on_dead);
                self.link(key, bundle, EdgeKey::NONE);
                if is_marked {
                    self.mark_loaded(key, bundle);
                }
            }
            NewEdge::Settled(ending) => {
                self.bytes += if Arc::strong_count(&ending) == 1 { ending.size() } else { 0 };
                let job = self.lists.dependents.get_mut(key);
                job.into_iter().for_each(|job| job.edges.push(Edge::Settled(ending.clone())));
            }
        }
    }

    /// The last edge of the bundle, which is of this dependent, is marked in a file.
    fn mark_loaded(&mut self, key: DependentKey, bundle: BundleKey) {
        let was_behind_dead = self.is_behind_dead(key);
        self.lists.mark_next(bundle).or_impossible("a loaded edge is in its bundle");
        self.count_behind_dead(was_behind_dead, self.is_behind_dead(key));
    }

    fn link(&mut self, key: DependentKey, bundle: BundleKey, behind: EdgeKey) {
        let was_behind_dead = self.is_behind_dead(key);
        self.lists.add(key, bundle, behind);
        self.count_behind_dead(was_behind_dead, self.is_behind_dead(key));
    }

    /// These dependents wait for one more job, the same for each of them.
    pub fn add_edges_from(&mut self, from: Slot, dependents: &[Slot]) -> bool {
        let keys = dependents.iter().filter_map(|slot| self.dependents.get(slot).copied());
        let mut keys: Vec<DependentKey> = keys.collect();
        let are_all = keys.len() == dependents.len();
        let serial = |lists: &Lists, key| lists.dependents.get(key).map_or(0, |job| job.serial);
        keys.sort_by_key(|key| serial(&self.lists, *key));
        for on_dead in [OnDead::Hold, OnDead::Run] {
            let is_such = |key: &&DependentKey| {
                self.lists.dependents.get(**key).is_some_and(|job| job.on_dead == on_dead)
            };
            let such: Vec<DependentKey> = keys.iter().filter(is_such).copied().collect();
            if such.is_empty() {
                continue;
            }
            let bundle = self.bundle_or_new(from, on_dead);
            // Both are in the order in which the dependents were added.
            let mut behind = self.lists.first_of(bundle);
            for key in such {
                while let Some(edge) = behind {
                    if self.lists.serial_of(edge) > serial(&self.lists, key) {
                        break;
                    }
                    behind = self.lists.behind(edge);
                }
                self.bytes += size_of::<Edge>();
                self.link(key, bundle, behind.unwrap_or(EdgeKey::NONE));
            }
        }
        are_all
    }

    pub(super) fn bundle_or_new(&mut self, from: Slot, on_dead: OnDead) -> BundleKey {
        let position = self.predecessors.entry(from).or_default().bundle_mut(on_dead);
        if let Some(bundle) = *position {
            return bundle;
        }
        *position = self.lists.bundles.insert(Bundle::of(from));
        position.unwrap_or(Slot::MAX)
    }

    pub(super) fn is_behind_dead(&self, key: DependentKey) -> bool {
        self.lists.dependents.get(key).is_some_and(Dependent::is_behind_dead)
    }

    pub(super) fn count_behind_dead(&mut self, before: bool, after: bool) {
        self.behind_dead = self.behind_dead + usize::from(after) - usize::from(before);
    }

    /// Takes an open edge out of its bundle, and forgets a bundle without edges.
    pub(super) fn unlink(&mut self, edge: EdgeKey) {
        if let Some(link) = self.lists.unlink(edge) {
            self.tidy(link.bundle);
        }
    }

    /// Forgets a bundle that has no edges, and its job with the last one.
    pub(super) fn tidy(&mut self, key: BundleKey) {
        let Some(bundle) = self.lists.bundles.get(key).filter(|bundle| bundle.len == 0) else {
            return;
        };
        let is_pending = bundle.is_pending;
        match bundle.origin {
            Origin::Job(slot) => {
                if self.waiting_for(slot) == 0 {
                    self.set_death(slot, None);
                }
                if is_pending {
                    return;
                }
                if let Some(job) = self.predecessors.get_mut(&slot) {
                    for position in [&mut job.hold, &mut job.run] {
                        *position = position.filter(|it| *it != key);
                    }
                    if job.bundles().next().is_none() {
                        self.predecessors.remove(&slot);
                    }
                }
                self.lists.bundles.remove(key);
            }
            // What is pending names it.
            Origin::Ended(_) => (),
            Origin::Nothing => {
                if !is_pending {
                    self.lists.bundles.remove(key);
                }
            }
        }
    }

    /// The job that others wait for is another one now, in another slot.
    pub fn move_predecessor(&mut self, from: Slot, to: Slot) {
        self.set_death(from, None);
        let Some(job) = self.predecessors.remove(&from) else {
            return;
        };
        for key in job.bundles() {
            let bundle = self.lists.bundles.get_mut(key);
            bundle.into_iter().for_each(|bundle| bundle.origin = Origin::Job(to));
        }
        self.predecessors.insert(to, job);
    }

    /// When this job dies, which others wait for, if no command changes it before.
    pub fn set_death(&mut self, slot: Slot, death: Option<Time>) {
        let death = death.filter(|_| self.waiting_for(slot) > 0);
        let Some(job) = self.predecessors.get_mut(&slot) else {
            return;
        };
        let before = std::mem::replace(&mut job.death, death);
        before.map(|time| self.deaths.remove(&(time, slot)));
        death.map(|time| self.deaths.insert((time, slot)));
    }

    /// When this job dies, if others wait for it, and that isn't known yet.
    #[inline]
    pub fn death_of(&self, slot: Slot) -> Option<Time> {
        self.predecessors.get(&slot)?.death
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
            + self.lists.dependents.memory()
            + self.lists.bundles.memory()
            + self.pending.capacity() * size_of::<Pending>()
            + self.dependents.len() * DEPENDENT_BYTES
            + self.predecessors.len() * PREDECESSOR_BYTES
            + self.deaths.len() * DEATH_BYTES
            + self.bytes
    }
}

/// A copy has endings of its own, so that each queue knows how many bytes it would free.
impl Clone for Edges {
    fn clone(&self) -> Edges {
        let mut copies = BTreeMap::new();
        let mut own = |ending: &mut Arc<PredecessorEnd>| {
            let copy = copies.entry(Arc::as_ptr(ending));
            *ending = copy.or_insert_with(|| Arc::new((**ending).clone())).clone();
        };
        let mut lists = self.lists.clone();
        for (_, dependent) in lists.dependents.iter_mut() {
            for edge in &mut dependent.edges {
                if let Edge::Settled(ending) = edge {
                    own(ending);
                }
            }
        }
        for (_, bundle) in lists.bundles.iter_mut() {
            if let Origin::Ended(ending) = &mut bundle.origin {
                own(ending);
            }
        }
        let mut pending = self.pending.clone();
        pending.iter_mut().filter_map(Pending::ending_mut).for_each(own);
        Edges {
            lists,
            pending,
            dependents: self.dependents.clone(),
            predecessors: self.predecessors.clone(),
            deaths: self.deaths.clone(),
            released: self.released.clone(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests;
