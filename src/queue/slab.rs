//! A slab: values that stay where they are and are named by a small number, in pages.
//!
//! Pages, because one growing array of ten million jobs would have to be copied whole when it fills up,
//! and that copy is somebody's 100 ms of silence. A page that empties is given back at once (but one, so
//! that a queue hovering at the edge of a page doesn't allocate at every turn).

use super::mover::{Mover, STEP_ALLOCATIONS};

/// The number of a value in a [`Slab`].
pub type Slot = u32;

/// No slot: the end of a chain, a job that was never handed out.
pub const NO_SLOT: Slot = Slot::MAX;

const PAGE_BITS: u32 = 10;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;

#[derive(Clone)]
enum Cell<T> {
    Taken(T),
    Free { next: u32 },
}

struct Page<T> {
    cells: Vec<Cell<T>>,
    /// The first free cell; `NO_SLOT` when there is none among `cells`.
    free: u32,
    taken: u32,
}

/// With the room of the original: that is what the [`Slab`] counts.
impl<T: Clone> Clone for Page<T> {
    fn clone(&self) -> Page<T> {
        let mut cells = Vec::with_capacity(self.cells.capacity());
        cells.extend_from_slice(&self.cells);
        Page { cells, ..*self }
    }
}

impl<T> Page<T> {
    const EMPTY: Page<T> = Page { cells: Vec::new(), free: NO_SLOT, taken: 0 };

    fn is_full(&self) -> bool {
        self.taken as usize == PAGE_SLOTS
    }

    /// Makes room; says for how many more.
    #[cold]
    fn grow(&mut self) -> usize {
        let before = self.cells.capacity();
        self.cells.reserve(1);
        self.cells.capacity() - before
    }

    /// As [`Page::grow`], for so many in all.
    #[cold]
    fn grow_to(&mut self, cells: usize) -> usize {
        let before = self.cells.capacity();
        self.cells.reserve_exact(cells.saturating_sub(self.cells.len()));
        self.cells.capacity() - before
    }

    fn insert(&mut self, value: T) -> Option<usize> {
        self.taken += 1;
        if self.free == NO_SLOT {
            self.cells.push(Cell::Taken(value));
            return Some(self.cells.len() - 1);
        }
        let at = self.free as usize;
        let cell = self.cells.get_mut(at)?;
        if let Cell::Free { next } = cell {
            self.free = *next;
        }
        *cell = Cell::Taken(value);
        Some(at)
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        let cell = self.cells.get_mut(at)?;
        if let Cell::Free { .. } = cell {
            return None;
        }
        let freed = Cell::Free { next: self.free };
        match std::mem::replace(cell, freed) {
            Cell::Taken(value) => {
                self.free = at as u32;
                self.taken -= 1;
                Some(value)
            }
            Cell::Free { .. } => None,
        }
    }
}

/// Values named by a [`Slot`]. Every operation is O(1); no value ever moves.
#[derive(Clone)]
pub struct Slab<T> {
    pages: Vec<Page<T>>,
    /// Pages with room, the next one to be filled last. A page is in here once, from the moment it has
    /// room until it is full.
    open: Vec<u32>,
    /// The one empty page that keeps its memory.
    spare: Option<u32>,
    len: usize,
    allocated_slots: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab { pages: Vec::new(), open: Vec::new(), spare: None, len: 0, allocated_slots: 0 }
    }
}

impl<T> Slab<T> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// No value has this number or a higher one.
    pub fn places(&self) -> usize {
        self.pages.len() << PAGE_BITS
    }

    /// Bytes of memory that the slab itself holds, not what its values own elsewhere.
    pub fn memory(&self) -> usize {
        self.allocated_slots * size_of::<Cell<T>>()
            + self.pages.capacity() * size_of::<Page<T>>()
            + self.open.capacity() * size_of::<u32>()
    }

    /// Puts `value` somewhere; `None` when all of the 2^32 − 1 slots are taken.
    pub fn insert(&mut self, value: T) -> Option<Slot> {
        let number = match self.open.last() {
            Some(number) => *number,
            None => self.open_a_page()?,
        };
        let page = self.pages.get_mut(number as usize)?;
        if page.taken == 0 && self.spare == Some(number) {
            self.spare = None;
        }
        if page.free == NO_SLOT && page.cells.len() == page.cells.capacity() {
            // The first page grows with the queue: most queues are small.
            self.allocated_slots += if number > 0 { page.grow_to(PAGE_SLOTS) } else { page.grow() };
        }
        let at = page.insert(value)?;
        if page.is_full() {
            self.open.pop();
        }
        self.len += 1;
        Some(number << PAGE_BITS | at as u32)
    }

    pub fn get(&self, slot: Slot) -> Option<&T> {
        let (number, at) = split(slot);
        match self.pages.get(number)?.cells.get(at)? {
            Cell::Taken(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    pub fn get_mut(&mut self, slot: Slot) -> Option<&mut T> {
        let (number, at) = split(slot);
        match self.pages.get_mut(number)?.cells.get_mut(at)? {
            Cell::Taken(value) => Some(value),
            Cell::Free { .. } => None,
        }
    }

    /// All of them, in the order of their slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut T)> {
        let cells = self.pages.iter_mut().enumerate().flat_map(|(number, page)| {
            page.cells
                .iter_mut()
                .enumerate()
                .map(move |(at, cell)| ((number << PAGE_BITS | at) as Slot, cell))
        });
        cells.filter_map(|(slot, cell)| match cell {
            Cell::Taken(value) => Some((slot, value)),
            Cell::Free { .. } => None,
        })
    }

    pub fn remove(&mut self, slot: Slot) -> Option<T> {
        let (number, at) = split(slot);
        let page = self.pages.get_mut(number)?;
        let was_full = page.is_full();
        let value = page.remove(at)?;
        self.len -= 1;
        if was_full {
            self.open.push(number as u32);
        }
        if page.taken == 0 {
            self.page_emptied(number as u32);
        }
        Some(value)
    }

    /// The next taken slots from this one on, at most so many, found among at most so many cells; and
    /// where to go on, if there is more. Empty pages count as one cell.
    pub fn scan(&self, from: Slot, at_most: usize, mut cells: usize) -> (Vec<Slot>, Option<Slot>) {
        let mut found = Vec::new();
        let (mut number, mut at) = split(from);
        while let Some(page) = self.pages.get(number) {
            while let Some(cell) = page.cells.get(at).filter(|_| page.taken > 0) {
                let slot = (number << PAGE_BITS | at) as Slot;
                if found.len() >= at_most || cells == 0 {
                    return (found, Some(slot));
                }
                if matches!(cell, Cell::Taken(_)) {
                    found.push(slot);
                }
                cells -= 1;
                at += 1;
            }
            cells = cells.saturating_sub(1);
            (number, at) = (number + 1, 0);
        }
        (found, None)
    }

    /// Hands the pages, and what their values own, to a mover: from this slot on. Where to go on, when the time is over.
    pub fn relocate<M: Mover>(
        &mut self,
        from: Slot,
        mover: &mut M,
        mut relocate: impl FnMut(&mut T, &mut M),
    ) -> Option<Slot> {
        let (mut number, mut begin) = split(from);
        while let Some(page) = self.pages.get_mut(number) {
            if begin == 0 {
                mover.vec(&mut page.cells);
            }
            for (at, cell) in page.cells.iter_mut().enumerate().skip(begin) {
                if at > begin && at % STEP_ALLOCATIONS == 0 && mover.is_over() {
                    return Some((number << PAGE_BITS | at) as Slot);
                }
                if let Cell::Taken(value) = cell {
                    relocate(value, mover);
                }
            }
            (number, begin) = (number + 1, 0);
            if number < self.pages.len() && mover.is_over() {
                return Some((number << PAGE_BITS) as Slot);
            }
        }
        mover.vec(&mut self.pages);
        mover.vec(&mut self.open);
        None
    }

    fn open_a_page(&mut self) -> Option<u32> {
        let number = u32::try_from(self.pages.len()).ok()?;
        // The last page would hold the slot that means "none".
        if number >= NO_SLOT >> PAGE_BITS {
            return None;
        }
        self.pages.push(Page::EMPTY);
        self.open.push(number);
        Some(number)
    }

    /// Keeps the memory of one empty page, gives back that of any other.
    fn page_emptied(&mut self, number: u32) {
        if self.spare.is_none() {
            self.spare = Some(number);
            return;
        }
        if let Some(page) = self.pages.get_mut(number as usize) {
            self.allocated_slots -= page.cells.capacity();
            *page = Page::EMPTY;
        }
    }
}

fn split(slot: Slot) -> (usize, usize) {
    ((slot >> PAGE_BITS) as usize, slot as usize & (PAGE_SLOTS - 1))
}

#[cfg(test)]
mod tests {
    use super::super::mover::Everything;
    use super::*;

    #[test]
    fn a_value_is_found_under_its_slot_until_it_is_removed() {
        let mut slab = Slab::default();
        let a = slab.insert("a").unwrap();
        let b = slab.insert("b").unwrap();
        assert_eq!((slab.get(a), slab.get(b)), (Some(&"a"), Some(&"b")));
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.remove(a), None);
        assert_eq!(slab.get(a), None);
        assert_eq!(slab.insert("c"), Some(a), "a free slot is taken again");
        assert_eq!(slab.len(), 2);
    }

    #[test]
    fn a_slot_that_never_was_holds_nothing() {
        let mut slab: Slab<u8> = Slab::default();
        assert_eq!(slab.get(0), None);
        assert_eq!(slab.get(NO_SLOT), None);
        assert_eq!(slab.remove(12_345_678), None);
    }

    #[test]
    fn pages_that_empty_give_their_memory_back_but_one() {
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..10 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
        let full = slab.memory();
        for slot in &slots {
            slab.remove(*slot);
        }
        assert_eq!(slab.len(), 0);
        assert_eq!(slab.allocated_slots, PAGE_SLOTS);
        let again: Vec<_> = (0..10 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
        assert_eq!(slab.allocated_slots, 10 * PAGE_SLOTS);
        assert!(slab.memory() <= full + 64, "no page is counted twice");
        for (n, slot) in again.iter().enumerate() {
            assert_eq!(slab.get(*slot), Some(&n));
        }
    }

    #[test]
    fn the_spare_page_is_the_one_that_was_emptied_last_but_not_used_since() {
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..2 * PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
        // The second page is kept, the first one gives its memory back.
        slots.iter().rev().for_each(|slot| assert!(slab.remove(*slot).is_some()));
        assert_eq!(slab.allocated_slots, PAGE_SLOTS);
        for _ in 0..2 {
            let slot = slab.insert(7).unwrap();
            assert_eq!(slot, 0, "into the first one");
            slab.remove(slot);
            assert_eq!(slab.allocated_slots, PAGE_SLOTS, "which isn't kept besides");
        }
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..PAGE_SLOTS).map(|n| slab.insert(n).unwrap()).collect();
        slots.iter().for_each(|slot| assert!(slab.remove(*slot).is_some()));
        for _ in 0..2 {
            let slot = slab.insert(7).unwrap();
            slab.remove(slot);
            assert_eq!(slab.allocated_slots, PAGE_SLOTS, "it is kept again");
        }
    }

    #[test]
    fn the_first_page_grows_and_the_others_do_not() {
        let mut slab = Slab::default();
        slab.insert(0);
        assert!(slab.pages[0].cells.capacity() < PAGE_SLOTS / 4);
        (0..PAGE_SLOTS).for_each(|n| assert!(slab.insert(n).is_some()));
        assert_eq!(slab.pages[1].cells.capacity(), PAGE_SLOTS);
    }

    #[test]
    fn all_values_are_told_with_their_slots_and_empty_pages_are_stepped_over() {
        let mut slab = Slab::default();
        let slots: Vec<_> = (0..PAGE_SLOTS + 10).map(|n| slab.insert(n).unwrap()).collect();
        assert!(slab.iter_mut().map(|(slot, value)| (slot, *value)).eq(slots.iter().copied().zip(0..)));
        slots[..PAGE_SLOTS].iter().for_each(|slot| assert!(slab.remove(*slot).is_some()));
        let behind = slots[PAGE_SLOTS];
        assert_eq!(slab.scan(0, 1, 2), (vec![behind], Some(behind + 1)));
    }

    #[test]
    fn a_walk_over_its_memory_ends_behind_some_values_when_the_time_is_over() {
        let mut slab = Slab::default();
        (0..PAGE_SLOTS + 1).for_each(|n| assert!(slab.insert(n).is_some()));
        let mut ends = Vec::new();
        while let Some(end) = slab.relocate(
            ends.last().copied().unwrap_or_default(),
            &mut Everything::in_calls_of(0),
            |_, _| (),
        ) {
            ends.push(end);
        }
        assert!(ends
            .iter()
            .copied()
            .eq((1..=PAGE_SLOTS / STEP_ALLOCATIONS).map(|n| (n * STEP_ALLOCATIONS) as Slot)));
    }

    #[test]
    fn memory_is_that_of_cells_pages_and_of_the_list_of_open_ones() {
        let mut slab = Slab::default();
        assert_eq!(slab.memory(), 0);
        (0..PAGE_SLOTS as u64 + 10).for_each(|n| assert!(slab.insert(n).is_some()));
        let cells: usize = slab.pages.iter().map(|page| page.cells.capacity()).sum();
        assert!(cells > PAGE_SLOTS && slab.pages.capacity() > 1 && slab.open.capacity() > 1);
        let (pages, open) = (slab.pages.capacity(), slab.open.capacity());
        assert_eq!(
            slab.memory(),
            cells * size_of::<Cell<u64>>() + pages * size_of::<Page<u64>>() + open * size_of::<u32>()
        );
    }
}
