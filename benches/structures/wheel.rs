//! (d) A hierarchical timing wheel (Varghese & Lauck, SOSP 1987) of six levels of 64 lists, one ms a list
//! at the lowest, and one list for what is more than two years away.
//!
//! A job's list is given by its due time and the wheel's time alone, so jobs of one millisecond are always
//! on the same list, in their order. What bends:
//! - A cascade can't be cut within a list, or jobs of one millisecond would be torn apart and a new one
//!   slip between. A list of a million jobs is one step, for the timer or for the pop that needs its first.
//! - The ready jobs are one list at whose end everything arrives. A job that comes back late can't get
//!   to its place.
//! - The next due time is on the lowest list in use: to know it exactly, that list has to be walked.

use crate::linked::{Links, List};
use crate::slab::Slab;
use crate::slab_queue::Schedule;

const LEVEL_BITS: u32 = 6;
const LISTS: usize = 1 << LEVEL_BITS;
const LEVELS: usize = 6;
const WHEEL_BITS: u32 = LEVEL_BITS * LEVELS as u32;

pub struct Wheel {
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
    fn place_of(&self, due_ms: u64) -> Place {
        if due_ms <= self.time_ms {
            return Place::Ready;
        }
        let level = ((self.time_ms ^ due_ms).ilog2() / LEVEL_BITS) as usize;
        if level >= LEVELS {
            return Place::Far;
        }
        Place::List { level, number: digit(due_ms, level) }
    }

    fn put<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        match self.place_of(slab.at(slot).wait.due_ms()) {
            Place::Ready => self.ready.push_back(slab, slot),
            Place::Far => self.far.push_back(slab, slot),
            Place::List { level, number } => {
                self.lists[level][number].push_back(slab, slot);
                self.in_use[level] |= 1 << number;
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

    /// Goes on to the next list that begins by `now_ms`, and deals out its jobs. False when there is none.
    fn step<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64) -> bool {
        if let Some((level, number, begins_ms)) = self.earliest_list() {
            if begins_ms > now_ms {
                self.time_ms = self.time_ms.max(now_ms);
                return false;
            }
            self.time_ms = begins_ms;
            self.in_use[level] &= !(1 << number);
            let list = std::mem::replace(&mut self.lists[level][number], List::EMPTY);
            self.deal_out(slab, list, level);
            return true;
        }
        let turn_ms = ((self.time_ms >> WHEEL_BITS) + 1) << WHEEL_BITS;
        if self.far.is_empty() || turn_ms > now_ms {
            self.time_ms = self.time_ms.max(now_ms);
            return false;
        }
        self.time_ms = turn_ms;
        let far = std::mem::replace(&mut self.far, List::EMPTY);
        self.deal_out(slab, far, LEVELS);
        true
    }

    fn deal_out<C: Default>(&mut self, slab: &mut Slab<Links, C>, list: List, level: usize) {
        if level == 0 {
            self.ready.append(slab, list);
            return;
        }
        let mut next = list.first();
        for _ in 0..list.len {
            let Some(slot) = next else { return };
            next = slab.at(slot).wait.after();
            self.put(slab, slot);
        }
    }
}

fn digit(time_ms: u64, level: usize) -> usize {
    (time_ms >> (LEVEL_BITS * level as u32)) as usize & (LISTS - 1)
}

impl Schedule for Wheel {
    const TAKES_LATE_JOBS: bool = false;
    type Wait = Links;

    fn new(start_ms: u64) -> Self {
        Wheel {
            time_ms: start_ms,
            lists: [[List::EMPTY; LISTS]; LEVELS],
            in_use: [0; LEVELS],
            far: List::EMPTY,
            ready: List::EMPTY,
        }
    }

    fn insert<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32, due_ms: u64) {
        slab.at_mut(slot).wait.set_due_ms(due_ms);
        self.put(slab, slot);
    }

    fn remove<C: Default>(&mut self, slab: &mut Slab<Links, C>, slot: u32) {
        match self.place_of(slab.at(slot).wait.due_ms()) {
            Place::Ready => self.ready.remove(slab, slot),
            Place::Far => self.far.remove(slab, slot),
            Place::List { level, number } => {
                let list = &mut self.lists[level][number];
                list.remove(slab, slot);
                if list.is_empty() {
                    self.in_use[level] &= !(1 << number);
                }
            }
        }
    }

    fn earliest_due_ms<C: Default>(&self, slab: &Slab<Links, C>) -> Option<u64> {
        let list = match self.earliest_list() {
            _ if !self.ready.is_empty() => &self.ready,
            Some((level, number, _)) => &self.lists[level][number],
            None => &self.far,
        };
        list.iter(slab).map(|slot| slab.at(slot).wait.due_ms()).min()
    }

    fn promote<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64, at_most: usize) -> usize {
        let before = self.ready.len;
        while ((self.ready.len - before) as usize) < at_most && self.step(slab, now_ms) {}
        (self.ready.len - before) as usize
    }

    fn ready(&self) -> usize {
        self.ready.len as usize
    }

    fn pop<C: Default>(&mut self, slab: &mut Slab<Links, C>, now_ms: u64) -> Option<u32> {
        while self.ready.is_empty() && self.step(slab, now_ms) {}
        let slot = self.ready.first()?;
        self.ready.remove(slab, slot);
        Some(slot)
    }
}
