//! What the server tells about itself: the time, its role; and a context for what happens outside commands.

use std::sync::atomic::{AtomicPtr, Ordering};

use redis_module::raw;

use crate::queue::Time;

/// The server's own wall clock: to be read once a command or timer run.
pub fn now() -> Time {
    // SAFETY: needs nothing.
    let unix_ms = unsafe { api!(RedisModule_Milliseconds)() };
    u64::try_from(unix_ms).ok().and_then(Time::new).unwrap_or(Time::MAX)
}

static CONTEXT: AtomicPtr<raw::RedisModuleCtx> = AtomicPtr::new(std::ptr::null_mut());

/// A context of the module's own.
pub fn context() -> *mut raw::RedisModuleCtx {
    CONTEXT.load(Ordering::Relaxed)
}

/// Makes the module's own context out of that of its loading.
pub fn keep_context(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is valid during the load; the new one lives as long as the module.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext)(ctx) };
    CONTEXT.store(detached, Ordering::Relaxed);
}

/// Whether this server is a primary. Half a microsecond: not for every command.
pub fn is_primary(ctx: *mut raw::RedisModuleCtx) -> bool {
    // SAFETY: `ctx` is the caller's, valid now.
    let flags = unsafe { api!(RedisModule_GetContextFlags)(ctx) };
    flags & raw::REDISMODULE_CTX_FLAGS_MASTER as i32 != 0
}

/// What `CONFIG GET name` answers.
pub fn config_value(name: &std::ffi::CStr) -> Option<String> {
    let ctx = context();
    // SAFETY: the formats match the arguments; the reply is freed below, after its last use.
    unsafe {
        let reply =
            api!(RedisModule_Call)(ctx, c"CONFIG".as_ptr(), c"cc".as_ptr(), c"GET".as_ptr(), name.as_ptr());
        if reply.is_null() {
            return None;
        }
        let value = api!(RedisModule_CallReplyArrayElement)(reply, 1);
        let mut len = 0;
        let text = if value.is_null() {
            std::ptr::null()
        } else {
            api!(RedisModule_CallReplyStringPtr)(value, &mut len)
        };
        let value = (!text.is_null()).then(|| {
            let bytes = std::slice::from_raw_parts(text.cast::<u8>(), len);
            String::from_utf8_lossy(bytes).into_owned()
        });
        api!(RedisModule_FreeCallReply)(reply);
        value
    }
}
