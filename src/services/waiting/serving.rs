//! Waiting clients. The server blocks them as for BLPOP, so everything that can happen to a blocked
//! client happens as for BLPOP. But they are served in our own order ([`super::waiters`]), so that
//! one job wakes one client, however many wait.
//!
//! The command or timer that makes a job ready hands it out to the first client, and logs that. The
//! client is unblocked in the same turn of the event loop: the server calls us back, and the client
//! gets the jobs delivered to it, or nil if there are none. Jobs delivered to a client that goes away before
//! the reply are given back by the timer, to the queue at the key at which the client waited. If
//! the queue has left that key, its jobs come back when their leases end.
//!
//! Redis 7.0 and Valkey call us back inside the call that unblocks, but regard the client as
//! blocked until the turn ends: a CLIENT UNBLOCK or KILL in between ends the wait instead. So
//! clients are unblocked by timers, after the commands of a turn. If the server reads on threads,
//! commands may also come after the timers: then the reply is provisional until the server confirms
//! that the client was still there.

use std::time::Duration;

use super::checks;
use super::delivery::{self, DeliveryOutcome};
use super::watchers::JobOutcome;
use super::watching;
use super::wish::{Class, JobsWish, Wish, REPLY_BYTES_IN_A_TURN};
use crate::queue::{Id, Mode, Time, POP_BYTES_MAX};
use crate::services::change::commit::time_for;
use crate::services::host::{Host, Keyspace};
use crate::services::key_ref::{Access, Database, QueueKey, Ticket};
use crate::services::keys::value::QueueValue;
use crate::services::timer::alarm::{arm, next_turn, unblock_soon, TimeSlice};
use crate::services::timer::{sink, wakeup};

/// No further job is delivered to a client that waits while others have been delivered so many bytes and
/// haven't got them: they are copies.
const DELIVERED_BYTES_MAX: usize = POP_BYTES_MAX;

/// Steps of chores between two looks at the clock: some tens of microseconds.
const STEPS: usize = 100;

/// How many keys a run of the timer looks up first while it is behind: a tenth of a millisecond if
/// there is nothing to do.
const LOOKED_AT_IN_A_RUN: usize = 100;

/// How many clients wait for jobs, at any key.
pub fn consumers<H: Host>(host: H) -> usize {
    host.with(|state| state.waiters.consumers())
}

/// How many clients wait for jobs of this key.
pub fn consumers_at<H: Host>(host: H, key: &impl QueueKey) -> usize {
    let database = key.database();
    host.with(|state| state.waiters.len_at(database, key.name()))
}

/// Makes a client wait for this, at most for `timeout`. `block` blocks it with a ticket. False if
/// the client can't block, as in a transaction or a script.
pub fn wait<H: Host>(
    host: H,
    wish: Wish,
    timeout: Option<Duration>,
    block: impl FnOnce(Ticket) -> Option<H::Client>,
) -> bool {
    let Some(client) = block(host.with(|state| state.waiters.next_ticket())) else {
        return false;
    };
    let deadline = timeout.and_then(|timeout| host.uptime().checked_add(timeout));
    host.with(|state| state.waiters.join(client, wish, deadline));
    arm(host, timeout);
    true
}

/// Serves the clients that wait at this key, before or after a command on it. In a transaction or a
/// script they are served after it.
pub fn serve_at_command<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: impl FnOnce() -> Time,
) {
    if consumers(host) > 0 {
        serve_waiting(host, key, value, now);
    }
}

#[inline(never)]
fn serve_waiting<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: impl FnOnce() -> Time,
) {
    if consumers_at(host, key) == 0 {
        return;
    }
    if key.is_inside_another() || !host.may_change() {
        serve_soon(host, key.database(), key.name());
        return;
    }
    let slice = TimeSlice::begin(host);
    if serve(host, key, value, &slice, now()) {
        need_not_serve(host, key);
    } else {
        serve_soon(host, key.database(), key.name());
    }
}

/// Whether earlier clients are still to be served; a client that can block must queue behind them.
pub fn are_others_first<H: Host>(host: H, key: &impl QueueKey) -> bool {
    let key_ref = (key.database(), key.name().into());
    consumers_at(host, key) > 0 && host.with(|state| state.to_serve.contains(&key_ref))
}

/// Serves the clients that wait at this key, in their order, while there are jobs. False if the
/// time slice was too short. When CONCURRENCY has no free place, clients with NOACK are served, in
/// their order.
///
/// All of them are served at one time, `now`: if a job fell due in between, a later client would
/// get it ahead of an earlier one.
pub fn serve<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    slice: &TimeSlice,
    now: Time,
) -> bool {
    let is_done = serve_at(host, key, value, slice, now);
    if let Some(end) = lingers_until(host, key, value, now) {
        value.queue.wake_by(end);
    }
    is_done
}

/// When the job that is ready longest will have waited for long enough for a client that waits at this
/// key until a delivery is worth it.
pub fn lingers_until<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &QueueValue,
    now: Time,
) -> Option<Time> {
    let database = key.database();
    let linger = host.with(|state| state.waiters.shortest_linger(database, key.name()))?;
    value.queue.lingers_until(now, linger).filter(|end| *end > now)
}

fn serve_at<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    slice: &TimeSlice,
    now: Time,
) -> bool {
    let database = key.database();
    let mut only = None;
    loop {
        let queue = &value.queue;
        let is_served =
            |class: Class| only.is_none_or(|mode| class.mode == mode) && class.is_worth(queue, now);
        let first = host.with(|state| state.waiters.first_at(database, key.name(), is_served));
        let Some((ticket, pop)) = first else {
            return true;
        };
        if host.with(|state| state.waiters.delivered_bytes()) >= DELIVERED_BYTES_MAX {
            return false;
        }
        let delivered = match delivery::deliver(host, key, value, &pop, now) {
            DeliveryOutcome::Jobs(delivered) => delivered,
            DeliveryOutcome::ConcurrencyFull if only.is_none() => {
                only = Some(Mode::NoAck);
                continue;
            }
            DeliveryOutcome::Nothing | DeliveryOutcome::ConcurrencyFull => return true,
            DeliveryOutcome::NotYet if slice.is_over(host) => return false,
            DeliveryOutcome::NotYet => continue,
        };
        host.with(|state| state.waiters.deliver(ticket, delivered));
        unblock_soon(host, [ticket]);
        if slice.is_over(host) {
            return false;
        }
    }
}

/// A key may have jobs for its waiting clients: the timer will look.
pub fn serve_soon<H: Host>(host: H, database: Database, name: &[u8]) {
    host.with(|state| state.to_serve.insert((database, name.into())));
    arm(host, None);
}

/// There is a new value at this key. The server calls this for every client that waits there.
pub fn on_key_ready<H: Host>(host: H, database: Database, name: &[u8]) {
    serve_soon(host, database, name);
    watching::check_soon(host, database, name);
}

/// Makes the timer look at every key with waiting clients.
pub fn serve_all_soon<H: Host>(host: H) {
    watching::check_all_soon(host, None);
    host.with(|state| {
        let places = state.waiters.keys_behind(None, usize::MAX);
        state.to_serve.extend(places);
    });
}

fn need_not_serve<H: Host>(host: H, key: &impl QueueKey) {
    let database = key.database();
    host.with(|state| {
        if !state.to_serve.is_empty() {
            state.to_serve.remove(&(database, key.name().into()));
        }
    });
}

/// While the timer is behind, looks up keys with waiting clients first, 100 per run.
pub fn run_slice_for_waiting<H: Keyspace>(host: H, slice: &TimeSlice) {
    if host.may_change() {
        host.with(|state| {
            if state.to_serve.is_empty() {
                let places =
                    state.waiters.keys_behind(state.looked_at.as_ref(), LOOKED_AT_IN_A_RUN);
                state.looked_at =
                    (places.len() == LOOKED_AT_IN_A_RUN).then(|| places.last().cloned()).flatten();
                state.to_serve.extend(places);
            }
        });
    }
    run_slice(host, slice);
}

/// Runs a slice of the timer's work on waiting clients. Returns when to run again, if there is
/// more.
pub fn run_slice<H: Keyspace>(host: H, slice: &TimeSlice) -> Option<Duration> {
    send_away(host, slice);
    if host.may_change() {
        give_back_undelivered(host, slice);
        serve_on(host, slice);
    }
    unblock(host, slice);
    next_turn(host)
}

fn serve_on<H: Keyspace>(host: H, slice: &TimeSlice) {
    // If the time is too short for all clients of a key, it comes after all other keys.
    let mut left_over = Vec::new();
    while !slice.is_over(host) {
        let Some((database, name)) = host.with(|state| state.to_serve.pop_first()) else {
            break;
        };
        let is_done = host.open((database, &name), Access::Write, |key, value| {
            let now = time_for(&value.queue, host.wall_clock());
            value.queue.advance(now);
            let is_done = serve(host, &key, value, slice, now);
            wakeup::plan(host, value, || database, || key.name());
            is_done
        });
        if is_done == Ok(false) {
            left_over.push((database, name));
        }
    }
    host.with(|state| state.to_serve.extend(left_over));
}

fn give_back_undelivered<H: Keyspace>(host: H, slice: &TimeSlice) {
    while !slice.is_over(host) {
        let Some(((first, key_ref), mut undelivered)) =
            host.with(|state| state.undelivered.pop_first())
        else {
            return;
        };
        let (database, name) = key_ref.clone();
        let is_there = host.open((database, &name), Access::Write, |key, value| {
            let is_it = undelivered.is_of(value);
            if is_it {
                delivery::give_back(host, &key, value, &mut undelivered, slice);
                sink::wake(host, value);
            }
            wakeup::plan(host, value, || database, || key.name());
            is_it
        });
        if is_there == Ok(true) {
            host.with(|state| {
                state.to_serve.insert((database, name));
                if !undelivered.is_empty() {
                    state.undelivered.insert((first, key_ref), undelivered);
                }
            });
        }
    }
}

/// Ends the waits that have timed out: these clients get nil.
fn send_away<H: Host>(host: H, slice: &TimeSlice) {
    let uptime = host.uptime();
    let send_one_away = || {
        host.with(|state| {
            let expired = state.waiters.take_expired(uptime);
            state.to_unblock.extend(expired);
            expired.is_some()
        })
    };
    while !slice.is_over(host) && send_one_away() {}
}

/// The commands of this turn are over.
pub fn on_turn_ending<H: Host>(host: H) {
    host.with(|state| state.is_turn_end_awaited = false);
    unblock(host, &TimeSlice::begin(host));
    let goes_on = host.with(|state| {
        let goes_on = state.has_to_unblock();
        state.is_turn_end_awaited |= goes_on;
        goes_on
    });
    if goes_on {
        host.at_end_of_turn();
    }
}

/// Unblocks clients that have been told something or have timed out. Only called by timers.
fn unblock<H: Host>(host: H, slice: &TimeSlice) {
    do_chores(host, slice);
    let mut bytes = 0;
    while let Some(ticket) = host.with(|state| state.to_unblock.pop_front()) {
        let client = host.with(|state| {
            let client = state.waiters.client_of(ticket)?;
            bytes += state.waiters.wish(ticket).map_or(0, Wish::cost);
            Some(client)
        });
        if let Some(client) = client {
            host.unblock(client);
        }
        if bytes >= REPLY_BYTES_IN_A_TURN || slice.is_over(host) {
            break;
        }
    }
}

fn do_chores<H: Host>(host: H, slice: &TimeSlice) {
    let do_some = || {
        host.with(|state| {
            let tickets = state.waiters.do_chores(STEPS);
            state.to_unblock.extend(tickets);
            state.waiters.watchers.has_chores()
        })
    };
    while do_some() && !slice.is_over(host) {}
}

/// The client's wait has ended: by what it waited for, its timeout or CLIENT UNBLOCK. Returns what
/// it gets, unless it has got that.
pub fn on_unblocked<H: Keyspace>(host: H, ticket: Ticket) -> Option<Wish> {
    let wish = leave(host, ticket);
    wish.map(|wish| as_it_is_now(host, wish))
}

/// A client waits no longer.
fn leave<H: Host>(host: H, ticket: Ticket) -> Option<Wish> {
    let wish = host.with(|state| state.waiters.leave(ticket));
    if let Some(Wish::Leases(_)) = wish {
        unblock_soon(host, []);
    }
    wish
}

/// What a client gets whose wait has ended. To a job nothing may have happened yet. Of leases, all
/// are looked at: more of them may be void than the one that ended the wait.
fn as_it_is_now<H: Keyspace>(host: H, wish: Wish) -> Wish {
    match wish {
        Wish::Outcome(wish) if wish.told.get().is_none() => {
            let (database, name) = &wish.key_ref;
            let told = host.open((*database, name), Access::Read, |_, value| {
                let now = time_for(&value.queue, host.wall_clock());
                Id::new(&wish.id).map(|id| watching::outcome_now(&value.queue, id, now))
            });
            let ended = told.ok().flatten().unwrap_or(JobOutcome::Gone);
            Wish::Outcome(wish.ended(ended))
        }
        Wish::Leases(wish) => {
            let void = checks::void_of(host, &wish);
            Wish::Leases(wish.ended(void))
        }
        Wish::Outcome(_) | Wish::Jobs(_) => wish,
    }
}

/// The reply of a client that is being unblocked. The server drops the reply if the client goes
/// away first or is unblocked by something else: then it calls [`on_gone`], otherwise
/// [`on_unblocked`].
pub fn on_unblocking<H: Keyspace>(host: H, ticket: Ticket) -> Option<Wish> {
    let wish = host.with(|state| state.waiters.wish(ticket).cloned());
    wish.map(|wish| as_it_is_now(host, wish))
}

/// The client has got the reply of [`on_unblocking`].
pub fn on_replied<H: Host>(host: H, ticket: Ticket) {
    leave(host, ticket);
}

/// The client has gone away while it waited, or its wait has ended other than by [`on_unblocked`]:
/// no job must be delivered to it. Nothing may be written here, so the timer gives its jobs back.
pub fn on_gone<H: Host>(host: H, ticket: Ticket) {
    let wish = leave(host, ticket);
    if let Some(Wish::Jobs(JobsWish { delivered: Some(delivered), terms, .. })) = wish {
        let undelivered = delivered.undelivered(terms.mode);
        host.with(|state| state.undelivered.extend(undelivered));
        arm(host, None);
    }
}

/// This server has become a replica: the new primary delivers these jobs.
pub fn drop_all<H: Host>(host: H) {
    host.with(|state| {
        state.to_serve.clear();
        state.to_check.clear();
        state.leaving.clear();
        state.undelivered.clear();
    });
}
