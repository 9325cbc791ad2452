//! Values that many jobs share, each stored once and named by a number.

use crate::queue::memory::impossible::OrImpossible;
use std::hash::Hash;

use ahash::RandomState;

use super::defrag::Defragmenter;
use super::index::{keyed, Index, Link, Linked};
use super::slab::{Slab, Slot, NO_SLOT};

#[derive(Clone)]
struct Shared<T> {
    value: T,
    users: u32,
    link: Link,
}

impl<T> Linked for Shared<T> {
    fn link(&self) -> &Link {
        &self.link
    }

    fn link_mut(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Every value that some job has, stored once. Every operation is O(1).
#[derive(Clone)]
pub struct Interned<T> {
    shared: Slab<Shared<T>>,
    index: Index,
    hash: RandomState,
    /// The value used last: most calls use the same one again.
    recent: Slot,
    /// How many jobs have a value.
    users: u32,
}

impl<T: Clone + Hash + PartialEq> Interned<T> {
    pub fn new(seed: (u64, u64)) -> Interned<T> {
        Interned {
            shared: Slab::default(),
            index: Index::default(),
            hash: keyed(seed),
            recent: NO_SLOT,
            users: 0,
        }
    }

    pub fn get(&self, number: Slot) -> Option<&T> {
        self.shared.get(number).map(|shared| &shared.value)
    }

    /// The number of this value, for one more job. `None` if there are 2^31 others.
    pub fn take(&mut self, value: &T) -> Option<Slot> {
        let is_recent = |shared: &&mut Shared<T>| shared.value == *value;
        if let Some(recent) = self.shared.get_mut(self.recent).filter(is_recent) {
            recent.users += 1;
        } else {
            self.recent = self.find_or_add(value)?;
            self.shared.get_mut(self.recent)?.users += 1;
        }
        self.users += 1;
        Some(self.recent)
    }

    /// So many more jobs have a value that some job has.
    pub fn take_again(&mut self, number: Slot, jobs: u32) {
        if let Some(shared) =
            self.shared.get_mut(number).or_impossible("a value that is used is there")
        {
            shared.users += jobs;
            self.users += jobs;
        }
    }

    /// One job fewer has the value. The last one removes it.
    #[inline]
    pub fn drop_reference(&mut self, number: Slot) {
        let shared = self.shared.get_mut(number).or_impossible("a value that is used is there");
        let Some(shared) = shared else {
            return;
        };
        shared.users -= 1;
        self.users -= 1;
        if shared.users == 0 {
            self.forget(number);
        }
    }

    #[cold]
    fn forget(&mut self, number: Slot) {
        self.index.remove(number, &mut self.shared);
        self.shared.remove(number);
    }

    /// How many jobs have a value.
    pub fn users(&self) -> u32 {
        self.users
    }

    /// How many different values there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.shared.len()
    }

    /// Without what the values own.
    pub fn memory(&self) -> usize {
        self.shared.memory() + self.index.memory()
    }

    /// Hands its memory to a defragmenter, without what the values own: see [`Slab::defrag`].
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        let next = self.shared.defrag(from, defragmenter, |_, _| ());
        let mut heads = next.is_none().then_some(0);
        while let Some(from) = heads {
            heads = self.index.defrag(from, defragmenter);
        }
        next
    }

    #[inline(never)]
    fn find_or_add(&mut self, value: &T) -> Option<Slot> {
        let hash = self.hash_of(value);
        if let Some(number) = self.index.find(hash, &self.shared, |shared| shared.value == *value) {
            return Some(number);
        }
        let shared = Shared { value: value.clone(), users: 0, link: Link::new(hash) };
        let number = self.shared.insert(shared)?;
        self.index.insert(number, &mut self.shared);
        Some(number)
    }

    fn hash_of(&self, value: &T) -> u32 {
        self.hash.hash_one(value) as u32
    }
}

#[cfg(test)]
mod tests;
