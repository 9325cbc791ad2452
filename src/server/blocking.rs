//! Waiting clients, blocked by the server as for BLPOP.

use std::ffi::{c_int, c_longlong, c_void};
use std::ptr::null_mut;
use std::time::Duration;

use redis_module::raw;

use super::arg::{name_bytes, Arg};
use super::call::Call;
use super::client::{Client, Ticket};
use super::context::{self, Context};
use super::events;
use super::hooks;
use super::main_thread::MainThread;
use super::replies::Replies;

/// The clients to unblock before the server sleeps.
static BEFORE_SLEEP: MainThread<Vec<Client>> = MainThread::new(Vec::new());
static IS_SLEEP_WATCHED: MainThread<bool> = MainThread::new(false);
/// Whether [`unblock_now`] is running.
static IS_UNBLOCKING: MainThread<bool> = MainThread::new(false);

/// Blocks the client that called, at these keys. `None` if it can't be blocked.
pub fn block(
    call: &Call,
    keys: &[Arg],
    timeout: Option<Duration>,
    ticket: Ticket,
) -> Option<Client> {
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

/// Unblocks a client: the server calls [`hooks::Hooks::unblocking`] or [`hooks::Hooks::unblocked`]
/// for its reply, perhaps from in here. Only called by timers.
///
/// The server finishes the unblocking before it sleeps. If it reads on threads, it first runs the
/// commands that they have read, among them perhaps a CLIENT UNBLOCK of the same client. Later
/// servers drop the first of the two replies; Redis 7.0 sends both. So on Redis 7.0 the client is
/// unblocked at the last moment, before the sleep. (Later servers finish the unblocking before the
/// event of the sleep, so there it would be too late.)
pub fn unblock(client: Client) {
    if waits_for_sleep() {
        BEFORE_SLEEP.with(|clients| clients.push(client));
    } else {
        unblock_now(client);
    }
}

fn unblock_now(client: Client) {
    IS_UNBLOCKING.with(|is_unblocking| *is_unblocking = true);
    // SAFETY: on the main thread; the server has not freed it: it does so after it has called
    // `on_gone`.
    unsafe { api!(RedisModule_UnblockClient)(client.raw(), null_mut()) };
    IS_UNBLOCKING.with(|is_unblocking| *is_unblocking = false);
}

/// True on Redis 7.0, the only supported server without the function that is looked for. The event
/// is only subscribed to when needed, as it costs time in each turn of the event loop.
fn waits_for_sleep() -> bool {
    // SAFETY: set while the module was loaded, and never again.
    let is_later = unsafe { raw::RedisModule_AddPostNotificationJob }.is_some();
    if is_later {
        return false;
    }
    let is_watched =
        IS_SLEEP_WATCHED.with(|is_watched| *is_watched) || watch_sleep(Some(on_event_loop));
    IS_SLEEP_WATCHED.with(|known| *known = is_watched);
    is_watched
}

/// Makes the server call this before each sleep of the event loop, or nothing any more: not inside
/// an event. False if it can't.
fn watch_sleep(callback: raw::RedisModuleEventCallback) -> bool {
    // SAFETY: the module's own context; the callback has the type of this event.
    unsafe { events::ask_for(context::own(), raw::REDISMODULE_EVENT_EVENTLOOP, callback) }
}

unsafe extern "C" fn on_event_loop(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    _data: *mut c_void,
) {
    if subevent == raw::REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP {
        before_sleep();
    }
}

/// The server is about to finish the unblocking of clients, and then to sleep.
///
/// A client that something else has unblocked is not freed before the server has finished that, so
/// it is still valid here.
fn before_sleep() {
    let clients = BEFORE_SLEEP.with(std::mem::take);
    clients.into_iter().for_each(unblock_now);
}

/// Ends the subscription while there is no client to unblock. Only called by timers.
pub(super) fn rest() {
    if BEFORE_SLEEP.with(|clients| clients.is_empty()) && IS_SLEEP_WATCHED.with(std::mem::take) {
        watch_sleep(None);
    }
}

/// The ticket of the client for which a callback runs.
///
/// # Safety
/// `ctx` belongs to a callback for a client that was blocked here.
unsafe fn ticket_in(ctx: *mut raw::RedisModuleCtx) -> Ticket {
    // SAFETY: the caller's promise.
    unsafe { api!(RedisModule_GetBlockedClientPrivateData)(ctx) as usize as Ticket }
}

unsafe extern "C" fn on_key_ready(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: this is one of our callbacks; the key is valid while it runs.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetBlockedClientReadyKey)(ctx));
        (api!(RedisModule_GetSelectedDb)(ctx), name)
    };
    hooks::call(|hooks| (hooks.key_ready)(database, name));
    // The client goes on waiting.
    raw::REDISMODULE_ERR as c_int
}

unsafe extern "C" fn on_unblocked(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: this is one of our callbacks, on the main thread, which may reply and open keys.
    let (ticket, replies, context) =
        unsafe { (ticket_in(ctx), Replies::new(ctx), Context::new(ctx)) };
    let is_unblocking = IS_UNBLOCKING.with(|is_unblocking| *is_unblocking);
    hooks::call(|hooks| match is_unblocking {
        true => (hooks.unblocking)(context, ticket, replies),
        false => (hooks.unblocked)(context, ticket, replies),
    });
    raw::REDISMODULE_OK as c_int
}

/// The client has gone away while it waited: nothing is to be delivered to it.
unsafe extern "C" fn on_disconnect(
    ctx: *mut raw::RedisModuleCtx,
    _client: *mut raw::RedisModuleBlockedClient,
) {
    // SAFETY: a callback of ours.
    let ticket = unsafe { ticket_in(ctx) };
    hooks::call(|hooks| (hooks.gone)(ticket));
}

unsafe extern "C" fn on_gone(ctx: *mut raw::RedisModuleCtx, ticket: *mut c_void) {
    // SAFETY: this is one of our callbacks, for a client that was blocked.
    let was_unblocked = unsafe { api!(RedisModule_BlockedClientDisconnected)(ctx) } == 0;
    let ticket = ticket as usize as Ticket;
    hooks::call(|hooks| match was_unblocked {
        true => (hooks.replied)(ticket),
        false => (hooks.gone)(ticket),
    });
}
