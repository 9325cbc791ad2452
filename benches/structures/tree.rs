//! (a2) The B-tree at its best: one set over (due, order of scheduling, slot), from which nothing moves. A
//! promotion walks over what fell due and counts it.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::slab::Slab;
use crate::slab_queue::Schedule;

/// Due time, order of scheduling, slot.
type Key = (u64, u64, u32);

pub struct Tree {
    jobs: BTreeSet<Key>,
    scheduled: u64,
    /// This key and all before it have been counted.
    counted_to: Option<Key>,
    ready: usize,
}

impl Tree {
    fn is_counted(&self, key: &Key) -> bool {
        self.counted_to.is_some_and(|to| *key <= to)
    }
}

impl Schedule for Tree {
    const TAKES_LATE_JOBS: bool = true;
    /// Due time and order of scheduling.
    type Wait = (u64, u64);

    fn new(_start_ms: u64) -> Self {
        Tree { jobs: BTreeSet::new(), scheduled: 0, counted_to: None, ready: 0 }
    }

    fn insert<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, slot: u32, due_ms: u64) {
        self.scheduled += 1;
        slab.at_mut(slot).wait = (due_ms, self.scheduled);
        let key = (due_ms, self.scheduled, slot);
        if self.is_counted(&key) {
            self.ready += 1;
        }
        self.jobs.insert(key);
    }

    fn remove<C: Default>(&mut self, slab: &mut Slab<Self::Wait, C>, slot: u32) {
        let (due_ms, order) = slab.at(slot).wait;
        let key = (due_ms, order, slot);
        self.jobs.remove(&key);
        if self.is_counted(&key) {
            self.ready -= 1;
        }
    }

    fn earliest_due_ms<C: Default>(&self, _slab: &Slab<Self::Wait, C>) -> Option<u64> {
        self.jobs.first().map(|(due_ms, _, _)| *due_ms)
    }

    fn promote<C: Default>(&mut self, _slab: &mut Slab<Self::Wait, C>, now_ms: u64, at_most: usize) -> usize {
        let end = (now_ms, self.scheduled, u32::MAX);
        if self.is_counted(&end) {
            return 0;
        }
        let from = self.counted_to.map_or(Unbounded, Excluded);
        let mut counted_to = end;
        let mut promoted = 0;
        for key in self.jobs.range((from, Included(end))) {
            promoted += 1;
            if promoted >= at_most {
                counted_to = *key;
                break;
            }
        }
        self.ready += promoted;
        self.counted_to = Some(counted_to);
        promoted
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn pop<C: Default>(&mut self, _slab: &mut Slab<Self::Wait, C>, now_ms: u64) -> Option<u32> {
        let key = *self.jobs.first().filter(|(due_ms, _, _)| *due_ms <= now_ms)?;
        self.jobs.pop_first();
        if self.is_counted(&key) {
            self.ready -= 1;
        }
        Some(key.2)
    }
}
