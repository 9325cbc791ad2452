//! Where something is done: a context and a key's name in it.

use std::ffi::CStr;

use redis_module::raw;

use super::call::{string_bytes, Arg};
use super::data_type::APPLY_COMMAND;
use super::hints::Database;

/// A key, in the database that the context has selected.
#[derive(Clone, Copy)]
pub struct Site {
    ctx: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
}

impl Site {
    /// # Safety
    /// Both are valid as long as the site is used.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx, name: *mut raw::RedisModuleString) -> Site {
        Site { ctx, name }
    }

    pub fn name(&self) -> &[u8] {
        // SAFETY: the name is valid as long as the site is used.
        unsafe { string_bytes(self.name) }
    }

    pub fn database(&self) -> Database {
        // SAFETY: the context is valid as long as the site is used; so in every method here.
        unsafe { api!(RedisModule_GetSelectedDb)(self.ctx) }
    }

    /// Tells WATCH and client-side caches that the value has changed.
    pub fn signal_modified(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SignalModifiedKey)(self.ctx, self.name) };
    }

    /// Sends a keyspace notification of the class of module types.
    pub fn notify(&self, event: &CStr) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_NotifyKeyspaceEvent)(
                self.ctx,
                raw::REDISMODULE_NOTIFY_MODULE,
                event.as_ptr(),
                self.name,
            )
        };
    }

    /// Whether the context is that of a transaction or a script, whose commands are seen all at once.
    pub fn is_inside_another(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { api!(RedisModule_GetContextFlags)(self.ctx) } as u32;
        flags & (raw::REDISMODULE_CTX_FLAGS_MULTI | raw::REDISMODULE_CTX_FLAGS_LUA) != 0
    }

    /// The command as it is: for those whose effect doesn't depend on the time.
    pub fn replicate_verbatim(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.ctx) };
    }

    /// `DQ.APPLY key kind payload`.
    pub fn replicate(&self, kind: &CStr, payload: &[u8]) {
        // SAFETY: as above; the format names the types of the arguments, which the server copies or
        // retains.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                APPLY_COMMAND.as_ptr(),
                c"scb".as_ptr(),
                self.name,
                kind.as_ptr(),
                payload.as_ptr(),
                payload.len(),
            )
        };
    }

    /// `DQ.APPLY key kind id body record`. The body is not copied.
    pub fn replicate_job(&self, kind: &CStr, id: &[u8], body: Arg, record: &[u8]) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                APPLY_COMMAND.as_ptr(),
                c"scbsb".as_ptr(),
                self.name,
                kind.as_ptr(),
                id.as_ptr(),
                id.len(),
                body.raw(),
                record.as_ptr(),
                record.len(),
            )
        };
    }

    /// As [`Site::replicate_job`], of a body that is in a queue.
    pub fn replicate_job_bytes(&self, kind: &CStr, id: &[u8], body: &[u8], record: &[u8]) {
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                APPLY_COMMAND.as_ptr(),
                c"scbbb".as_ptr(),
                self.name,
                kind.as_ptr(),
                id.as_ptr(),
                id.len(),
                body.as_ptr(),
                body.len(),
                record.as_ptr(),
                record.len(),
            )
        };
    }
}
