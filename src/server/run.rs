//! A command of the server that the module runs, with the server's own checks.

use std::ffi::CStr;
use std::ptr::null_mut;

use redis_module::raw;

use super::arg::new_string;

/// `!`: it is replicated, in the order of the calls. `S`: it is refused where a script's would be:
/// too few replicas, a disk that can't be written. `E`: what is refused is an error as a client
/// gets it. `v`: the arguments.
const FORMAT: &CStr = c"!SEv";
/// As the server says it.
const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Runs a command that writes, in the database of the context. The error is the server's.
///
/// # Safety
/// `ctx` is valid, on the main thread, where the server may be written to.
pub(super) unsafe fn run(
    ctx: *mut raw::RedisModuleCtx,
    command: &CStr,
    args: &[&[u8]],
) -> Result<(), String> {
    // SAFETY: needs nothing. What RM_Call itself would ask for is how things stood at the last
    // command of a client.
    if unsafe { api!(RedisModule_GetUsedMemoryRatio)() } > 1.0 {
        return Err(OUT_OF_MEMORY.into());
    }
    // SAFETY: each string is freed below; the server retains what it keeps.
    let strings: Vec<_> = args.iter().map(|arg| unsafe { new_string(arg) }).collect();
    // SAFETY: the context is valid, and the format names the types of the arguments.
    let reply = unsafe {
        api!(RedisModule_Call)(
            ctx,
            command.as_ptr(),
            FORMAT.as_ptr(),
            strings.as_ptr(),
            strings.len(),
        )
    };
    for string in strings {
        // SAFETY: created above, not used again.
        unsafe { api!(RedisModule_FreeString)(null_mut(), string) };
    }
    if reply.is_null() {
        return Err("ERR the server doesn't run this command".into());
    }
    // SAFETY: the reply is valid until it is freed, which is here; its text ends with it.
    unsafe {
        let is_error =
            api!(RedisModule_CallReplyType)(reply) == raw::REDISMODULE_REPLY_ERROR as i32;
        let result = if is_error { Err(text_of(reply)) } else { Ok(()) };
        api!(RedisModule_FreeCallReply)(reply);
        result
    }
}

/// # Safety
/// `reply` is valid, and an error.
unsafe fn text_of(reply: *mut raw::RedisModuleCallReply) -> String {
    let mut len = 0;
    // SAFETY: the caller's promise; the server gives the start and the length of the text.
    let text = unsafe {
        let start = api!(RedisModule_CallReplyStringPtr)(reply, &mut len);
        if start.is_null() {
            return String::new();
        }
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    };
    String::from_utf8_lossy(text).trim().trim_start_matches('-').to_string()
}
