//! What the field recommends: a hierarchical timing wheel (Varghese & Lauck, SOSP 1987) of six
//! levels of 64 lists, one ms a list at the lowest, and one list for what is more than two years
//! away. A Swiss table finds jobs by their ids.
//!
//! A job's list is given by its due time and the wheel's time alone, so jobs of one millisecond are
//! always on the same list, in their order. Where it falls short:
//! - A cascade can't be cut within a list, or jobs of one millisecond would be torn apart and a new
//!   one slip between. A list of a million jobs is one step, for the timer or for the pop that
//!   needs its first.
//! - The ready jobs are one list at whose end everything arrives. A job that comes back late can't
//!   get to its place.

use std::hash::{DefaultHasher, Hasher};

use hashbrown::HashTable;

use crate::candidate::Candidate;
use crate::list::{List, Slab, NONE};

const LEVEL_BITS: u32 = 6;
const LISTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 6;
const WHEEL_BITS: u32 = LEVEL_BITS * LEVELS as u32;

pub struct Wheel {
    slab: Slab,
    /// Google's Swiss table, without the hashes.
    index: HashTable<u32>,
    /// All jobs due by then are in `ready`.
    time_ms: u64,
    lists: [[List; LISTS]; LEVELS],
    /// A bit for each list that has jobs.
    in_use: [u64; LEVELS],
    far: List,
    ready: List,
}

/// Where a job is.
enum Place {
    Ready,
    List { level: usize, number: usize },
    Far,
}

impl Wheel {
    fn place_of(&self, job: u32) -> Place {
        let due_ms = self.slab.at(job).due_ms;
        if due_ms <= self.time_ms {
            return Place::Ready;
        }
        let level = ((self.time_ms ^ due_ms).ilog2() / LEVEL_BITS) as usize;
        if level >= LEVELS {
            return Place::Far;
        }
        let number = (due_ms >> (LEVEL_BITS * level as u32)) as usize & (LISTS - 1);
        Place::List { level, number }
    }

    fn put(&mut self, job: u32) {
        match self.place_of(job) {
            Place::Ready => self.ready.push_back(&mut self.slab, job),
            Place::Far => self.far.push_back(&mut self.slab, job),
            Place::List { level, number } => {
                self.lists[level][number].push_back(&mut self.slab, job);
                self.in_use[level] |= 1 << number;
            }
        }
    }

    fn take_off(&mut self, job: u32) {
        match self.place_of(job) {
            Place::Ready => self.ready.remove(&mut self.slab, job),
            Place::Far => self.far.remove(&mut self.slab, job),
            Place::List { level, number } => {
                let list = &mut self.lists[level][number];
                list.remove(&mut self.slab, job);
                if list.len == 0 {
                    self.in_use[level] &= !(1 << number);
                }
            }
        }
    }

    /// The earliest list in use: its level, its number and the time at which it begins.
    fn earliest_list(&self) -> Option<(usize, usize, u64)> {
        let level = self.in_use.iter().position(|bits| *bits != 0)?;
        let number = self.in_use[level].trailing_zeros() as usize;
        let shift = LEVEL_BITS * level as u32;
        let rounded = self.time_ms >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS);
        Some((level, number, rounded | (number as u64) << shift))
    }

    /// Goes on to the next list that begins by `now_ms`, and deals out its jobs. False when there
    /// is none.
    fn step(&mut self, now_ms: u64) -> bool {
        if let Some((level, number, begins_ms)) = self.earliest_list() {
            if begins_ms > now_ms {
                self.time_ms = self.time_ms.max(now_ms);
                return false;
            }
            self.time_ms = begins_ms;
            self.in_use[level] &= !(1 << number);
            let list = std::mem::replace(&mut self.lists[level][number], List::EMPTY);
            self.deal_out(list, level);
            return true;
        }
        let revolution_ms = ((self.time_ms >> WHEEL_BITS) + 1) << WHEEL_BITS;
        if self.far.len == 0 || revolution_ms > now_ms {
            self.time_ms = self.time_ms.max(now_ms);
            return false;
        }
        self.time_ms = revolution_ms;
        let far = std::mem::replace(&mut self.far, List::EMPTY);
        self.deal_out(far, LEVELS);
        true
    }

    fn deal_out(&mut self, list: List, level: usize) {
        if level == 0 {
            self.ready.append(&mut self.slab, list);
            return;
        }
        let mut next = list.head;
        for _ in 0..list.len {
            let job = next;
            next = self.slab.at(job).after;
            self.put(job);
        }
    }

    fn let_go(&mut self, job: u32) {
        let hash = hash_of(self.slab.at(job).id());
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == job) {
            entry.remove();
        }
        self.slab.remove(job);
    }
}

/// SipHash, as `HashMap` has it.
fn hash_of(id: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(id);
    hasher.finish()
}

impl Candidate for Wheel {
    fn new(start_ms: u64) -> Self {
        Wheel {
            slab: Slab::NEW,
            index: HashTable::new(),
            time_ms: start_ms,
            lists: [[List::EMPTY; LISTS]; LEVELS],
            in_use: [0; LEVELS],
            far: List::EMPTY,
            ready: List::EMPTY,
        }
    }

    fn add(&mut self, id: &[u8], body: &[u8], due_ms: u64) -> bool {
        let hash = hash_of(id);
        if self.index.find(hash, |job| self.slab.at(*job).id() == id).is_some() {
            return false;
        }
        let job = self.slab.insert(id, body, due_ms);
        self.index.insert_unique(hash, job, |job| hash_of(self.slab.at(*job).id()));
        self.put(job);
        true
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        let Some(job) = self.index.find(hash_of(id), |job| self.slab.at(*job).id() == id).copied()
        else {
            return false;
        };
        self.take_off(job);
        self.let_go(job);
        true
    }

    fn promote(&mut self, now_ms: u64, at_most: usize) -> bool {
        let before = self.ready.len;
        while ((self.ready.len - before) as usize) < at_most {
            if !self.step(now_ms) {
                return true;
            }
        }
        false
    }

    fn ready(&self) -> usize {
        self.ready.len as usize
    }

    fn pop(&mut self, now_ms: u64, seen: &mut impl FnMut(&[u8])) -> bool {
        while self.ready.len == 0 && self.step(now_ms) {}
        let job = self.ready.head;
        if job == NONE {
            return false;
        }
        seen(self.slab.at(job).id());
        self.ready.remove(&mut self.slab, job);
        self.let_go(job);
        true
    }
}
