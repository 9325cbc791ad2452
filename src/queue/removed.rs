//! What operations took from a queue, on its way to be freed. A large body takes the allocator a tenth of a millisecond,
//! which is whoever's that frees it: so it is left to be taken.

use super::job::Job;
use super::Queue;

/// A smaller job is freed where it is removed: that costs no more than to hand it on.
const LARGE_JOB_BYTES: usize = 16 << 10;

/// Large jobs that are gone from their queue, and are to be freed.
#[derive(Default)]
pub struct Removed {
    jobs: Vec<Job>,
    bytes: usize,
}

/// A copy of a queue has nothing to do with what was in the other.
impl Clone for Removed {
    fn clone(&self) -> Removed {
        Removed::default()
    }
}

impl Removed {
    pub(super) fn add(&mut self, job: Job) {
        if job.size() >= LARGE_JOB_BYTES {
            self.bytes += job.size();
            self.jobs.push(job);
        }
    }

    pub(super) fn free(&mut self) {
        if self.bytes > 0 {
            *self = Removed::default();
        }
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Queue {
    /// Whether there is anything for [`Queue::take_removed`].
    pub fn has_removed(&self) -> bool {
        self.removed.bytes > 0
    }

    /// The large jobs that the last operation removed. What nobody takes, the next operation frees.
    pub fn take_removed(&mut self) -> Removed {
        std::mem::take(&mut self.removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Circumstances, Delete, Id, IfTaken, Pop};

    fn id(name: &str) -> Id<'_> {
        Id::new(name.as_bytes()).unwrap()
    }

    fn queue_of(jobs: &[(&str, usize)]) -> Queue {
        let mut queue = Queue::new((0, 0));
        for (name, bytes) in jobs {
            queue.apply(&Circumstances::default(), &Add::plain(id(name), &vec![b'x'; *bytes]));
        }
        queue
    }

    fn delete(queue: &mut Queue, name: &str) {
        queue.apply(&Circumstances::default(), &Delete { ids: &[id(name)] });
    }

    #[test]
    fn a_large_job_that_is_removed_can_be_taken_once() {
        let mut queue = queue_of(&[("small", 100), ("large", 1 << 20)]);
        delete(&mut queue, "small");
        assert_eq!(queue.take_removed().bytes(), 0);
        delete(&mut queue, "large");
        assert!(queue.take_removed().bytes() > 1 << 20);
        assert_eq!(queue.take_removed().bytes(), 0);
    }

    #[test]
    fn so_can_one_that_is_replaced() {
        let mut queue = queue_of(&[("a", 1 << 20)]);
        let replace = Add { if_taken: IfTaken::Replace, ..Add::plain(id("a"), b"x") };
        queue.apply(&Circumstances::default(), &replace);
        assert!(queue.take_removed().bytes() > 1 << 20);
    }

    #[test]
    fn what_nobody_takes_does_not_add_up() {
        let mut queue = queue_of(&[("a", 1 << 20), ("b", 1 << 20)]);
        delete(&mut queue, "a");
        assert!(queue.clone().take_removed().bytes() == 0, "a copy of the queue has nothing to free");
        delete(&mut queue, "b");
        assert!((1 << 20..2 << 20).contains(&queue.take_removed().bytes()));
        delete(&mut queue, "b");
        queue.apply(&Circumstances::default(), &Pop::ONE);
        assert_eq!(queue.take_removed().bytes(), 0);
    }
}
