//! What one writes first, from the standard library: (a) a hash map of jobs and an ordered set of who waits,
//! (b) the same with a heap, from which cancelled jobs are only dropped when they come up.
//!
//! Ready jobs are moved to a second set or heap.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use crate::candidate::{Candidate, Policy};
use crate::lanes::{promote_each, Lanes};

/// Due time, order of scheduling, id. The id is shared with the map.
type Key = (u64, u64, Rc<[u8]>);

/// The same SipHash with the same fixed key as for the other candidates.
type Jobs = HashMap<Rc<[u8]>, Job, BuildHasherDefault<DefaultHasher>>;

struct Job {
    due_ms: u64,
    order: u64,
    _body: Box<[u8]>,
    _policy: Policy,
    priority: u8,
    is_ready: bool,
}

/// Where keys wait and where they are ready.
pub trait Line: Default {
    fn push(&mut self, key: Key);
    fn first(&self) -> Option<&Key>;
    fn take_first(&mut self) -> Option<Key>;
    /// A heap can't: it leaves the key where it is.
    fn forget(&mut self, key: Key) -> Forgotten;
}

pub enum Forgotten {
    Gone,
    Stale,
}

impl Line for BTreeSet<Key> {
    fn push(&mut self, key: Key) {
        self.insert(key);
    }
    fn first(&self) -> Option<&Key> {
        BTreeSet::first(self)
    }
    fn take_first(&mut self) -> Option<Key> {
        self.pop_first()
    }
    fn forget(&mut self, key: Key) -> Forgotten {
        self.remove(&key);
        Forgotten::Gone
    }
}

impl Line for BinaryHeap<Reverse<Key>> {
    fn push(&mut self, key: Key) {
        BinaryHeap::push(self, Reverse(key));
    }
    fn first(&self) -> Option<&Key> {
        self.peek().map(|Reverse(key)| key)
    }
    fn take_first(&mut self) -> Option<Key> {
        self.pop().map(|Reverse(key)| key)
    }
    fn forget(&mut self, _key: Key) -> Forgotten {
        Forgotten::Stale
    }
}

#[derive(Default)]
struct Lane<L> {
    waiting: L,
    ready: L,
}

impl<L: Line> Lane<L> {
    /// The line whose first job leaves first.
    fn next_line(&mut self) -> &mut L {
        match (self.waiting.first(), self.ready.first()) {
            (Some(waiting), Some(ready)) if waiting < ready => &mut self.waiting,
            (Some(_), None) => &mut self.waiting,
            (_, _) => &mut self.ready,
        }
    }

    /// Drops cancelled jobs from the front of both lines.
    fn drop_stale(&mut self, jobs: &Jobs) {
        for line in [&mut self.waiting, &mut self.ready] {
            while line.first().is_some_and(|key| !is_current(jobs, key)) {
                line.take_first();
            }
        }
    }
}

fn is_current(jobs: &Jobs, (_, order, id): &Key) -> bool {
    jobs.get(id).is_some_and(|job| job.order == *order)
}

pub struct Textbook<L> {
    jobs: Jobs,
    lanes: Lanes<Lane<L>>,
    added: u64,
    ready: usize,
    /// Whether keys of cancelled jobs may be in the lines.
    has_stale: bool,
}

impl<L: Line> Textbook<L> {
    fn forget(&mut self, id: Rc<[u8]>, job: &Job) {
        let lane = self.lanes.of(job.priority, Lane::default);
        let line = if job.is_ready { &mut lane.ready } else { &mut lane.waiting };
        if let Forgotten::Stale = line.forget((job.due_ms, job.order, id)) {
            self.has_stale = true;
        }
        self.ready -= usize::from(job.is_ready);
    }
}

impl<L: Line> Candidate for Textbook<L> {
    const TAKES_LATE_JOBS: bool = true;

    fn new(_start_ms: u64) -> Self {
        Textbook { jobs: Jobs::default(), lanes: Lanes::new(), added: 0, ready: 0, has_stale: false }
    }

    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64, priority: u8) -> bool {
        if self.jobs.contains_key(id) {
            return false;
        }
        self.added += 1;
        let id: Rc<[u8]> = id.into();
        self.lanes.of(priority, Lane::default).waiting.push((due_ms, self.added, id.clone()));
        let job = Job {
            due_ms,
            order: self.added,
            _body: body.into(),
            _policy: Policy::default(),
            priority,
            is_ready: false,
        };
        self.jobs.insert(id, job);
        true
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        let Some((id, job)) = self.jobs.remove_entry(id) else {
            return false;
        };
        self.forget(id, &job);
        true
    }

    fn earliest_due_ms(&mut self) -> Option<u64> {
        let jobs = &self.jobs;
        let lanes = self.lanes.iter_mut();
        let earliest = lanes.filter_map(|lane| {
            lane.drop_stale(jobs);
            lane.next_line().first().map(|key| key.0)
        });
        earliest.min()
    }

    fn promote(&mut self, now_ms: u64, at_most: usize) -> bool {
        let jobs = &mut self.jobs;
        let ready = &mut self.ready;
        promote_each(&mut self.lanes, at_most, |lane, left| {
            let mut promoted = 0;
            while promoted < left && lane.waiting.first().is_some_and(|key| key.0 <= now_ms) {
                let Some(key) = lane.waiting.take_first() else { break };
                let Some(job) = jobs.get_mut(&key.2).filter(|job| job.order == key.1) else {
                    continue;
                };
                job.is_ready = true;
                lane.ready.push(key);
                promoted += 1;
            }
            *ready += promoted;
            promoted
        })
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool {
        let (jobs, has_stale) = (&self.jobs, self.has_stale);
        let key = self.lanes.iter_mut().find_map(|lane| {
            if has_stale {
                lane.drop_stale(jobs);
            }
            let line = lane.next_line();
            line.first().filter(|key| key.0 <= now_ms)?;
            line.take_first()
        });
        let Some((_, _, id)) = key else {
            return false;
        };
        seen(&id);
        if let Some(job) = self.jobs.remove(&id) {
            self.ready -= usize::from(job.is_ready);
        }
        true
    }
}
