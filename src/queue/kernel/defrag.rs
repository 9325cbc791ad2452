//! Putting a queue's memory elsewhere, allocation by allocation: for a server that wants to give
//! pages back of which others have left only parts.
//!
//! A queue can't tell which of its allocations lie badly, nor move one without the allocator. So it
//! hands each to a [`Defragmenter`], which gives it back with the same content. No value holds a
//! pointer to another, but as the owner of it: so nothing else has to be told.

use super::queue::Queue;
use super::store::Store;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;

/// How far a walk over a queue's memory has got. It may go on after any change of the queue: what
/// has come meanwhile where the walk has been is left for the next one.
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
/// Behind those lines, of which there are fewer, the parts of the groups.
const FIRST_OF_GROUPS: u32 = 1_024;
/// So many parts may hold nothing between two looks at the clock.
const STEP_PARTS: u32 = 1_024;

impl Queue {
    /// Hands all memory from there on to the defragmenter; where to go on, when the time is over.
    /// Each call gets on.
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
