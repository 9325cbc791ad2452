//! A command being executed: its arguments and its replies.

use std::ffi::c_int;
use std::marker::PhantomData;

use redis_module::raw;

use super::context::Database;
use super::key::Key;
use super::replies::Replies;

/// One argument, as long as the command lasts.
#[derive(Clone, Copy)]
pub struct Arg<'c> {
    raw: *mut raw::RedisModuleString,
    life: PhantomData<&'c ()>,
}

impl<'c> Arg<'c> {
    pub fn bytes(self) -> &'c [u8] {
        // SAFETY: an argument is a valid string until the command ends, which 'c does not outlive.
        unsafe { string_bytes(self.raw) }
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleString {
        self.raw
    }
}

/// The bytes of a server's string.
///
/// # Safety
/// `string` is valid and unchanged during `'s`.
pub(super) unsafe fn string_bytes<'s>(string: *const raw::RedisModuleString) -> &'s [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let start = api!(RedisModule_StringPtrLen)(string, &mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

/// The arguments of a command, its name being the first.
#[derive(Clone, Copy)]
pub struct Args<'c> {
    argv: *const *mut raw::RedisModuleString,
    len: usize,
    life: PhantomData<&'c ()>,
}

impl<'c> Args<'c> {
    pub fn len(&self) -> usize {
        self.len
    }

    /// The same without the first ones, as the server has them.
    pub(super) fn raw_from(&self, first: usize) -> (*const *mut raw::RedisModuleString, usize) {
        let skipped = first.min(self.len);
        // SAFETY: the server gave `len` of them, and no more are skipped.
        (unsafe { self.argv.add(skipped) }, self.len - skipped)
    }

    pub fn get(&self, at: usize) -> Option<Arg<'c>> {
        if at >= self.len {
            return None;
        }
        // SAFETY: the server gave `len` of them, and `at` is below that.
        let raw = unsafe { *self.argv.add(at) };
        Some(Arg { raw, life: PhantomData })
    }
}

pub struct Call<'c> {
    ctx: *mut raw::RedisModuleCtx,
    args: Args<'c>,
}

impl<'c> Call<'c> {
    /// # Safety
    /// The three are what the server calls a command with, and `'c` ends with that command.
    pub(super) unsafe fn new(
        ctx: *mut raw::RedisModuleCtx,
        argv: *mut *mut raw::RedisModuleString,
        argc: c_int,
    ) -> Call<'c> {
        let len = usize::try_from(argc).unwrap_or(0);
        Call { ctx, args: Args { argv, len, life: PhantomData } }
    }

    pub fn args(&self) -> Args<'c> {
        self.args
    }

    pub(super) fn ctx(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    /// This key, as something is done to it.
    pub fn key(&self, name: Arg<'c>) -> Key<'c> {
        // SAFETY: all are valid while the command lasts, which 'c does not outlive.
        unsafe { Key::new(self.ctx, name.raw, self.args) }
    }

    /// What the client is told.
    pub fn replies(&self) -> Replies<'c> {
        // SAFETY: as above.
        unsafe { Replies::new(self.ctx) }
    }

    /// The database that the client has selected.
    pub fn database(&self) -> Database {
        // SAFETY: the context is valid while the command lasts.
        unsafe { api!(RedisModule_GetSelectedDb)(self.ctx) }
    }

    /// Whether the client may wait: not in a transaction or a script. Half a microsecond.
    pub fn may_block(&self) -> bool {
        let forbidding = raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        self.flags() & forbidding == 0
    }

    /// Whether the command comes from this server's primary, or from an AOF that is being loaded. Half a microsecond.
    pub fn is_from_log(&self) -> bool {
        self.flags() & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING) != 0
    }

    fn flags(&self) -> u32 {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetContextFlags)(self.ctx) as u32 }
    }
}
