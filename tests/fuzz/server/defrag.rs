//! Active defragmentation: every allocation of a value gets another address.

use std::ffi::{c_int, c_ulong, c_void};

use super::calls::string;
use super::world::{methods, with, Value};

/// What the module sees as a `RedisModuleDefragCtx`.
struct DefragCtx {
    /// Where the value said that it is to go on; without one, all is to be done at once.
    cursor: Option<c_ulong>,
    /// So many allocations, and the time is over.
    left: usize,
}

/// Calls of one value, however small they are: more would be a walk that doesn't get on.
const CALLS_MAX: usize = 1_000_000;

/// Of every value: at once, or in slices of so many allocations.
pub fn defrag(slice: Option<usize>) {
    let places: Vec<_> = with(|world| world.keys.keys().cloned().collect());
    for place in places {
        let name = string(&place.1);
        let mut cursor = slice.map(|_| 0);
        let goes_on = (0..CALLS_MAX).find(|_| {
            let mut ctx = DefragCtx { cursor, left: slice.unwrap_or(usize::MAX) };
            let mut value: Value = with(|world| world.keys[&place]);
            let defrag = methods().defrag.expect("the type has it");
            // SAFETY: a value of the type's, and a context as the server makes it.
            let more =
                unsafe { defrag(std::ptr::from_mut(&mut ctx).cast(), name.cast(), &mut value) };
            with(|world| world.keys.insert(place.clone(), value));
            cursor = ctx.cursor;
            more == 0
        });
        assert!(goes_on.is_some(), "it doesn't come to an end");
        // SAFETY: made above, for this alone.
        drop(unsafe { Box::from_raw(name) });
    }
}

// ---- what the module calls
// ---------------------------------------------------------------------------------------

/// What was there before is overwritten: whoever still reads it is seen.
pub unsafe extern "C" fn alloc(ctx: *mut c_void, old: *mut c_void) -> *mut c_void {
    unsafe {
        let ctx = &mut *ctx.cast::<DefragCtx>();
        ctx.left = ctx.left.saturating_sub(1);
        let size = libc::malloc_usable_size(old);
        let new = libc::malloc(size);
        std::ptr::copy_nonoverlapping(old.cast::<u8>(), new.cast::<u8>(), size);
        std::ptr::write_bytes(old.cast::<u8>(), 0xdd, size);
        libc::free(old);
        new
    }
}

pub unsafe extern "C" fn should_stop(ctx: *mut c_void) -> c_int {
    c_int::from(unsafe { (*ctx.cast::<DefragCtx>()).left == 0 })
}

pub unsafe extern "C" fn cursor_get(ctx: *mut c_void, cursor: *mut c_ulong) -> c_int {
    match unsafe { (*ctx.cast::<DefragCtx>()).cursor } {
        Some(number) => {
            unsafe { *cursor = number };
            0
        }
        None => 1,
    }
}

pub unsafe extern "C" fn cursor_set(ctx: *mut c_void, number: c_ulong) -> c_int {
    let cursor = unsafe { &mut (*ctx.cast::<DefragCtx>()).cursor };
    match cursor {
        Some(cursor) => {
            *cursor = number;
            0
        }
        None => 1,
    }
}
