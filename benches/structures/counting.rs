//! An allocator that counts: bytes as they were asked for, and as jemalloc, the servers' allocator,
//! would round them up.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

pub struct Counting {
    requested: AtomicUsize,
    rounded: AtomicUsize,
}

/// Bytes now allocated.
#[derive(Clone, Copy)]
pub struct Bytes {
    pub requested: usize,
    pub rounded: usize,
}

impl Counting {
    pub const fn new() -> Self {
        Counting { requested: AtomicUsize::new(0), rounded: AtomicUsize::new(0) }
    }

    pub fn bytes(&self) -> Bytes {
        Bytes { requested: self.requested.load(Relaxed), rounded: self.rounded.load(Relaxed) }
    }

    // A load and a store instead of an atomic addition: there is one thread, and the count must not
    // be what is measured.
    fn count(&self, freed: usize, taken: usize) {
        self.requested
            .store(self.requested.load(Relaxed).wrapping_add(taken).wrapping_sub(freed), Relaxed);
        let (freed, taken) = (size_class(freed), size_class(taken));
        self.rounded
            .store(self.rounded.load(Relaxed).wrapping_add(taken).wrapping_sub(freed), Relaxed);
    }
}

/// jemalloc's size classes: 16 apart up to 128, then four for each doubling.
fn size_class(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    let step = 1 << ((bytes - 1).ilog2() - 2);
    bytes.next_multiple_of(step)
}

// SAFETY: every call is passed on to the system's allocator as it is; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(0, layout.size());
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`, which is the system's too.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(0, layout.size());
        // SAFETY: as for `alloc`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.count(layout.size(), new_size);
        // SAFETY: `memory` came from this allocator, so from the system's, with this layout.
        unsafe { System.realloc(memory, layout, new_size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        self.count(layout.size(), 0);
        // SAFETY: as for `realloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}
