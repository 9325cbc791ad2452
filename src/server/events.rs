//! Server events: what happens to values other than by our commands.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::context::Context;
use super::hooks::{self, Aside};

pub(super) fn subscribe(ctx: *mut raw::RedisModuleCtx) -> bool {
    let events: [(u64, raw::RedisModuleEventCallback); 5] = [
        (raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, Some(on_role_changed)),
        (raw::REDISMODULE_EVENT_LOADING, Some(on_loading)),
        (raw::REDISMODULE_EVENT_REPL_ASYNC_LOAD, Some(on_loading_aside)),
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(on_flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(on_swap)),
    ];
    events.into_iter().all(|(id, callback)| {
        // SAFETY: `ctx` is the context of OnLoad; the callbacks have the types of these events.
        unsafe { ask_for(ctx, id, callback) }
    })
}

/// # Safety
/// The context is valid, and the callback has the event's type. `None` unsubscribes.
pub(super) unsafe fn ask_for(
    ctx: *mut raw::RedisModuleCtx,
    id: u64,
    callback: raw::RedisModuleEventCallback,
) -> bool {
    let event = raw::RedisModuleEvent { id, dataver: 1 };
    // SAFETY: the caller's promise.
    let status = unsafe { api!(RedisModule_SubscribeToServerEvent)(ctx, event, callback) };
    status == raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn on_role_changed(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _subevent: u64,
    _data: *mut c_void,
) {
    // SAFETY: the context is valid while the callback lasts.
    let is_primary = unsafe { Context::new(ctx) }.is_primary();
    hooks::call(|hooks| (hooks.role_changed)(is_primary));
}

unsafe extern "C" fn on_loading(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    _data: *mut c_void,
) {
    let is_over =
        [raw::REDISMODULE_SUBEVENT_LOADING_ENDED, raw::REDISMODULE_SUBEVENT_LOADING_FAILED];
    hooks::call(|hooks| (hooks.loading)(!is_over.map(u64::from).contains(&subevent)));
}

unsafe extern "C" fn on_loading_aside(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    _data: *mut c_void,
) {
    let stage = match subevent {
        raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_STARTED => Aside::Begun,
        raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_COMPLETED => Aside::SwappedIn,
        raw::REDISMODULE_SUBEVENT_REPL_ASYNC_LOAD_ABORTED => Aside::ThrownAway,
        _ => return,
    };
    hooks::call(|hooks| (hooks.loading_aside)(stage));
}

unsafe extern "C" fn on_flush(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    data: *mut c_void,
) {
    if subevent != raw::REDISMODULE_SUBEVENT_FLUSHDB_START || data.is_null() {
        return;
    }
    // SAFETY: this event's data is of this type.
    let info = unsafe { &*data.cast::<raw::RedisModuleFlushInfoV1>() };
    // −1 is all databases.
    hooks::call(|hooks| (hooks.flushed)((info.dbnum >= 0).then_some(info.dbnum)));
}

unsafe extern "C" fn on_swap(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _subevent: u64,
    data: *mut c_void,
) {
    if data.is_null() {
        return;
    }
    // SAFETY: this event's data is of this type.
    let info = unsafe { &*data.cast::<raw::RedisModuleSwapDbInfoV1>() };
    hooks::call(|hooks| (hooks.swapped)(info.dbnum_first, info.dbnum_second));
}
