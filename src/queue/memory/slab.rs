//! A slab: values that never move and are named by a small number, in pages.
//!
//! Pages, because one growing array of ten million jobs would have to be copied whole when it is
//! full, which would stop the server for 100 ms. The memory of an empty page is freed at once,
//! except for one page: so a queue whose size varies around a page's edge doesn't allocate each
//! time.

use super::defrag::{Defragmenter, STEP_ALLOCATIONS};

/// The number of a value in a [`Slab`].
pub type Slot = u32;

/// The highest slot. Slots leave the highest bit free: a job uses it in the number of its policy or
/// details.
pub const SLOT_MAX: Slot = (1 << 31) - 1;

/// No slot: the end of a chain.
pub(super) const NO_SLOT: Slot = Slot::MAX;

const PAGE_BITS: u32 = 10;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;

#[derive(Clone)]
enum Cell<T> {
    Taken(T),
    Free { next: u32 },
}

struct Page<T> {
    cells: Vec<Cell<T>>,
    /// The first free cell; `NO_SLOT` if no cell is free.
    free: u32,
    taken: u32,
}

/// Keeps the capacity of the original, which the [`Slab`] counts.
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

    /// Makes room. Returns for how many more values.
    #[cold]
    fn grow(&mut self) -> usize {
        let before = self.cells.capacity();
        self.cells.reserve(1);
        self.cells.capacity() - before
    }

    /// As [`Page::grow`], for `cells` values in all.
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
    /// Pages with room; the last one is filled next. A page is in here once, from the moment it has
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

    /// All slots in use are below this number.
    pub fn places(&self) -> usize {
        self.pages.len() << PAGE_BITS
    }

    /// Bytes of the slab itself, without what its values own.
    pub fn memory(&self) -> usize {
        self.allocated_slots * size_of::<Cell<T>>()
            + self.pages.capacity() * size_of::<Page<T>>()
            + self.open.capacity() * size_of::<u32>()
    }

    /// Stores `value`. `None` if all 2^31 slots are taken.
    #[inline(always)]
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

    /// All values, in the order of their slots.
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

    /// The taken slots from `from` on: at most `at_most`, among at most `cells` cells. Also returns
    /// where to continue, if there is more. An empty page counts as one cell.
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

    /// Hands the pages and what their values own to a defragmenter, from this slot on. Returns
    /// where to continue when its time is over.
    pub fn defrag<M: Defragmenter>(
        &mut self,
        from: Slot,
        defragmenter: &mut M,
        mut defrag: impl FnMut(&mut T, &mut M),
    ) -> Option<Slot> {
        let (mut number, mut begin) = split(from);
        while let Some(page) = self.pages.get_mut(number) {
            if begin == 0 {
                defragmenter.vec(&mut page.cells);
            }
            for (at, cell) in page.cells.iter_mut().enumerate().skip(begin) {
                if at > begin && at % STEP_ALLOCATIONS == 0 && defragmenter.is_over() {
                    return Some((number << PAGE_BITS | at) as Slot);
                }
                if let Cell::Taken(value) = cell {
                    defrag(value, defragmenter);
                }
            }
            (number, begin) = (number + 1, 0);
            if number < self.pages.len() && defragmenter.is_over() {
                return Some((number << PAGE_BITS) as Slot);
            }
        }
        defragmenter.vec(&mut self.pages);
        defragmenter.vec(&mut self.open);
        None
    }

    #[cold]
    fn open_a_page(&mut self) -> Option<u32> {
        let number = u32::try_from(self.pages.len()).ok()?;
        if number > SLOT_MAX >> PAGE_BITS {
            return None;
        }
        self.pages.push(Page::EMPTY);
        self.open.push(number);
        Some(number)
    }

    /// Keeps the memory of one empty page, and frees the memory of any other.
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
mod tests;
