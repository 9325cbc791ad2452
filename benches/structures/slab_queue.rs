//! A candidate out of a slab, an index and a schedule: each of the two can be exchanged alone.

use crate::candidate::Candidate;
use crate::index::{hash_of, Index};
use crate::lanes::{promote_each, Lanes};
use crate::slab::Slab;

/// The order in which the jobs of one priority leave.
pub trait Schedule {
    const TAKES_LATE_JOBS: bool;
    /// What it keeps in each job's slot.
    type Wait: Copy + Default;

    fn new(start_ms: u64) -> Self;
    fn insert<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, slot: u32, due_ms: u64);
    fn remove<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, slot: u32);
    fn earliest_due_ms<C: Default>(&self, slab: &Slab<Self::Wait, C>) -> Option<u64>;
    /// How many jobs it promoted: `at_most`, or more by what its last step held.
    fn promote<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, now_ms: u64, at_most: usize) -> usize;
    fn ready(&self) -> usize;
    fn pop<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, now_ms: u64) -> Option<u32>;
}

pub struct SlabQueue<S: Schedule, I: Index> {
    slab: Slab<S::Wait, I::Chain>,
    index: I,
    lanes: Lanes<S>,
    start_ms: u64,
}

impl<S: Schedule, I: Index> Candidate for SlabQueue<S, I> {
    const TAKES_LATE_JOBS: bool = S::TAKES_LATE_JOBS;

    fn new(start_ms: u64) -> Self {
        SlabQueue { slab: Slab::new(), index: I::new(), lanes: Lanes::new(), start_ms }
    }

    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64, priority: u8) -> bool {
        let hash = hash_of(id);
        if self.index.find(&self.slab, hash, id).is_some() {
            return false;
        }
        let slot = self.slab.insert(id, body, priority);
        self.index.insert(&mut self.slab, hash, slot);
        let lane = self.lanes.of(priority, || S::new(self.start_ms));
        lane.insert(&mut self.slab, slot, due_ms);
        true
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        let hash = hash_of(id);
        let Some(slot) = self.index.find(&self.slab, hash, id) else {
            return false;
        };
        let priority = self.slab.at(slot).priority;
        let lane = self.lanes.of(priority, || S::new(self.start_ms));
        lane.remove(&mut self.slab, slot);
        self.index.remove(&mut self.slab, hash, slot);
        self.slab.remove(slot);
        true
    }

    fn earliest_due_ms(&mut self) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.earliest_due_ms(&self.slab)).min()
    }

    fn promote(&mut self, now_ms: u64, at_most: usize) -> bool {
        let slab = &mut self.slab;
        promote_each(&mut self.lanes, at_most, |lane, left| lane.promote(slab, now_ms, left))
    }

    fn ready(&self) -> usize {
        self.lanes.iter().map(S::ready).sum()
    }

    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool {
        let slab = &mut self.slab;
        let Some(slot) = self.lanes.iter_mut().find_map(|lane| lane.pop(slab, now_ms)) else {
            return false;
        };
        let id = slab.at(slot).id();
        seen(id);
        let hash = hash_of(id);
        self.index.remove(slab, hash, slot);
        slab.remove(slot);
        true
    }
}
