//! Commands of the server that the module runs. It knows XADD, which goes into the log; what is in
//! streams is not kept.

use std::ffi::{c_char, c_int, CStr};
use std::ptr::without_provenance;

use redis_module::raw;

use super::calls::{self, Ctx};
use super::keys;
use super::world::with;

/// What the module sees as a `RedisModuleCallReply`: no more than which of these it is.
const ADDED: usize = 1;
const REFUSED: usize = 2;

const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The real one takes any number of arguments: the module gives several strings.
pub unsafe extern "C" fn call(
    ctx: *mut Ctx,
    command: *const c_char,
    format: *const c_char,
    start: usize,
    len: usize,
) -> *const usize {
    // SAFETY: what the module gives.
    let (command, format) = unsafe { (CStr::from_ptr(command), CStr::from_ptr(format)) };
    if command != c"XADD" {
        return std::ptr::null();
    }
    assert_eq!(format, c"!SEv", "it is checked, and it is replicated");
    // SAFETY: as above.
    let (database, words) = unsafe { ((*ctx).database, calls::arguments(c"v", &[start, len])) };
    let id = if words[1] == b"MAXLEN" { 4 } else { 1 };
    let fields = id + 1;
    let makes_it = words[id].strip_suffix(b"*").is_some_and(|time| {
        time.strip_suffix(b"-").is_none_or(|ms| ms.iter().all(u8::is_ascii_digit))
    });
    assert!(makes_it, "the server makes the id, at a time or now: {words:?}");
    assert_eq!(words[fields], b"id", "{words:?}");
    assert_eq!((words.len() - fields) % 2, 0, "a field has a value: {words:?}");
    let is_queue = with(|world| world.keys.contains_key(&(database, words[0].clone())));
    if is_queue || words[0] == keys::IS_A_STRING {
        return without_provenance(REFUSED);
    }
    let command = command.to_bytes().to_vec();
    calls::log(database, std::iter::once(command).chain(words).collect());
    without_provenance(ADDED)
}

pub unsafe extern "C" fn reply_type(reply: *const usize) -> c_int {
    match reply.addr() {
        REFUSED => raw::REDISMODULE_REPLY_ERROR as c_int,
        _ => raw::REDISMODULE_REPLY_STRING as c_int,
    }
}

pub unsafe extern "C" fn reply_text(_: *const usize, len: *mut usize) -> *const u8 {
    // SAFETY: what the module gives.
    unsafe { *len = WRONG_TYPE.len() };
    WRONG_TYPE.as_ptr()
}

pub unsafe extern "C" fn used_memory() -> f32 {
    0.0
}
