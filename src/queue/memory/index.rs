//! The index from a hash to a slot: linear hashing (W. Litwin, "Linear hashing: a new tool for file
//! and table addressing", VLDB 1980; for memory: P.-Å. Larson, "Dynamic hash tables", CACM 31(4),
//! 1988).
//!
//! It grows by one chain at an insert and shrinks by at most two at a removal, so that no operation
//! ever waits for a rehash of the whole: a common table of ten million ids would hold the server
//! for half a second when it doubles. The chains run through the indexed values themselves
//! ([`Chained`]): the index owns nothing but their heads, four bytes a value.

use ahash::RandomState;

use super::defrag::Defragmenter;
use super::slab::{Slot, NO_SLOT};

const CHUNK_BITS: u32 = 10;
const CHUNK_HEADS: usize = 1 << CHUNK_BITS;

const RESERVED_MAX: usize = 1 << 20;

/// Where the indexed values live, and the link that each keeps for the index.
pub trait Chained {
    /// The hash of the value in `slot`, always the same.
    fn hash(&self, slot: Slot) -> u32;
    fn next(&self, slot: Slot) -> Slot;
    fn set_next(&mut self, slot: Slot, next: Slot);
}

/// O(1) expected for each operation; the caller supplies a keyed hash, so that nobody can choose
/// ids that share a chain.
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

    /// Makes the chains for so many values at once, while there is none: none has to be split then.
    /// At most a few megabytes of them, as the number may be made up.
    pub fn reserve(&mut self, values: usize) {
        if self.len == 0 {
            (self.chains..chains_for(values.min(RESERVED_MAX))).for_each(|_| self.push_chain());
        }
    }

    /// The value with this `hash` that `matches`.
    pub fn find(
        &self,
        hash: u32,
        values: &impl Chained,
        mut matches: impl FnMut(Slot) -> bool,
    ) -> Option<Slot> {
        let mut slot = self.head(self.chain_of(hash));
        while slot != NO_SLOT {
            if matches(slot) {
                return Some(slot);
            }
            slot = values.next(slot);
        }
        None
    }

    /// Adds a value that is not in the index.
    pub fn insert(&mut self, hash: u32, slot: Slot, values: &mut impl Chained) {
        if self.chains <= chains_for(self.len) {
            self.split_one(values);
        }
        self.push(self.chain_of(hash), slot, values);
        self.len += 1;
    }

    /// Takes a value out; nothing happens if it isn't there.
    pub fn remove(&mut self, hash: u32, slot: Slot, values: &mut impl Chained) {
        let chain = self.chain_of(hash);
        let head = self.head(chain);
        if head == slot {
            self.set_head(chain, values.next(slot));
        } else {
            let Some(before) = predecessor(head, slot, values) else {
                return;
            };
            let after = values.next(slot);
            values.set_next(before, after);
        }
        self.len -= 1;
        // Twice as many chains as values are kept, not to grow and shrink at every turn.
        for _ in 0..2 {
            if self.chains > 2 * self.len {
                self.merge_one(values);
            }
        }
    }

    /// Hands the heads of the chains to a defragmenter, as [`super::slab::Slab::defrag`].
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

    /// Which chain a hash belongs to, while `chains` is between two powers of two: those that have
    /// been split go by one more bit.
    fn chain_of(&self, hash: u32) -> usize {
        let full = self.chains.checked_next_power_of_two().unwrap_or(0);
        let chain = hash as usize & full.wrapping_sub(1);
        if chain < self.chains {
            chain
        } else {
            chain & (full / 2).wrapping_sub(1)
        }
    }

    /// One more chain: takes its values from the chain that they have shared so far.
    fn split_one(&mut self, values: &mut impl Chained) {
        let new = self.chains;
        self.push_chain();
        let Some(old) = sibling(new) else { return };
        let mut slot = self.head(old);
        self.set_head(old, NO_SLOT);
        while slot != NO_SLOT {
            let next = values.next(slot);
            self.push(self.chain_of(values.hash(slot)), slot, values);
            slot = next;
        }
    }

    /// One chain less: its values go back to the chain they were split from.
    fn merge_one(&mut self, values: &mut impl Chained) {
        let Some(last) = self.chains.checked_sub(1) else {
            return;
        };
        let mut slot = self.head(last);
        self.pop_chain();
        let Some(old) = sibling(last) else { return };
        while slot != NO_SLOT {
            let next = values.next(slot);
            self.push(old, slot, values);
            slot = next;
        }
    }

    fn push(&mut self, chain: usize, slot: Slot, values: &mut impl Chained) {
        values.set_next(slot, self.head(chain));
        self.set_head(chain, slot);
    }

    fn head(&self, chain: usize) -> Slot {
        let chunk = self.heads.get(chain >> CHUNK_BITS);
        let head = chunk.and_then(|heads| heads.get(chain & (CHUNK_HEADS - 1)));
        head.copied().unwrap_or(NO_SLOT)
    }

    fn set_head(&mut self, chain: usize, slot: Slot) {
        let chunk = self.heads.get_mut(chain >> CHUNK_BITS);
        if let Some(head) = chunk.and_then(|heads| heads.get_mut(chain & (CHUNK_HEADS - 1))) {
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

/// At least so many chains for so many values: four for five, since each costs four bytes, and a
/// stranger in a chain is told by its hash.
fn chains_for(len: usize) -> usize {
    len - len / 5
}

/// The chain that `chain` was split from: its number without the highest bit.
fn sibling(chain: usize) -> Option<usize> {
    let highest = chain.checked_ilog2()?;
    Some(chain & !(1 << highest))
}

fn predecessor(head: Slot, slot: Slot, values: &impl Chained) -> Option<Slot> {
    let mut before = head;
    while before != NO_SLOT {
        let next = values.next(before);
        if next == slot {
            return Some(before);
        }
        before = next;
    }
    None
}

/// A hash with this key.
pub fn keyed((a, b): (u64, u64)) -> RandomState {
    RandomState::with_seeds(a, b, !a, !b)
}

#[cfg(test)]
mod tests;
