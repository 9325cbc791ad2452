//! The allocator: the server's own, so that its memory limits and `INFO memory` include the queues.
//!
//! The crate's `RedisAlloc` knows neither `realloc` nor zeroed memory, and aborts outside a server. This
//! one falls back on the system's allocator there, so that tests, benches and fuzz targets can link the
//! crate. Inside a server the pointers are set before the first allocation and stay.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use redis_module::raw;

/// What every server's allocator aligns to. Most align to 16. But one that is built for musl with `MALLOC=libc`, as
/// Alpine's package is, keeps a size of 8 bytes in front of each allocation.
pub(super) const SERVER_ALIGN: usize = 8;

pub struct ServerAlloc;

// SAFETY: each method passes on to one of two allocators, which one follows from whether this process is a server. That
// doesn't change during the life of an allocation, and neither does its layout's alignment.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises on `layout` are those that both allocators ask for.
        unsafe {
            match raw::RedisModule_Alloc {
                Some(alloc) if layout.align() <= SERVER_ALIGN => alloc(layout.size()).cast(),
                Some(alloc) => aligned(alloc(room_for(layout)).cast(), layout),
                None => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe {
            match raw::RedisModule_Calloc {
                Some(calloc) if layout.align() <= SERVER_ALIGN => calloc(1, layout.size()).cast(),
                Some(calloc) => aligned(calloc(1, room_for(layout)).cast(), layout),
                None => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `old` came from the same of the two, as its layout says; `size`, rounded up, fits a layout, as the
        // caller promises, and both allocations have the bytes that are copied.
        unsafe {
            match raw::RedisModule_Realloc {
                Some(realloc) if layout.align() <= SERVER_ALIGN => realloc(old.cast::<c_void>(), size).cast(),
                Some(_) => {
                    let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !new.is_null() {
                        new.copy_from_nonoverlapping(old, layout.size().min(size));
                        self.dealloc(old, layout);
                    }
                    new
                }
                None => System.realloc(old, layout, size),
            }
        }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: `old` came from the same of the two, as its layout says.
        unsafe {
            match raw::RedisModule_Free {
                Some(free) if layout.align() <= SERVER_ALIGN => free(old.cast::<c_void>()),
                Some(free) => free(begin_of(old).cast::<c_void>()),
                None => System.dealloc(old, layout),
            }
        }
    }
}

// Few types want more than SERVER_ALIGN. They get a place inside a larger allocation, whose begin is noted just before
// them.

/// What such an allocation takes. A layout's size leaves room for its alignment.
fn room_for(layout: Layout) -> usize {
    layout.size() + layout.align()
}

/// The place inside.
///
/// # Safety
/// `begin` is null, or has [`room_for`] the layout, and a multiple of SERVER_ALIGN as its address.
unsafe fn aligned(begin: *mut u8, layout: Layout) -> *mut u8 {
    if begin.is_null() {
        return begin;
    }
    // At least SERVER_ALIGN bytes, which a pointer fits into, and at most the alignment.
    let ahead = layout.align() - begin.addr() % layout.align();
    // SAFETY: both are inside of what the caller promises.
    unsafe {
        let place = begin.add(ahead);
        place.cast::<*mut u8>().sub(1).write(begin);
        place
    }
}

/// # Safety
/// `place` came from [`aligned`].
unsafe fn begin_of(place: *mut u8) -> *mut u8 {
    // SAFETY: `aligned` has written it there.
    unsafe { place.cast::<*mut u8>().sub(1).read() }
}

const _: () = assert!(size_of::<*mut u8>() <= SERVER_ALIGN);

#[cfg(test)]
mod tests {
    use super::*;

    /// As a server for musl gives them: 8 bytes behind what is aligned to 16; and as others do.
    #[test]
    fn whatever_the_server_aligns_to_a_place_is_aligned_and_knows_its_begin() {
        for (align, size) in [(16, 1), (16, 160), (32, 7), (64, 4_096)] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let mut memory = vec![0_u64; (room_for(layout) + 128) / 8 + 16];
            for shift in 0..16 {
                let begin = memory[shift..].as_mut_ptr().cast::<u8>();
                // SAFETY: the vector is that large.
                let (place, told) = unsafe {
                    let place = aligned(begin, layout);
                    (place, begin_of(place))
                };
                assert_eq!(place.addr() % align, 0);
                assert_eq!(told, begin);
                let ahead = place.addr() - begin.addr();
                assert!((SERVER_ALIGN..=align).contains(&ahead), "{ahead}");
            }
        }
        let layout = Layout::new::<u128>();
        // SAFETY: null is allowed.
        assert!(unsafe { aligned(std::ptr::null_mut(), layout) }.is_null());
    }
}
