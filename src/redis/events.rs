//! Server events: what changes under the queues without a command of ours.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::{pacemaker, server, sweep, waiting};

pub fn subscribe(ctx: *mut raw::RedisModuleCtx) -> bool {
    let events: [(u64, raw::RedisModuleEventCallback); 3] = [
        (raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, Some(on_role_changed)),
        (raw::REDISMODULE_EVENT_FLUSHDB, Some(on_flush)),
        (raw::REDISMODULE_EVENT_SWAPDB, Some(on_swap)),
    ];
    events.into_iter().all(|(id, callback)| {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: `ctx` is the one of OnLoad; the callbacks have the type that these events want.
        let status = unsafe { api!(RedisModule_SubscribeToServerEvent)(ctx, event, callback) };
        status == raw::REDISMODULE_OK as c_int
    })
}

/// A primary hands out, a replica rests. A new primary looks through its keys: as a replica it didn't
/// follow where they went.
unsafe extern "C" fn on_role_changed(
    ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    _subevent: u64,
    _data: *mut c_void,
) {
    let is_primary = server::is_primary(ctx);
    pacemaker::role_changed(is_primary);
    if is_primary {
        sweep::want();
    }
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
    // −1 is all of them.
    pacemaker::database_flushed((info.dbnum >= 0).then_some(info.dbnum));
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
    pacemaker::databases_swapped(info.dbnum_first, info.dbnum_second);
    // Who waits stays in their database; what they wait for may have come.
    waiting::look_at_all(info.dbnum_first);
    waiting::look_at_all(info.dbnum_second);
}
