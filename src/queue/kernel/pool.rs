//! The job pool: every job of a queue, by slot and by id.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use super::job::Job;
use crate::queue::lines::buckets::{BucketListener, BucketNumber};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::index::{keyed, Chained, Index};
use crate::queue::memory::slab::{Slab, Slot, NO_SLOT};
use crate::queue::value::ids::Id;
use crate::queue::value::policy::PolicyNumber;
use crate::queue::value::time::Time;

/// O(1) for each operation.
#[derive(Clone)]
pub(in crate::queue) struct Pool {
    jobs: Jobs,
    ids: Index,
    /// Bytes of all ids and bodies.
    bytes: usize,
}

#[derive(Clone)]
struct Jobs {
    slab: Slab<Job>,
    /// Keyed from outside, so that nobody can prepare ids that share a chain.
    hash: RandomState,
}

impl Jobs {
    fn hash_of(&self, id: Id) -> u32 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(id.bytes());
        hasher.finish() as u32
    }
}

impl Chained for Jobs {
    fn hash(&self, slot: Slot) -> u32 {
        self.slab.get(slot).map_or(0, |job| job.hash)
    }

    fn next(&self, slot: Slot) -> Slot {
        self.slab.get(slot).map_or(NO_SLOT, |job| job.next)
    }

    fn set_next(&mut self, slot: Slot, next: Slot) {
        if let Some(job) = self.slab.get_mut(slot) {
            job.next = next;
        }
    }
}

impl BucketListener for Pool {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        if let Some(job) = self.jobs.slab.get_mut(slot) {
            job.bucket = bucket;
        }
    }
}

impl Pool {
    pub fn new(seed: (u64, u64)) -> Pool {
        Pool {
            jobs: Jobs { slab: Slab::default(), hash: keyed(seed) },
            ids: Index::default(),
            bytes: 0,
        }
    }

    /// The hash by which ids are found, for other names of the queue.
    pub fn hash_state(&self) -> RandomState {
        self.jobs.hash.clone()
    }

    pub fn len(&self) -> usize {
        self.jobs.slab.len()
    }

    pub fn memory(&self) -> usize {
        self.jobs.slab.memory() + self.ids.memory() + self.bytes
    }

    /// The job with this id.
    pub fn find(&self, id: Id) -> Option<Slot> {
        self.look_up(id).slot
    }

    /// As [`Pool::find`], for an insert that may follow.
    pub fn look_up(&self, id: Id) -> Lookup {
        let hash = self.jobs.hash_of(id);
        let is_it = |slot| self.jobs.slab.get(slot).is_some_and(|job| job.is_called(id, hash));
        Lookup { slot: self.ids.find(hash, &self.jobs, is_it), hash }
    }

    pub fn get(&self, slot: Slot) -> Option<&Job> {
        self.jobs.slab.get(slot)
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Job> {
        self.jobs.slab.get_mut(slot)
    }

    /// The next jobs from this slot on, at most so many, found among at most so many slots; and
    /// where to go on, if there is more.
    pub fn scan(&self, from: Slot, jobs: usize, slots: usize) -> (Vec<Slot>, Option<Slot>) {
        self.jobs.slab.scan(from, jobs, slots)
    }

    /// Hands the jobs' memory to a defragmenter, as [`Slab::defrag`].
    pub fn defrag_jobs(
        &mut self,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        self.jobs.slab.defrag(from, defragmenter, |job, defragmenter| job.defrag(defragmenter))
    }

    pub fn defrag_ids(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        self.ids.defrag(from, defragmenter)
    }

    /// So many jobs are about to come.
    pub fn expect(&mut self, jobs: usize) {
        self.ids.reserve(jobs);
    }

    /// Adds a job whose id, which was looked up, is not taken; `None` when there are 2^32 − 1
    /// others.
    pub fn insert(
        &mut self,
        id: Id,
        body: &[u8],
        created: Time,
        policy: PolicyNumber,
        found: Lookup,
    ) -> Option<Slot> {
        let job = Job::new(id, body, created, policy, found.hash);
        let size = job.size();
        let slot = self.jobs.slab.insert(job)?;
        self.ids.insert(found.hash, slot, &mut self.jobs);
        self.bytes += size;
        Some(slot)
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Job> {
        let hash = self.jobs.hash(slot);
        self.ids.remove(hash, slot, &mut self.jobs);
        let job = self.jobs.slab.remove(slot)?;
        self.bytes -= job.size();
        Some(job)
    }
}

/// What a look-up came to.
#[derive(Clone, Copy)]
pub(in crate::queue) struct Lookup {
    pub slot: Option<Slot>,
    hash: u32,
}

#[cfg(test)]
mod tests;
