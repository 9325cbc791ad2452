//! Waiting consumers: blocked with the server's own blocking on keys, so that everything that a client may do
//! or suffer while it waits is as with BLPOP; but served from a line of our own ([`Waiters`]), so that one
//! job wakes one consumer however many wait.
//!
//! Whoever makes a job ready takes it for the first in the line and tells replicas so. That client is
//! unblocked by a timer, in the same turn of the event loop: the server runs the timeout callback, which replies
//! with what has been assigned or, when nothing was, with nil. (Redis 7.0 and Valkey run it within the call that
//! unblocks, but take the client for blocked until the turn ends: unblocked by a command, it could be told one
//! thing more by a CLIENT UNBLOCK that comes next, or be killed with its reply unsent. After timers no command
//! comes.) Somebody who goes away between assignment and reply leaves a parcel, which a timer gives back.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::{c_int, c_longlong, c_void};
use std::time::{Duration, Instant};

use redis_module::raw;

use super::call::{Arg, Call};
use super::data_type::QueueValue;
use super::effect::publish;
use super::hints::Database;
use super::key::{name_bytes, serve_at, Site};
use super::main_thread::MainThread;
use super::pacemaker::{self, Slice};
use super::replies::Replies;
use super::server;
use super::take::{Mode, Parcel, Taken, Terms};
use super::waiters::{Left, Place, Ticket, Waiters};

pub use super::waiters::Shape;

type Client = *mut raw::RedisModuleBlockedClient;

struct Waiting {
    waiters: Waiters<Client>,
    /// Keys that may have something for those who wait at them.
    to_serve: BTreeSet<Place>,
    /// Who is to be unblocked, and whether a timer is set for it.
    to_unblock: Vec<Ticket>,
    is_timer_set: bool,
    /// Parcels of consumers that went away before they got them.
    lost: VecDeque<(Place, Parcel)>,
}

static WAITING: MainThread<Waiting> = MainThread::new(Waiting {
    waiters: Waiters::NONE,
    to_serve: BTreeSet::new(),
    to_unblock: Vec::new(),
    is_timer_set: false,
    lost: VecDeque::new(),
});

/// The next turn of the event loop.
const SOON: Duration = Duration::from_millis(1);
/// While the server must not write, it is asked this often whether it may again.
const UNTIL_WRITABLE: Duration = Duration::from_millis(10);

/// How many wait, wherever.
pub fn consumers() -> usize {
    WAITING.with(|waiting| waiting.waiters.len()).unwrap_or_default()
}

/// How many wait at this key.
pub fn consumers_at(site: &Site) -> usize {
    let database = site.database();
    WAITING.with(|waiting| waiting.waiters.len_at(database, site.name())).unwrap_or_default()
}

/// When somebody is to be served or to be sent away.
pub fn next_turn() -> Option<Duration> {
    let next = WAITING.with(|waiting| {
        let has_work = !waiting.to_serve.is_empty() || !waiting.lost.is_empty();
        let until = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        waiting.waiters.next_deadline().map(until).into_iter().chain(has_work.then_some(SOON)).min()
    });
    next.flatten()
}

/// The client that called waits for jobs of these keys, or for nil after `timeout`. One that can't wait, as
/// in a transaction or a script, gets nil at once.
pub fn wait(call: &Call, keys: &[Arg], terms: Terms, shape: Shape, timeout: Option<Duration>) {
    if !call.may_block() {
        call.replies().null();
        return;
    }
    let Some(ticket) = WAITING.with(|waiting| waiting.waiters.next_ticket()) else {
        call.replies().null();
        return;
    };
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
        call.replies().null();
        return;
    }
    // SAFETY: the client has just been blocked.
    unsafe { api!(RedisModule_SetDisconnectCallback)(client, Some(on_disconnect)) };
    let database = call.database();
    let places = keys.iter().map(|key| (database, key.bytes().into())).collect();
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    WAITING.with(|waiting| waiting.waiters.join(client, terms, shape, places, deadline));
    pacemaker::arm(timeout);
}

/// Serves those who wait at this key, after a command has changed its queue. Inside a transaction or a script
/// they have to wait until it is over.
pub fn serve_after_command(site: &Site, value: &mut QueueValue) {
    if consumers() == 0 || consumers_at(site) == 0 {
        return;
    }
    if site.is_inside_another() || !may_write() {
        look_at(site.database(), site.name());
        return;
    }
    let slice = Slice::begin();
    if serve(site, value, &slice) {
        need_not_look_at(site);
    } else {
        look_at(site.database(), site.name());
    }
}

/// Whether jobs of this key are for others who have been waiting, though they have not got them yet: who is
/// ready to wait has to stand behind them.
pub fn are_others_first(call: &Call, key: Arg) -> bool {
    if consumers() == 0 {
        return false;
    }
    let place = (call.database(), key.bytes().into());
    let are_first = |waiting: &mut Waiting| {
        waiting.to_serve.contains(&place) && waiting.waiters.len_at(place.0, &place.1) > 0
    };
    WAITING.with(are_first) == Some(true) && call.may_block()
}

/// Serves those who wait at this key, in their order, as far as there are jobs; false when the time was too
/// short for that.
pub fn serve(site: &Site, value: &mut QueueValue, slice: &Slice) -> bool {
    let database = site.database();
    let now = server::now();
    loop {
        let first = WAITING.with(|waiting| waiting.waiters.first_at(database, site.name()));
        let Some((ticket, terms)) = first.flatten() else {
            return true;
        };
        let Some(parcel) = take(site, value, &terms, now) else {
            return true;
        };
        let place = (database, site.name().into());
        WAITING.with(|waiting| {
            waiting.waiters.assign(ticket, place, parcel);
            waiting.to_unblock.push(ticket);
        });
        unblock_in_this_turn();
        if slice.is_over() {
            return false;
        }
    }
}

fn take(site: &Site, value: &mut QueueValue, terms: &Terms, now: crate::queue::Time) -> Option<Parcel> {
    let taken = Taken::from(&mut value.queue, terms, now);
    if taken.is_empty() {
        return None;
    }
    value.record_lateness(taken.handouts(), now);
    let parcel = taken.parcel(&value.queue, terms.mode);
    publish(site, &mut value.queue, &[taken.effect()]);
    let settled = taken.settle(&mut value.queue, terms.mode, now);
    if terms.mode == Mode::NoAck {
        publish(site, &mut value.queue, &settled.effects());
    }
    Some(parcel)
}

/// A key may have something for those who wait at it: the timer will look.
pub fn look_at(database: Database, name: &[u8]) {
    WAITING.with(|waiting| waiting.to_serve.insert((database, name.into())));
    pacemaker::arm(Some(SOON));
}

fn need_not_look_at(site: &Site) {
    WAITING.with(|waiting| {
        if !waiting.to_serve.is_empty() {
            waiting.to_serve.remove(&(site.database(), site.name().into()));
        }
    });
}

/// All keys of a database at which somebody waits may have something for them.
pub fn look_at_all(database: Database) {
    WAITING.with(|waiting| {
        let places = waiting.waiters.keys_of(database);
        waiting.to_serve.extend(places);
    });
    pacemaker::arm(Some(SOON));
}

/// A slice of the work, if there is any; when to come again.
pub fn go_on(ctx: *mut raw::RedisModuleCtx, slice: &Slice) -> Option<Duration> {
    send_away(slice);
    let next = serve_on(ctx, slice);
    unblock();
    next
}

fn serve_on(ctx: *mut raw::RedisModuleCtx, slice: &Slice) -> Option<Duration> {
    if !may_write() {
        return next_turn().map(|turn| turn.max(UNTIL_WRITABLE));
    }
    while !slice.is_over() {
        let Some((place, parcel)) = WAITING.with(|waiting| waiting.lost.pop_front()).flatten() else {
            break;
        };
        give_back(ctx, place, parcel);
    }
    while !slice.is_over() {
        let Some((database, name)) = WAITING.with(|waiting| waiting.to_serve.pop_first()).flatten() else {
            break;
        };
        let is_done = serve_at(ctx, database, &name, |site, value| {
            value.queue.advance(server::now());
            let is_done = serve(site, value, slice);
            pacemaker::watch(value, || database, || site.name());
            is_done
        });
        if is_done == Some(false) {
            WAITING.with(|waiting| waiting.to_serve.insert((database, name)));
        }
    }
    next_turn()
}

/// Those who have waited long enough get nil.
fn send_away(slice: &Slice) {
    let now = Instant::now();
    let send_one_away = || {
        WAITING.with(|waiting| {
            let expired = waiting.waiters.take_expired(now);
            waiting.to_unblock.extend(expired);
            expired.is_some()
        })
    };
    while !slice.is_over() && send_one_away() == Some(true) {}
}

/// Sets the timer that unblocks. One without a delay fires when the commands of this turn are over.
fn unblock_in_this_turn() {
    let was_set = WAITING.with(|waiting| std::mem::replace(&mut waiting.is_timer_set, true));
    if was_set == Some(false) {
        // SAFETY: on the main thread; the callback needs no data.
        unsafe {
            api!(RedisModule_CreateTimer)(server::context(), 0, Some(on_turn_ending), std::ptr::null_mut())
        };
    }
}

unsafe extern "C" fn on_turn_ending(_ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    WAITING.with(|waiting| waiting.is_timer_set = false);
    unblock();
}

/// Unblocks those who have been assigned something or have waited long enough. From timers only.
fn unblock() {
    let tickets = WAITING.with(|waiting| std::mem::take(&mut waiting.to_unblock)).unwrap_or_default();
    for ticket in tickets {
        if let Some(client) = WAITING.with(|waiting| waiting.waiters.client_of(ticket)).flatten() {
            // SAFETY: who is still known is blocked. The server may call `on_unblocked` from in here.
            unsafe { api!(RedisModule_UnblockClient)(client, std::ptr::null_mut()) };
        }
    }
}

fn give_back(ctx: *mut raw::RedisModuleCtx, (database, name): Place, parcel: Parcel) {
    serve_at(ctx, database, &name, |site, value| {
        value.queue.advance(server::now());
        parcel
            .give_back(&mut value.queue, |queue, effect| publish(site, queue, std::slice::from_ref(effect)));
        pacemaker::watch(value, || database, || site.name());
    });
    WAITING.with(|waiting| waiting.to_serve.insert((database, name)));
}

/// Whether a change may be made outside a command: while clients are paused, during a failover and at a
/// shutdown the server aborts when one is replicated.
pub fn may_write() -> bool {
    // SAFETY: needs nothing.
    unsafe { api!(RedisModule_AvoidReplicaTraffic)() == 0 }
}

/// The ticket of the client for which a callback runs.
///
/// # Safety
/// `ctx` is that of a callback of a client that was blocked here.
unsafe fn ticket_in(ctx: *mut raw::RedisModuleCtx) -> Ticket {
    // SAFETY: the caller's promise.
    unsafe { api!(RedisModule_GetBlockedClientPrivateData)(ctx) as usize as Ticket }
}

/// The server says that there is something new at a key: a queue was made there, or came there by RENAME, COPY,
/// RESTORE, SWAPDB. Everybody who waits there is told. The timer will serve those for whom there is a job.
unsafe extern "C" fn on_key_ready(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: a callback of ours; the key is valid while it lasts.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetBlockedClientReadyKey)(ctx));
        (api!(RedisModule_GetSelectedDb)(ctx), name.unwrap_or_default())
    };
    look_at(database, name);
    // It goes on waiting.
    raw::REDISMODULE_ERR as c_int
}

/// The client waits no more: it is assigned something, or its time is over, or it was told so by CLIENT
/// UNBLOCK.
unsafe extern "C" fn on_unblocked(
    ctx: *mut raw::RedisModuleCtx,
    _argv: *mut *mut raw::RedisModuleString,
    _argc: c_int,
) -> c_int {
    // SAFETY: a callback of ours, which may reply.
    let (ticket, replies) = unsafe { (ticket_in(ctx), Replies::new(ctx)) };
    match WAITING.with(|waiting| waiting.waiters.leave(ticket)).flatten() {
        Some(Left { shape, parcel: Some(((_, key), parcel)) }) => {
            if shape == Shape::KeyAndJobs {
                replies.array(2);
                replies.bulk(&key);
            }
            parcel.reply(replies);
        }
        Some(Left { parcel: None, .. }) | None => replies.null(),
    }
    raw::REDISMODULE_OK as c_int
}

/// The client has gone away while it waited: nothing is to be assigned to it.
unsafe extern "C" fn on_disconnect(_ctx: *mut raw::RedisModuleCtx, client: Client) {
    let ticket = WAITING.with(|waiting| waiting.waiters.ticket_of(client)).flatten();
    ticket.into_iter().for_each(forget);
}

/// The last that is heard of a client that was blocked, however that ended.
unsafe extern "C" fn on_gone(_ctx: *mut raw::RedisModuleCtx, ticket: *mut c_void) {
    forget(ticket as usize as Ticket);
}

/// Nothing may be written in these callbacks: what is to be given back is left to the timer.
fn forget(ticket: Ticket) {
    let is_lost = WAITING.with(|waiting| {
        let parcel = waiting.waiters.leave(ticket).and_then(|left| left.parcel);
        waiting.lost.extend(parcel);
        !waiting.lost.is_empty()
    });
    if is_lost == Some(true) {
        pacemaker::arm(Some(SOON));
    }
}
