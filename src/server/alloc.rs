//! The allocator: the server's own, so that its memory limits and `INFO memory` include the queues.
//!
//! The crate's `RedisAlloc` knows neither `realloc` nor zeroed memory, and aborts outside a server.
//! This one falls back on the system's allocator there, so that tests, benches and fuzz targets can
//! link the crate. Inside a server the pointers are set before the first allocation and stay.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;

use redis_module::raw;

/// The alignment of the server's allocator, also if it is the C library's. But a server built for
/// musl with `MALLOC=libc`, as Alpine's package is, puts 8 bytes with the size before each
/// allocation.
pub(super) const SERVER_ALIGN: usize = if cfg!(target_env = "musl") { 8 } else { 16 };

pub struct ServerAlloc;

// SAFETY: each method calls one of two allocators. Which one depends on the layout and on whether
// this process is a server; neither changes during the life of an allocation.
unsafe impl GlobalAlloc for ServerAlloc {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: both allocators need the same promises on `layout` as the caller gave.
        unsafe {
            match raw::RedisModule_Alloc {
                Some(alloc) if layout.align() <= SERVER_ALIGN => alloc(layout.size()).cast(),
                _ => System.alloc(layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        unsafe {
            match raw::RedisModule_Calloc {
                Some(calloc) if layout.align() <= SERVER_ALIGN => calloc(1, layout.size()).cast(),
                _ => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `old` came from the same allocator, as its layout is the same.
        unsafe {
            match raw::RedisModule_Realloc {
                Some(realloc) if layout.align() <= SERVER_ALIGN => {
                    realloc(old.cast::<c_void>(), size).cast()
                }
                _ => System.realloc(old, layout, size),
            }
        }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: `old` came from the same allocator, as its layout is the same.
        unsafe {
            match raw::RedisModule_Free {
                Some(free) if layout.align() <= SERVER_ALIGN => free(old.cast::<c_void>()),
                _ => System.dealloc(old, layout),
            }
        }
    }
}
