//! From an id to its slot. Two ways, both without a stored hash: a slot or its id is looked at instead.

use std::hash::{DefaultHasher, Hasher};

use hashbrown::HashTable;

use crate::slab::{Slab, NONE};

/// SipHash, as `HashMap` has it; its key is fixed here so that runs are alike.
pub fn hash_of(id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(id);
    hasher.finish()
}

pub trait Index {
    /// What it keeps in each slot.
    type Chain: Copy + Default;

    fn new() -> Self;
    fn find<W: Default>(&self, slab: &Slab<W, Self::Chain>, hash: u64, id: &[u8]) -> Option<u32>;
    fn insert<W: Default>(&mut self, slab: &mut Slab<W, Self::Chain>, hash: u64, slot: u32);
    fn remove<W: Default>(&mut self, slab: &mut Slab<W, Self::Chain>, hash: u64, slot: u32);
}

/// Google's Swiss table: all is rehashed at once when it doubles.
pub struct SwissTable(HashTable<u32>);

impl Index for SwissTable {
    type Chain = ();

    fn new() -> Self {
        SwissTable(HashTable::new())
    }

    fn find<W: Default>(&self, slab: &Slab<W, ()>, hash: u64, id: &[u8]) -> Option<u32> {
        self.0.find(hash, |&slot| slab.at(slot).id() == id).copied()
    }

    fn insert<W: Default>(&mut self, slab: &mut Slab<W, ()>, hash: u64, slot: u32) {
        self.0.insert_unique(hash, slot, |&slot| hash_of(slab.at(slot).id()));
    }

    fn remove<W: Default>(&mut self, _slab: &mut Slab<W, ()>, hash: u64, slot: u32) {
        if let Ok(entry) = self.0.find_entry(hash, |&other| other == slot) {
            entry.remove();
        }
    }
}

const CHUNK_BITS: u32 = 10;
const CHUNK_HEADS: usize = 1 << CHUNK_BITS;
const TAG_SHIFT: u32 = 58;

/// Linear hashing (Litwin 1980, in memory Larson 1988): one chain more at each insertion, taken from the
/// chain that it shared until then, so that there is never a rehash of the whole. Chains run through the slots.
/// It never shrinks here; the core's does.
pub struct LinearHash {
    heads: Vec<Box<[u32; CHUNK_HEADS]>>,
    chains: usize,
    len: usize,
}

impl LinearHash {
    fn head(&mut self, chain: usize) -> &mut u32 {
        &mut self.heads[chain >> CHUNK_BITS][chain & (CHUNK_HEADS - 1)]
    }

    /// Chains below `chains` that have been split go by one more bit than the others.
    fn chain_of(&self, hash: u64) -> usize {
        let mask = self.chains.next_power_of_two() - 1;
        let chain = hash as usize & mask;
        if chain < self.chains {
            chain
        } else {
            chain & (mask >> 1)
        }
    }

    fn push<W: Default>(&mut self, slab: &mut Slab<W, u32>, chain: usize, slot: u32) {
        let head = self.head(chain);
        slab.at_mut(slot).chain = std::mem::replace(head, slot);
    }

    fn split_one<W: Default>(&mut self, slab: &mut Slab<W, u32>) {
        let new = self.chains;
        if new & (CHUNK_HEADS - 1) == 0 {
            self.heads.push(Box::new([NONE; CHUNK_HEADS]));
        }
        self.chains += 1;
        let Some(highest_bit) = new.checked_ilog2() else { return };
        let old = new & !(1 << highest_bit);
        let mut slot = std::mem::replace(self.head(old), NONE);
        while slot != NONE {
            let next = slab.at(slot).chain;
            let chain = self.chain_of(hash_of(slab.at(slot).id()));
            self.push(slab, chain, slot);
            slot = next;
        }
    }
}

impl Index for LinearHash {
    type Chain = u32;

    fn new() -> Self {
        LinearHash { heads: Vec::new(), chains: 0, len: 0 }
    }

    fn find<W: Default>(&self, slab: &Slab<W, u32>, hash: u64, id: &[u8]) -> Option<u32> {
        if self.chains == 0 {
            return None;
        }
        let chain = self.chain_of(hash);
        let mut slot = self.heads[chain >> CHUNK_BITS][chain & (CHUNK_HEADS - 1)];
        while slot != NONE {
            let job = slab.at(slot);
            if job.tag == (hash >> TAG_SHIFT) as u8 && job.id() == id {
                return Some(slot);
            }
            slot = job.chain;
        }
        None
    }

    fn insert<W: Default>(&mut self, slab: &mut Slab<W, u32>, hash: u64, slot: u32) {
        if self.chains <= self.len {
            self.split_one(slab);
        }
        self.len += 1;
        slab.at_mut(slot).tag = (hash >> TAG_SHIFT) as u8;
        let chain = self.chain_of(hash);
        self.push(slab, chain, slot);
    }

    fn remove<W: Default>(&mut self, slab: &mut Slab<W, u32>, hash: u64, slot: u32) {
        let chain = self.chain_of(hash);
        let next = slab.at(slot).chain;
        let mut before = *self.head(chain);
        if before == slot {
            *self.head(chain) = next;
        } else {
            while slab.at(before).chain != slot {
                before = slab.at(before).chain;
            }
            slab.at_mut(before).chain = next;
        }
        self.len -= 1;
    }
}
