//! Moves a queue's memory, allocation by allocation, so that the server can give fragmented pages
//! back to the system.
//!
//! A queue can't tell which of its allocations are badly placed, nor move one without the
//! allocator. So it hands each one to a [`Defragmenter`], which returns it with the same content.
//! Only the owner of a value points to it, so no other pointer needs an update.

use super::queue::Queue;
use super::store::Store;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;

/// How far a walk over a queue's memory has got. The queue may change between two steps: what was
/// added in parts already walked is left for the next walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    part: u32,
    from: Slot,
}

impl Walk {
    pub fn number(self) -> u64 {
        u64::from(self.part) << Slot::BITS | u64::from(self.from)
    }

    pub fn from_number(number: u64) -> Walk {
        Walk { part: (number >> Slot::BITS) as u32, from: number as Slot }
    }
}

/// The parts before the lines of sorted buckets.
const FIRST_LINE: u32 = Store::PARTS;
/// The first part of the groups. The lines come before it: there are fewer of them than this.
const FIRST_OF_GROUPS: u32 = 1_024;
/// The clock is read at least once every `STEP_PARTS` parts, as parts may be empty.
const STEP_PARTS: u32 = 1_024;

impl Queue {
    /// Hands all memory from `walk` on to the defragmenter. Returns where to continue when its time
    /// is over. Each call makes progress.
    pub fn defrag(&mut self, walk: Walk, defragmenter: &mut impl Defragmenter) -> Option<Walk> {
        let Walk { mut part, mut from } = walk;
        while part < FIRST_LINE + self.lanes.line_count() {
            if let Some(from) = self.defrag_part(part, from, defragmenter) {
                return Some(Walk { part, from });
            }
            (part, from) = (part + 1, 0);
        }
        let groups = self.groups.as_mut()?;
        if part < FIRST_OF_GROUPS {
            defragmenter.boxed(groups);
            (part, from) = (FIRST_OF_GROUPS, 0);
        }
        let begin = part;
        while part - FIRST_OF_GROUPS < groups.part_count() {
            if part > begin && part % STEP_PARTS == 0 && defragmenter.is_over() {
                return Some(Walk { part, from });
            }
            if let Some(from) = groups.defrag(part - FIRST_OF_GROUPS, from, defragmenter) {
                return Some(Walk { part, from });
            }
            (part, from) = (part.checked_add(1)?, 0);
        }
        None
    }

    fn defrag_part(
        &mut self,
        part: u32,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        match part.checked_sub(FIRST_LINE) {
            None => self.store.defrag(part, from, defragmenter),
            Some(line) => self.lanes.defrag(line, from, defragmenter),
        }
    }
}

#[cfg(test)]
mod tests;
