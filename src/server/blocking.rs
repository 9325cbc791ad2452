//! Clients that wait, blocked with the server's own blocking on keys.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::time::Duration;

use redis_module::raw;

use super::arg::{name_bytes, Arg};
use super::call::Call;
use super::client::{Client, Ticket};
use super::hooks;
use super::replies::Replies;

/// Blocks the client that called at these keys. `None` when it can't be.
pub fn block(call: &Call, keys: &[Arg], timeout: Option<Duration>, ticket: Ticket) -> Option<Client> {
    let mut names: Vec<_> = keys.iter().map(|key| key.raw()).collect();
    let timeout_ms = timeout.map_or(0, |timeout| timeout.as_millis() as c_longlong);
    // SAFETY: the context and the names are those of the command; the private data is a number.
    let client = unsafe {
        api!(RedisModule_BlockClientOnKeys)(
            call.ctx(),
            Some(on_key_ready),
            Some(on_unblocked),
            Some(on_gone),
            timeout_ms,
            names.as_mut_ptr(),
            names.len() as c_int,
            ticket as usize as *mut c_void,
        )
    };
    if client.is_null() {
        return None;
    }
    // SAFETY: the client has just been blocked.
    unsafe { api!(RedisModule_SetDisconnectCallback)(client, Some(on_disconnect)) };
    Some(Client::new(client))
}

/// The server calls [`hooks::Hooks::unblocked`], perhaps from in here. From timers only.
pub fn unblock(client: Client) {
    // SAFETY: on the main thread; a client that the module still knows is blocked.
    unsafe { api!(RedisModule_UnblockClient)(client.raw(), null_mut()) };
}

/// The ticket of the client for which a callback runs.
///
/// # Safety
/// `ctx` is that of a callback of a client that was blocked here.
unsafe fn ticket_in(ctx: *mut raw::RedisModuleCtx) -> Ticket {
    // SAFETY: the caller's promise.
    unsafe { api!(RedisModule_GetBlockedClientPrivateData)(ctx) as usize as Ticket }
}

unsafe extern "C" fn on_key_ready(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: a callback of ours; the key is valid while it lasts.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetBlockedClientReadyKey)(ctx));
        (api!(RedisModule_GetSelectedDb)(ctx), name)
    };
    hooks::call(|hooks| (hooks.key_ready)(database, name));
    // It goes on waiting.
    raw::REDISMODULE_ERR as c_int
}

unsafe extern "C" fn on_unblocked(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: a callback of ours, which may reply.
    let (ticket, replies) = unsafe { (ticket_in(ctx), Replies::new(ctx)) };
    hooks::call(|hooks| (hooks.unblocked)(ticket, replies));
    raw::REDISMODULE_OK as c_int
}

unsafe extern "C" fn on_disconnect(
    _ctx: *mut raw::RedisModuleCtx,
    client: *mut raw::RedisModuleBlockedClient,
) {
    hooks::call(|hooks| (hooks.disconnected)(Client::new(client)));
}

unsafe extern "C" fn on_gone(_ctx: *mut raw::RedisModuleCtx, ticket: *mut c_void) {
    hooks::call(|hooks| (hooks.gone)(ticket as usize as Ticket));
}
