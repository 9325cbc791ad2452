//! Lists through the slab: two u32 a job, no allocation, removal from the middle in O(1).

use crate::slab::{Slab, NONE};

/// What a job on a list keeps.
#[derive(Clone, Copy, Default)]
pub struct Links {
    due_low: u32,
    due_high: u32,
    before: u32,
    after: u32,
}

impl Links {
    pub fn set_due_ms(&mut self, due_ms: u64) {
        self.due_low = due_ms as u32;
        self.due_high = (due_ms >> 32) as u32;
    }

    pub fn due_ms(&self) -> u64 {
        u64::from(self.due_high) << 32 | u64::from(self.due_low)
    }

    pub fn after(&self) -> Option<u32> {
        (self.after != NONE).then_some(self.after)
    }
}

#[derive(Clone, Copy)]
pub struct List {
    head: u32,
    tail: u32,
    pub len: u32,
}

impl List {
    pub const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }

    pub fn first(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub fn push_back<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        let links = &mut slab.at_mut(slot).wait;
        links.before = self.tail;
        links.after = NONE;
        match self.tail {
            NONE => self.head = slot,
            tail => slab.at_mut(tail).wait.after = slot,
        }
        self.tail = slot;
        self.len += 1;
    }

    pub fn remove<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        let Links { before, after, .. } = slab.at(slot).wait;
        match before {
            NONE => self.head = after,
            before => slab.at_mut(before).wait.after = after,
        }
        match after {
            NONE => self.tail = before,
            after => slab.at_mut(after).wait.before = before,
        }
        self.len -= 1;
    }

    /// Puts all of `other` behind this list. O(1).
    pub fn append<C: Default>(&mut self, slab: &mut Slab<Links, C>, other: List) {
        if self.is_empty() {
            *self = other;
        } else if !other.is_empty() {
            slab.at_mut(self.tail).wait.after = other.head;
            slab.at_mut(other.head).wait.before = self.tail;
            self.tail = other.tail;
            self.len += other.len;
        }
    }

    pub fn iter<'a, C: Default>(&self, slab: &'a Slab<Links, C>) -> impl Iterator<Item = u32> + 'a {
        std::iter::successors(self.first(), |&slot| slab.at(slot).wait.after())
    }
}
