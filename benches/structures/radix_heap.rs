//! (e) A radix heap (Ahuja, Mehlhorn, Orlin & Tarjan, JACM 1990): lists by the highest bit in which a
//! due time differs from the last one that was taken out.
//!
//! It bends as the wheel does: the list that holds the next job is dealt out as a whole, in one step, and its
//! keys may only grow, so a job that comes back late can't get to its place. The next due time is the
//! least of a list that has to be walked.

use crate::linked::{Links, List};
use crate::slab::Slab;
use crate::slab_queue::Schedule;

const LISTS: usize = 64;

pub struct RadixHeap {
    /// All jobs due by then are in `ready`, none of the others are.
    last_ms: u64,
    /// List `n`: the highest bit in which the due time differs from `last_ms` is `n`.
    lists: [List; LISTS],
    ready: List,
}

impl RadixHeap {
    fn list_for(&mut self, due_ms: u64) -> &mut List {
        if due_ms <= self.last_ms {
            return &mut self.ready;
        }
        &mut self.lists[(due_ms ^ self.last_ms).ilog2() as usize]
    }

    fn put<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        let due_ms = slab.at(slot).wait.due_ms();
        self.list_for(due_ms).push_back(slab, slot);
    }

    fn lowest_list(&self) -> Option<usize> {
        self.lists.iter().position(|list| !list.is_empty())
    }

    /// Goes on to the next due time by `now_ms`; its jobs are ready then. False when there is none.
    fn step<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64) -> bool {
        let Some(number) = self.lowest_list() else {
            return false;
        };
        let Some(least_ms) = least_due_ms(&self.lists[number], slab).filter(|due_ms| *due_ms <= now_ms)
        else {
            return false;
        };
        self.last_ms = least_ms;
        let list = std::mem::replace(&mut self.lists[number], List::EMPTY);
        let mut next = list.first();
        for _ in 0..list.len {
            let Some(slot) = next else { break };
            next = slab.at(slot).wait.after();
            self.put(slab, slot);
        }
        true
    }
}

fn least_due_ms<C: Default>(list: &List, slab: &Slab<Links, C>) -> Option<u64> {
    list.iter(slab).map(|slot| slab.at(slot).wait.due_ms()).min()
}

impl Schedule for RadixHeap {
    const TAKES_LATE_JOBS: bool = false;
    type Wait = Links;

    fn new(start_ms: u64) -> Self {
        RadixHeap { last_ms: start_ms, lists: [List::EMPTY; LISTS], ready: List::EMPTY }
    }

    fn insert<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32, due_ms: u64) {
        slab.at_mut(slot).wait.set_due_ms(due_ms);
        self.put(slab, slot);
    }

    fn remove<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        let due_ms = slab.at(slot).wait.due_ms();
        self.list_for(due_ms).remove(slab, slot);
    }

    fn earliest_due_ms<C: Default>(&self, slab: &Slab<Links, C>) -> Option<u64> {
        if !self.ready.is_empty() {
            return least_due_ms(&self.ready, slab);
        }
        least_due_ms(&self.lists[self.lowest_list()?], slab)
    }

    fn promote<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64, at_most: usize) -> usize {
        let before = self.ready.len;
        while ((self.ready.len - before) as usize) < at_most && self.step(slab, now_ms) {}
        (self.ready.len - before) as usize
    }

    fn ready(&self) -> usize {
        self.ready.len as usize
    }

    fn pop<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64) -> Option<u32> {
        if self.ready.is_empty() {
            self.step(slab, now_ms);
        }
        let slot = self.ready.first()?;
        self.ready.remove(slab, slot);
        Some(slot)
    }
}
