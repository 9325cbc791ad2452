//! A command being executed: its arguments and its replies.

use std::ffi::c_int;

use redis_module::raw;

use super::arg::{Arg, Args};
use super::context::Database;
use super::key::Key;
use super::replies::Replies;
use super::slots;

pub struct Call<'c> {
    ctx: *mut raw::RedisModuleCtx,
    args: Args<'c>,
}

impl<'c> Call<'c> {
    /// # Safety
    /// The three are the arguments of a command's callback, and `'c` ends with that command.
    pub(super) unsafe fn new(
        ctx: *mut raw::RedisModuleCtx,
        argv: *mut *mut raw::RedisModuleString,
        argc: c_int,
    ) -> Call<'c> {
        let len = usize::try_from(argc).unwrap_or(0);
        // SAFETY: as promised.
        Call { ctx, args: unsafe { Args::new(argv, len) } }
    }

    pub fn args(&self) -> Args<'c> {
        self.args
    }

    pub(super) fn ctx(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    /// The key of this name, for what the command does to it.
    pub fn key(&self, name: Arg<'c>) -> Key<'c> {
        // SAFETY: all are valid while the command runs, which 'c does not outlive.
        unsafe { Key::new(self.ctx, name.raw(), self.args) }
    }

    /// The replies to the client.
    pub fn replies(&self) -> Replies<'c> {
        // SAFETY: as above.
        unsafe { Replies::new(self.ctx) }
    }

    /// The database that the client has selected.
    pub fn database(&self) -> Database {
        // SAFETY: the context is valid while the command runs.
        unsafe { api!(RedisModule_GetSelectedDb)(self.ctx) }
    }

    /// Whether the client may block: not in a transaction or a script. Takes half a microsecond.
    pub fn may_block(&self) -> bool {
        let forbidding = raw::REDISMODULE_CTX_FLAGS_MULTI
            | raw::REDISMODULE_CTX_FLAGS_LUA
            | raw::REDISMODULE_CTX_FLAGS_DENY_BLOCKING;
        self.flags() & forbidding == 0
    }

    /// Whether the command comes from this server's primary, or from an AOF that is being loaded.
    /// Takes half a microsecond.
    pub fn is_from_log(&self) -> bool {
        self.flags() & (raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING)
            != 0
    }

    /// The argument that follows this word, in whichever case; looked for after the command's key.
    pub fn behind(&self, word: &str) -> Option<Arg<'c>> {
        self.args.get(self.args.position_behind(word)?)
    }

    /// Whether these keys may be used together in a cluster. If the module API doesn't report
    /// slots, the server has checked this itself.
    pub fn are_of_one_slot(&self, keys: &[Arg]) -> bool {
        // SAFETY: on the main thread, with names of this call.
        let mut slots = keys.iter().map(|key| unsafe { slots::slot_of(key.raw()) });
        let first = slots.next();
        slots.all(|slot| Some(slot) == first)
            || self.flags() & raw::REDISMODULE_CTX_FLAGS_CLUSTER == 0
    }

    fn flags(&self) -> u32 {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetContextFlags)(self.ctx) as u32 }
    }
}
