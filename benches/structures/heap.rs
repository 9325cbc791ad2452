//! What everybody writes first: a hash map of jobs and a heap of those that wait. A cancelled job
//! stays in the heap until it comes up. Ready jobs are moved to a second heap.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use crate::candidate::{Candidate, Policy};

/// Due time, order of adding, id. The id is shared with the map.
type Key = (u64, u64, Rc<[u8]>);
type Heap = BinaryHeap<Reverse<Key>>;
/// SipHash with a fixed key, so that runs are alike.
type Jobs = HashMap<Rc<[u8]>, Job, BuildHasherDefault<DefaultHasher>>;

struct Job {
    order: u64,
    _body: Box<[u8]>,
    _policy: Policy,
    is_ready: bool,
}

#[derive(Default)]
pub struct MapAndHeap {
    jobs: Jobs,
    waiting: Heap,
    ready: Heap,
    added: u64,
    ready_jobs: usize,
}

impl MapAndHeap {
    /// Drops cancelled jobs from the front of both heaps.
    fn drop_cancelled(&mut self) {
        for heap in [&mut self.waiting, &mut self.ready] {
            while heap.peek().is_some_and(|Reverse((_, order, id))| {
                self.jobs.get(id).is_none_or(|job| job.order != *order)
            }) {
                heap.pop();
            }
        }
    }
}

impl Candidate for MapAndHeap {
    fn new(_start_ms: u64) -> Self {
        MapAndHeap::default()
    }

    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64) -> bool {
        if self.jobs.contains_key(id) {
            return false;
        }
        self.added += 1;
        let id: Rc<[u8]> = id.into();
        self.waiting.push(Reverse((due_ms, self.added, id.clone())));
        let job = Job {
            order: self.added,
            _body: body.into(),
            _policy: Policy::default(),
            is_ready: false,
        };
        self.jobs.insert(id, job);
        true
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        let Some(job) = self.jobs.remove(id) else {
            return false;
        };
        self.ready_jobs -= usize::from(job.is_ready);
        true
    }

    fn promote(&mut self, now_ms: u64, at_most: usize) -> bool {
        let mut left = at_most;
        while self.waiting.peek().is_some_and(|Reverse((due_ms, ..))| *due_ms <= now_ms) {
            if left == 0 {
                return false;
            }
            let Some(Reverse(key)) = self.waiting.pop() else {
                break;
            };
            if let Some(job) = self.jobs.get_mut(&key.2).filter(|job| job.order == key.1) {
                job.is_ready = true;
                self.ready.push(Reverse(key));
                self.ready_jobs += 1;
                left -= 1;
            }
        }
        true
    }

    fn ready(&self) -> usize {
        self.ready_jobs
    }

    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool {
        self.drop_cancelled();
        // The greater one of two reversed keys leaves first. No job at all is less than any.
        let heap = if self.ready.peek() >= self.waiting.peek() {
            &mut self.ready
        } else {
            &mut self.waiting
        };
        if heap.peek().is_none_or(|Reverse((due_ms, ..))| *due_ms > now_ms) {
            return false;
        }
        let Some(Reverse((_, _, id))) = heap.pop() else {
            return false;
        };
        seen(&id);
        let job = self.jobs.remove(&id);
        self.ready_jobs -= usize::from(job.is_some_and(|job| job.is_ready));
        true
    }
}
