//! Active defragmentation: the server looks at a value's allocations one by one, and moves those
//! that share their page with few others. Only a server with its own jemalloc does that.

use std::ffi::{c_int, c_ulong, c_void};
use std::mem::ManuallyDrop;

use redis_module::raw;

use super::alloc::SERVER_ALIGN;
use crate::queue::Defragmenter;

/// The server handles a value that it regards as small in one call. No settings make a value with
/// more allocations than this small.
const AT_ONCE_MAX: usize = 20_000;

pub(super) struct Defrag {
    ctx: *mut raw::RedisModuleDefragCtx,
    /// The server will call again for the rest.
    is_partial: bool,
    allocations: usize,
}

impl Defrag {
    /// Moves an allocation, if the server wants that. Returns its address, which may be the same.
    ///
    /// # Safety
    /// `at` is an allocation of the server's allocator. There is no other pointer to it, and it
    /// isn't used after this call.
    unsafe fn moved<T>(&mut self, at: *mut T) -> *mut T {
        self.allocations += 1;
        // SAFETY: the context belongs to this callback, and the caller's promise. If the content
        // has moved, byte by byte, the old allocation is freed.
        let moved = unsafe { api!(RedisModule_DefragAlloc)(self.ctx, at.cast::<c_void>()) };
        if moved.is_null() {
            at
        } else {
            moved.cast()
        }
    }
}

/// Whether the server's allocator is used for this type.
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
        // SAFETY: the context belongs to this callback.
        unsafe { api!(RedisModule_DefragShouldStop)(self.ctx) != 0 }
    }
}

/// Defragments a slice of a value: returns 0 when it is done, 1 when there is more. The server
/// handles a large value in slices, and keeps our number for where to continue; 0 is the beginning.
///
/// # Safety
/// The context belongs to a callback. The value is of this type, only its key holds it, and it
/// isn't open.
pub(super) unsafe fn slice<V>(
    ctx: *mut raw::RedisModuleDefragCtx,
    value: *mut *mut c_void,
    walk: fn(&mut V, u64, &mut Defrag) -> Option<u64>,
) -> c_int {
    const DONE: c_int = 0;
    const MORE: c_int = 1;
    let mut from: c_ulong = 0;
    // SAFETY: the context belongs to this callback. There is only a number for a value that the
    // server handles in slices.
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
