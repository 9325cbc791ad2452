//! The index from a hash to a slot: linear hashing (W. Litwin, "Linear hashing: a new tool for file
//! and table addressing", VLDB 1980; for memory: P.-Å. Larson, "Dynamic hash tables", CACM 31(4),
//! 1988).
//!
//! It grows by one chain at an insert and shrinks by at most two at a removal, so no operation ever
//! waits for a rehash of the whole index: a common hash table of ten million ids would stop the
//! server for half a second when it doubles. The chains run through the indexed values themselves
//! ([`Link`]): the index owns only their heads, four bytes a value.

use crate::queue::memory::impossible::OrImpossible;
use ahash::RandomState;

use super::defrag::Defragmenter;
use super::slab::{Slab, Slot, NO_SLOT};

const CHUNK_BITS: u32 = 10;
const CHUNK_HEADS: usize = 1 << CHUNK_BITS;

const RESERVED_MAX: usize = 1 << 20;

/// What a value keeps for the index: its hash, and the next value of its chain.
#[derive(Clone, Copy)]
pub struct Link {
    hash: u32,
    next: Slot,
}

impl Link {
    pub fn new(hash: u32) -> Link {
        Link { hash, next: NO_SLOT }
    }
}

pub trait Linked {
    fn link(&self) -> &Link;
    fn link_mut(&mut self) -> &mut Link;
}

/// Every operation is O(1), as expected values. The caller supplies a keyed hash, so that no client
/// can choose ids that share a chain.
#[derive(Clone, Default)]
pub struct Index {
    /// The head of each chain, in chunks, so that growing copies nothing.
    heads: Vec<Vec<Slot>>,
    chains: usize,
    len: usize,
}

impl Index {
    pub fn memory(&self) -> usize {
        let heads: usize = self.heads.iter().map(Vec::capacity).sum();
        heads * size_of::<Slot>() + self.heads.capacity() * size_of::<Vec<Slot>>()
    }

    /// Creates the chains for `values` values at once, if there are none yet: so none has to be
    /// split later. Limited to a few megabytes, as the number may be forged.
    pub fn reserve(&mut self, values: usize) {
        if self.len == 0 {
            (self.chains..chains_for(values.min(RESERVED_MAX))).for_each(|_| self.push_chain());
        }
    }

    /// The value with this `hash` for which `matches` is true.
    pub fn find<T: Linked>(
        &self,
        hash: u32,
        values: &Slab<T>,
        matches: impl FnMut(&T) -> bool,
    ) -> Option<Slot> {
        find_from(self.head(self.chain_of(hash)), hash, values, matches)
    }

    /// Adds a value that is not in the index.
    pub fn insert<T: Linked>(&mut self, slot: Slot, values: &mut Slab<T>) {
        if self.chains <= chains_for(self.len) {
            self.split_one(values);
        }
        self.push(slot, values);
        self.len += 1;
    }

    /// Makes a value and adds it, unless one with this `hash` `matches`.
    pub fn insert_unless<T: Linked>(
        &mut self,
        hash: u32,
        values: &mut Slab<T>,
        matches: impl FnMut(&T) -> bool,
        make: impl FnOnce(Link) -> T,
    ) -> Option<Slot> {
        if self.chains <= chains_for(self.len) {
            self.split_one(values);
        }
        let chain = self.chain_of(hash);
        let next = self.head(chain);
        if find_from(next, hash, values, matches).is_some() {
            return None;
        }
        let slot = values.insert(make(Link { hash, next }))?;
        self.set_head(chain, slot);
        self.len += 1;
        Some(slot)
    }

    /// Removes a value that is in the index.
    pub fn remove<T: Linked>(&mut self, slot: Slot, values: &mut Slab<T>) {
        let link = values.get(slot).map(|value| *value.link());
        let Some(Link { hash, next }) = link.or_impossible("a value to remove is there") else {
            return;
        };
        let chain = self.chain_of(hash);
        let mut before = self.head(chain);
        if before == slot {
            self.set_head(chain, next);
        } else {
            loop {
                let link = values.get_mut(before).map(T::link_mut);
                let Some(link) = link.or_impossible("a value is in its chain") else {
                    return;
                };
                if link.next == slot {
                    link.next = next;
                    break;
                }
                before = link.next;
            }
        }
        self.len -= 1;
        // Keeps up to twice as many chains as values, so that it doesn't grow and shrink at each
        // operation.
        for _ in 0..2 {
            if self.chains > 2 * self.len {
                self.merge_one(values);
            }
        }
    }

    /// Hands the heads of the chains to a defragmenter: see
    /// [`Slab::defrag`](super::slab::Slab::defrag).
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        let from = from as usize;
        for (at, heads) in self.heads.iter_mut().enumerate().skip(from) {
            if at > from && defragmenter.is_over() {
                return Some(at as Slot);
            }
            defragmenter.vec(heads);
        }
        defragmenter.vec(&mut self.heads);
        None
    }

    /// The chain of a hash. While `chains` is between two powers of two, the chains that were split
    /// use one more bit of the hash.
    fn chain_of(&self, hash: u32) -> usize {
        let full = self.chains.checked_next_power_of_two().unwrap_or(0);
        let chain = hash as usize & full.wrapping_sub(1);
        if chain < self.chains {
            chain
        } else {
            chain & (full / 2).wrapping_sub(1)
        }
    }

    /// Adds a chain: takes its values from the chain they were in.
    fn split_one<T: Linked>(&mut self, values: &mut Slab<T>) {
        let new = self.chains;
        self.push_chain();
        let Some(old) = sibling(new) else { return };
        // One more bit of the hash tells which values move.
        let moves = |hash: u32| hash as usize & (new ^ old) != 0;
        let (mut staying, mut moving) = (NO_SLOT, NO_SLOT);
        let mut slot = self.head(old);
        while let Some(value) = values.get_mut(slot) {
            let link = value.link_mut();
            let first = if moves(link.hash) { &mut moving } else { &mut staying };
            let next = std::mem::replace(&mut link.next, *first);
            *first = slot;
            slot = next;
        }
        self.set_head(old, staying);
        self.set_head(new, moving);
    }

    /// Removes a chain: its values go back to the chain they were split from.
    fn merge_one<T: Linked>(&mut self, values: &mut Slab<T>) {
        let Some(last) = self.chains.checked_sub(1) else {
            return;
        };
        let first = self.head(last);
        self.pop_chain();
        let Some(old) = sibling(last).filter(|_| first != NO_SLOT) else { return };
        // They come before those that stayed.
        let mut next = first;
        while let Some(value) = values.get_mut(next) {
            let link = value.link_mut();
            next = link.next;
            if next == NO_SLOT {
                link.next = self.head(old);
                self.set_head(old, first);
            }
        }
    }

    /// Puts a value first in its chain.
    fn push<T: Linked>(&mut self, slot: Slot, values: &mut Slab<T>) {
        let Some(value) = values.get_mut(slot) else { return };
        let link = value.link_mut();
        let chain = self.chain_of(link.hash);
        link.next = self.head(chain);
        self.set_head(chain, slot);
    }

    fn head(&self, chain: usize) -> Slot {
        let chunk = self.heads.get(chain >> CHUNK_BITS);
        let head = chunk.and_then(|heads| heads.get(chain & (CHUNK_HEADS - 1)));
        head.copied().unwrap_or(NO_SLOT)
    }

    fn head_mut(&mut self, chain: usize) -> Option<&mut Slot> {
        let chunk = self.heads.get_mut(chain >> CHUNK_BITS)?;
        chunk.get_mut(chain & (CHUNK_HEADS - 1))
    }

    fn set_head(&mut self, chain: usize, slot: Slot) {
        if let Some(head) = self.head_mut(chain) {
            *head = slot;
        }
    }

    fn push_chain(&mut self) {
        match self.heads.last_mut() {
            Some(chunk) if chunk.len() < CHUNK_HEADS => chunk.push(NO_SLOT),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK_HEADS);
                chunk.push(NO_SLOT);
                self.heads.push(chunk);
            }
            None => self.heads.push(vec![NO_SLOT]),
        }
        self.chains += 1;
    }

    fn pop_chain(&mut self) {
        if let Some(chunk) = self.heads.last_mut() {
            chunk.pop();
            if chunk.is_empty() {
                self.heads.pop();
            }
        }
        self.chains -= 1;
    }
}

/// The value with this `hash` for which `matches` is true, in the rest of a chain.
#[inline]
fn find_from<T: Linked>(
    mut slot: Slot,
    hash: u32,
    values: &Slab<T>,
    mut matches: impl FnMut(&T) -> bool,
) -> Option<Slot> {
    while let Some(value) = values.get(slot) {
        let link = value.link();
        // The hash tells most strangers apart without touching what they own.
        if link.hash == hash && matches(value) {
            return Some(slot);
        }
        slot = link.next;
    }
    None
}

/// How many chains there must be for `len` values: four for five values. A head costs four bytes,
/// and most other values in a chain are ruled out by their hash.
fn chains_for(len: usize) -> usize {
    len - len / 5
}

/// The chain that `chain` was split from: its number without the highest bit.
fn sibling(chain: usize) -> Option<usize> {
    let highest = chain.checked_ilog2()?;
    Some(chain & !(1 << highest))
}

/// A hash with this key.
pub fn keyed((a, b): (u64, u64)) -> RandomState {
    RandomState::with_seeds(a, b, !a, !b)
}

#[cfg(test)]
mod tests;
