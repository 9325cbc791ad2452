//! The job pool: every job of a queue, by slot and by id.

use std::hash::{BuildHasher, Hasher};

use ahash::RandomState;

use super::job::Job;
use crate::queue::lines::buckets::{BucketListener, BucketNumber};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::index::{keyed, Index, Link};
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::ids::Id;
use crate::queue::value::policy::PolicyNumber;
use crate::queue::value::time::Time;

/// Every operation is O(1).
#[derive(Clone)]
pub(in crate::queue) struct Pool {
    jobs: Slab<Job>,
    ids: Index,
    /// Keyed from outside, so that nobody can prepare ids that share a chain.
    hash: RandomState,
    /// Bytes of all ids and bodies.
    bytes: usize,
}

impl BucketListener for Pool {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        if let Some(job) = self.jobs.get_mut(slot) {
            job.bucket = bucket;
        }
    }
}

impl Pool {
    pub fn new(seed: (u64, u64)) -> Pool {
        Pool { jobs: Slab::default(), ids: Index::default(), hash: keyed(seed), bytes: 0 }
    }

    /// The hash for ids, which group names use, too.
    pub fn hash_state(&self) -> RandomState {
        self.hash.clone()
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn memory(&self) -> usize {
        self.jobs.memory() + self.ids.memory() + self.bytes
    }

    /// The job with this id.
    pub fn find(&self, id: Id) -> Option<Slot> {
        self.look_up(id).slot
    }

    /// As [`Pool::find`], for an insert that may follow.
    pub fn look_up(&self, id: Id) -> Lookup {
        let hash = self.hash_of(id);
        Lookup { slot: self.ids.find(hash, &self.jobs, |job| job.id_and_body().0 == id), hash }
    }

    #[inline(always)]
    fn hash_of(&self, id: Id) -> u32 {
        let mut hasher = self.hash.build_hasher();
        hasher.write(id.bytes());
        hasher.finish() as u32
    }

    pub fn get(&self, slot: Slot) -> Option<&Job> {
        self.jobs.get(slot)
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut Job> {
        self.jobs.get_mut(slot)
    }

    /// The next jobs from the slot `from` on: at most `jobs`, among at most `slots` slots. Also
    /// returns where to continue, if there is more.
    pub fn scan(&self, from: Slot, jobs: usize, slots: usize) -> (Vec<Slot>, Option<Slot>) {
        self.jobs.scan(from, jobs, slots)
    }

    /// Hands the jobs' memory to a defragmenter: see [`Slab::defrag`].
    pub fn defrag_jobs(
        &mut self,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        self.jobs.defrag(from, defragmenter, |job, defragmenter| job.defrag(defragmenter))
    }

    pub fn defrag_ids(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        self.ids.defrag(from, defragmenter)
    }

    /// Makes room in the index for `jobs` more jobs.
    pub fn reserve(&mut self, jobs: usize) {
        self.ids.reserve(jobs);
    }

    /// Adds a job; `found` must be the look-up of its id, which isn't taken. `None` if the pool has
    /// 2^31 jobs.
    pub fn insert(
        &mut self,
        id: Id,
        body: &[u8],
        created: Time,
        policy: PolicyNumber,
        found: Lookup,
    ) -> Option<Slot> {
        let job = Job::new(id, body, created, policy, Link::new(found.hash));
        let size = job.size();
        let slot = self.jobs.insert(job)?;
        self.ids.insert(slot, &mut self.jobs);
        self.bytes += size;
        Some(slot)
    }

    /// The same with an id that hasn't been looked up. `None` if it is taken, too.
    #[inline]
    pub fn insert_unless_taken(
        &mut self,
        id: Id,
        body: &[u8],
        created: Time,
        policy: PolicyNumber,
    ) -> Option<Slot> {
        let hash = self.hash_of(id);
        let is_it = |job: &Job| job.id_and_body().0 == id;
        let make = |link| Job::new(id, body, created, policy, link);
        let slot = self.ids.insert_unless(hash, &mut self.jobs, is_it, make)?;
        self.bytes += Job::size_of(id, body);
        Some(slot)
    }

    /// Gives the job in a slot another body; the job as it was.
    pub fn set_body(&mut self, slot: Slot, body: &[u8]) -> Option<Job> {
        let job = self.jobs.get_mut(slot)?;
        let new = job.with_body(body);
        self.bytes = self.bytes - job.size() + new.size();
        Some(std::mem::replace(job, new))
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Job> {
        self.ids.remove(slot, &mut self.jobs);
        let job = self.jobs.remove(slot)?;
        self.bytes -= job.size();
        Some(job)
    }
}

/// The result of a look-up.
#[derive(Clone, Copy)]
pub(in crate::queue) struct Lookup {
    pub slot: Option<Slot>,
    hash: u32,
}

#[cfg(test)]
mod tests;
