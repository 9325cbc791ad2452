//! The module's section of INFO.

use std::ffi::{c_int, CStr, CString};

use redis_module::raw;

use super::hooks;

/// The section that is being shown.
pub struct Section(*mut raw::RedisModuleInfoCtx);

impl Section {
    /// The server puts the module's name before the field's.
    pub fn number(&self, name: &CStr, value: u64) {
        // SAFETY: the context is that of the callback in which the section lives; the server copies the name.
        unsafe { api!(RedisModule_InfoAddFieldULongLong)(self.0, name.as_ptr(), value) };
    }

    pub fn text(&self, name: &CStr, value: &str) {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: as above.
        unsafe { api!(RedisModule_InfoAddFieldCString)(self.0, name.as_ptr(), value.as_ptr()) };
    }
}

pub(super) fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is the one of OnLoad.
    unsafe { api!(RedisModule_RegisterInfoFunc)(ctx, Some(on_info)) };
}

unsafe extern "C" fn on_info(ctx: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // SAFETY: `ctx` is the one of this callback. The section without a name of its own is called like the module.
    let is_wanted = unsafe { api!(RedisModule_InfoAddSection)(ctx, c"".as_ptr()) };
    if is_wanted == raw::REDISMODULE_OK as c_int {
        hooks::call(|hooks| (hooks.info)(&Section(ctx), for_crash_report != 0));
    }
}
