//! Active defragmentation: the server asks for a value's allocations, one after the other, and puts
//! those elsewhere that keep a page for themselves. Only a server with a jemalloc of its own does
//! that.

use std::ffi::{c_int, c_ulong, c_void};
use std::mem::ManuallyDrop;

use redis_module::raw;

use super::alloc::SERVER_ALIGN;
use crate::queue::Defragmenter;

/// Of a value that is small by the server's settings, which asks for all of it at once. So many may
/// be small by no settings.
const AT_ONCE_MAX: usize = 20_000;

pub(super) struct Defrag {
    ctx: *mut raw::RedisModuleDefragCtx,
    /// The server comes again for the rest.
    is_partial: bool,
    allocations: usize,
}

impl Defrag {
    /// The same content at another address, or at this one.
    ///
    /// # Safety
    /// `at` is an allocation of the server's, to which nobody else has a pointer, and which isn't
    /// used any more.
    unsafe fn moved<T>(&mut self, at: *mut T) -> *mut T {
        self.allocations += 1;
        // SAFETY: the context is that of the callback; the caller's promise. Where the content has
        // moved, byte by byte, the old allocation is freed.
        let moved = unsafe { api!(RedisModule_DefragAlloc)(self.ctx, at.cast::<c_void>()) };
        if moved.is_null() {
            at
        } else {
            moved.cast()
        }
    }
}

/// Whether allocations of this type are the server's.
const fn is_the_servers<T>() -> bool {
    size_of::<T>() > 0 && align_of::<T>() <= SERVER_ALIGN
}

impl Defragmenter for Defrag {
    fn vec<T>(&mut self, vec: &mut Vec<T>) {
        if !is_the_servers::<T>() || vec.capacity() == 0 {
            return;
        }
        let mut taken = ManuallyDrop::new(std::mem::take(vec));
        let (at, len, capacity) = (taken.as_mut_ptr(), taken.len(), taken.capacity());
        // SAFETY: the vector's allocation is its own, and the vector isn't used again; the new one
        // has the same size and content, from the same allocator.
        *vec = unsafe { Vec::from_raw_parts(self.moved(at), len, capacity) };
    }

    fn boxed<T>(&mut self, boxed: &mut Box<T>) {
        if !is_the_servers::<T>() {
            return;
        }
        let place: *mut Box<T> = boxed;
        // SAFETY: the box is read and written again with nothing between that could panic, so that
        // it is there once; its allocation is its own, and the new one has the same size and
        // content, from the same allocator.
        unsafe {
            let at = Box::into_raw(place.read());
            place.write(Box::from_raw(self.moved(at)));
        }
    }

    fn is_over(&mut self) -> bool {
        if !self.is_partial {
            return self.allocations >= AT_ONCE_MAX;
        }
        // SAFETY: the context is that of the callback.
        unsafe { api!(RedisModule_DefragShouldStop)(self.ctx) != 0 }
    }
}

/// A slice of a value's memory: 0 when all of it was asked for, 1 when there is more. Of a large
/// value the server asks in slices, with a number of ours that says where to go on; 0 is the
/// beginning.
///
/// # Safety
/// The context is that of a callback. The value is one of this type, which only its key holds and
/// nobody has open.
pub(super) unsafe fn slice<V>(
    ctx: *mut raw::RedisModuleDefragCtx,
    value: *mut *mut c_void,
    walk: fn(&mut V, u64, &mut Defrag) -> Option<u64>,
) -> c_int {
    const DONE: c_int = 0;
    const MORE: c_int = 1;
    let mut from: c_ulong = 0;
    // SAFETY: the context is that of this callback. The number is only there for a value of which
    // the server asks in slices.
    let is_partial = unsafe {
        api!(RedisModule_DefragCursorGet)(ctx, &mut from) == raw::REDISMODULE_OK as c_int
    };
    let mut defrag = Defrag { ctx, is_partial, allocations: 0 };
    // SAFETY: the caller's promise; the key gets the new address.
    let held = unsafe {
        if from == 0 && is_the_servers::<V>() {
            *value = defrag.moved(*value);
        }
        &mut *(*value).cast::<V>()
    };
    let next = walk(held, from, &mut defrag);
    // SAFETY: as above.
    let is_kept = is_partial
        && unsafe {
            api!(RedisModule_DefragCursorSet)(ctx, next.unwrap_or(0))
                == raw::REDISMODULE_OK as c_int
        };
    if next.is_some() && is_kept {
        MORE
    } else {
        DONE
    }
}
