//! The module's section of INFO.

use std::ffi::c_int;

use redis_module::raw;

use super::hooks;
use super::section::Section;

pub(super) fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is the context of OnLoad.
    unsafe { api!(RedisModule_RegisterInfoFunc)(ctx, Some(on_info)) };
}

unsafe extern "C" fn on_info(ctx: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // SAFETY: `ctx` belongs to this callback. A section without a name has the module's name.
    let is_wanted = unsafe { api!(RedisModule_InfoAddSection)(ctx, c"".as_ptr()) };
    if is_wanted == raw::REDISMODULE_OK as c_int {
        hooks::call(|hooks| (hooks.info)(&Section::new(ctx), for_crash_report != 0));
    }
}
