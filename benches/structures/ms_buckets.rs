//! (c) Millisecond buckets: a B-tree from each due millisecond to a list of its jobs. Nothing moves in a
//! promotion; the lengths of the lists are added up.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use crate::linked::{Links, List};
use crate::slab::Slab;
use crate::slab_queue::Schedule;

pub struct MsBuckets {
    buckets: BTreeMap<u64, List>,
    /// The jobs due by then have been counted.
    counted_to_ms: Option<u64>,
    ready: usize,
}

impl MsBuckets {
    fn is_counted(&self, due_ms: u64) -> bool {
        self.counted_to_ms.is_some_and(|to_ms| due_ms <= to_ms)
    }

    fn take<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32, due_ms: u64) {
        if let Some(list) = self.buckets.get_mut(&due_ms) {
            list.remove(slab, slot);
            if list.is_empty() {
                self.buckets.remove(&due_ms);
            }
        }
        if self.is_counted(due_ms) {
            self.ready -= 1;
        }
    }
}

impl Schedule for MsBuckets {
    const TAKES_LATE_JOBS: bool = true;
    type Wait = Links;

    fn new(_start_ms: u64) -> Self {
        MsBuckets { buckets: BTreeMap::new(), counted_to_ms: None, ready: 0 }
    }

    fn insert<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32, due_ms: u64) {
        slab.at_mut(slot).wait.set_due_ms(due_ms);
        self.buckets.entry(due_ms).or_insert(List::EMPTY).push_back(slab, slot);
        if self.is_counted(due_ms) {
            self.ready += 1;
        }
    }

    fn remove<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        let due_ms = slab.at(slot).wait.due_ms();
        self.take(slab, slot, due_ms);
    }

    fn earliest_due_ms<C: Default>(&self, _slab: &Slab<Links, C>) -> Option<u64> {
        self.buckets.first_key_value().map(|(due_ms, _)| *due_ms)
    }

    fn promote<C: Default>(&mut self, _slab: &mut Slab<Links, C>, now_ms: u64, at_most: usize) -> usize {
        if self.is_counted(now_ms) {
            return 0;
        }
        let from = self.counted_to_ms.map_or(Unbounded, Excluded);
        let mut promoted = 0;
        let mut counted_to_ms = now_ms;
        for (due_ms, list) in self.buckets.range((from, Included(now_ms))) {
            promoted += list.len as usize;
            if promoted >= at_most {
                counted_to_ms = *due_ms;
                break;
            }
        }
        self.ready += promoted;
        self.counted_to_ms = Some(counted_to_ms);
        promoted
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn pop<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64) -> Option<u32> {
        let entry = self.buckets.first_entry()?;
        let due_ms = *entry.key();
        let slot = entry.get().first()?;
        if due_ms > now_ms {
            return None;
        }
        self.take(slab, slot, due_ms);
        Some(slot)
    }
}
