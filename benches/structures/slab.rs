//! Jobs that stay where they are and are named by a u32, in pages, so that growing copies nothing. The
//! same for all candidates but the two of the textbook: the slab is not what is compared here.

use crate::candidate::Policy;

pub const NONE: u32 = u32::MAX;

const PAGE_BITS: u32 = 10;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;

/// A job. `Wait` is what the schedule keeps in it, `Chain` what the index keeps.
pub struct Slot<Wait, Chain> {
    /// The id, then the body: one allocation a job.
    bytes: Box<[u8]>,
    pub policy: Policy,
    id_len: u16,
    pub priority: u8,
    /// Six bits of the id's hash, for the index.
    pub tag: u8,
    pub wait: Wait,
    pub chain: Chain,
}

impl<Wait, Chain> Slot<Wait, Chain> {
    pub fn id(&self) -> &[u8] {
        &self.bytes[..self.id_len as usize]
    }
}

pub struct Slab<Wait, Chain> {
    pages: Vec<Vec<Slot<Wait, Chain>>>,
    free: u32,
    used: u32,
}

impl<Wait: Default, Chain: Default> Slab<Wait, Chain> {
    pub fn new() -> Self {
        Slab { pages: Vec::new(), free: NONE, used: 0 }
    }

    pub fn insert(&mut self, id: &[u8], body: &[u8], priority: u8) -> u32 {
        let mut bytes = Vec::with_capacity(id.len() + body.len());
        bytes.extend_from_slice(id);
        bytes.extend_from_slice(body);
        let job = Slot {
            bytes: bytes.into_boxed_slice(),
            policy: Policy::default(),
            id_len: id.len() as u16,
            priority,
            tag: 0,
            wait: Wait::default(),
            chain: Chain::default(),
        };
        if self.free == NONE {
            return self.append(job);
        }
        let slot = self.free;
        self.free = self.at(slot).policy[0];
        *self.at_mut(slot) = job;
        slot
    }

    /// The id and body are freed, the slot is next to be used again.
    pub fn remove(&mut self, slot: u32) {
        let next_free = self.free;
        let job = self.at_mut(slot);
        job.bytes = Box::default();
        job.policy[0] = next_free;
        self.free = slot;
    }

    pub fn at(&self, slot: u32) -> &Slot<Wait, Chain> {
        &self.pages[(slot >> PAGE_BITS) as usize][slot as usize & (PAGE_SLOTS - 1)]
    }

    pub fn at_mut(&mut self, slot: u32) -> &mut Slot<Wait, Chain> {
        &mut self.pages[(slot >> PAGE_BITS) as usize][slot as usize & (PAGE_SLOTS - 1)]
    }

    fn append(&mut self, job: Slot<Wait, Chain>) -> u32 {
        let slot = self.used;
        self.used += 1;
        let page = (slot >> PAGE_BITS) as usize;
        if page == self.pages.len() {
            self.pages.push(Vec::with_capacity(PAGE_SLOTS));
        }
        self.pages[page].push(job);
        slot
    }
}
