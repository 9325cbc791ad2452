//! The pacemaker: the one timer of the module. It comes when the first of all waiting queues has something
//! to do, and lets time pass for that queue: what is due becomes ready, leases that ran out come back.
//!
//! It works under a time budget (`dq.tick-budget-us`); what is left over goes on a millisecond later, and
//! clients are served between. A queue is always right without it: every command lets time pass for its
//! queue first. On a replica it rests.

use std::ffi::{c_void, CStr};
use std::time::{Duration, Instant};

use redis_module::raw;

use super::data_type::QueueValue;
use super::effect::{publish, Effect};
use super::hints::{Database, Hints};
use super::key::{serve_at, visit, Site};
use super::main_thread::MainThread;
use super::notify::notify;
use super::{config, server, sweep, waiting};
use crate::queue::{Leave, Millis, Queue, Time};

/// Redis 7.0 spins at 100 % CPU while a timer is more than 35 minutes away; and a clock that was set
/// forward is noticed within this time.
const FURTHEST: Duration = Duration::from_secs(60);
/// The next turn of the event loop: what a timer of zero would be, too.
const SOON: Duration = Duration::from_millis(1);
/// `LATENCY HISTORY dq-timer` shows runs that took their whole budget or more.
const LATENCY_EVENT: &CStr = c"dq-timer";
/// Between two looks at the clock: some tens of microseconds.
const STEP_JOBS: usize = 100;
/// While the server must not write, it is asked this often whether it may again.
const UNTIL_WRITABLE: Millis = match Millis::new(10) {
    Some(span) => span,
    None => Millis::ZERO,
};

/// What the timer did since the server started.
#[derive(Clone, Copy, Default)]
pub struct Stats {
    pub runs: u64,
    /// Runs that left something over for the next.
    pub budget_exceeded: u64,
    pub last: Duration,
    pub longest: Duration,
}

struct Pacemaker {
    hints: Hints,
    timer: Option<Timer>,
    /// Whether this server is a primary.
    is_acting: bool,
    stats: Stats,
}

#[derive(Clone, Copy)]
struct Timer {
    id: raw::RedisModuleTimerID,
    fires: Instant,
}

static PACEMAKER: MainThread<Pacemaker> = MainThread::new(Pacemaker {
    hints: Hints::NONE,
    timer: None,
    is_acting: false,
    stats: Stats { runs: 0, budget_exceeded: 0, last: Duration::ZERO, longest: Duration::ZERO },
});

/// Sees to it that the timer comes in time for this queue, which is at that key.
pub fn watch<'n>(
    value: &mut QueueValue,
    database: impl FnOnce() -> Database,
    name: impl FnOnce() -> &'n [u8],
) {
    value.share.update(value.queue.counts());
    let Some(next) = value.queue.next_upkeep() else {
        return;
    };
    // Most often the queue's hint is early enough, and this is all.
    if value.hint.is_some_and(|hint| hint <= next) {
        return;
    }
    let (database, name) = (database(), name());
    PACEMAKER.with(|pacemaker| {
        if let Some(hint) = value.hint {
            pacemaker.hints.remove(hint, database, name);
        }
        pacemaker.hints.add(next, database, name);
    });
    value.hint = Some(next);
    arm(None);
}

/// Drops the queue's hint: it is not at that key any more. Says whether there was one.
pub fn forget(value: &mut QueueValue, database: Database, name: &[u8]) -> bool {
    let hint = value.hint.take();
    if let Some(hint) = hint {
        PACEMAKER.with(|pacemaker| pacemaker.hints.remove(hint, database, name));
    }
    hint.is_some()
}

/// Two databases have changed places.
pub fn databases_swapped(a: Database, b: Database) {
    PACEMAKER.with(|pacemaker| pacemaker.hints.swap(a, b));
}

/// A database, or all of them, will be empty.
pub fn database_flushed(database: Option<Database>) {
    PACEMAKER.with(|pacemaker| pacemaker.hints.clear(database));
}

/// What this server is while the module is being loaded: too early for timers.
pub fn starts_as(is_primary: bool) {
    PACEMAKER.with(|pacemaker| pacemaker.is_acting = is_primary);
}

/// Whether this server is a primary, as far as it has been told.
pub fn is_acting() -> bool {
    PACEMAKER.with(|pacemaker| pacemaker.is_acting).unwrap_or_default()
}

/// This server is a primary now, or a replica.
pub fn role_changed(is_primary: bool) {
    starts_as(is_primary);
    if is_primary {
        arm(Some(SOON));
    }
}

/// How many queues wait for something, and what the timer did.
pub fn report() -> (usize, Stats) {
    let report = PACEMAKER.with(|pacemaker| (pacemaker.hints.len(), pacemaker.stats));
    report.unwrap_or_default()
}

/// Makes the timer come for the earliest hint, or within `at_latest`, if it wouldn't anyway.
pub fn arm(at_latest: Option<Duration>) {
    let Some((earliest, timer, true)) =
        PACEMAKER.with(|pacemaker| (pacemaker.hints.earliest(), pacemaker.timer, pacemaker.is_acting))
    else {
        return;
    };
    let until_hint = earliest.map(|time| Duration::from_millis(time.since(server::now()).as_u64()));
    let Some(wait) = until_hint.into_iter().chain(at_latest).chain(waiting::next_turn()).min() else {
        return;
    };
    let wait = wait.min(FURTHEST);
    let fires = Instant::now() + wait;
    if timer.is_some_and(|timer| timer.fires <= fires) {
        return;
    }
    if let Some(timer) = timer {
        // SAFETY: the timer has not fired: its callback would have taken it from the state.
        unsafe { api!(RedisModule_StopTimer)(server::context(), timer.id, std::ptr::null_mut()) };
    }
    let period = wait.as_millis() as raw::mstime_t;
    // SAFETY: on the main thread; the callback needs no data.
    let id = unsafe {
        api!(RedisModule_CreateTimer)(server::context(), period, Some(on_timer), std::ptr::null_mut())
    };
    PACEMAKER.with(|pacemaker| pacemaker.timer = Some(Timer { id, fires }));
}

unsafe extern "C" fn on_timer(ctx: *mut raw::RedisModuleCtx, _data: *mut c_void) {
    PACEMAKER.with(|pacemaker| pacemaker.timer = None);
    if !server::is_primary(ctx) {
        role_changed(false);
        return;
    }
    let slice = Slice::begin();
    promote_what_is_due(ctx, &slice);
    let served = waiting::go_on(ctx, &slice);
    let again = sweep::go_on(ctx, &slice).into_iter().chain(served).min();
    let is_cut = slice.is_over();
    let took = slice.begun.elapsed();
    PACEMAKER.with(|pacemaker| pacemaker.stats.count(took, is_cut));
    if is_cut {
        // Kept by the server when it is at least `latency-monitor-threshold`.
        // SAFETY: the name is a constant, which the server copies.
        unsafe {
            api!(RedisModule_LatencyAddSample)(LATENCY_EVENT.as_ptr(), took.as_millis() as raw::mstime_t)
        };
    }
    arm(if is_cut { Some(SOON) } else { again });
}

/// The time that one run of the timer may take.
pub struct Slice {
    begun: Instant,
    budget: Duration,
}

impl Slice {
    pub fn begin() -> Slice {
        Slice { begun: Instant::now(), budget: config::tick_budget() }
    }

    pub fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.budget
    }
}

impl Stats {
    fn count(&mut self, took: Duration, is_cut: bool) {
        self.runs += 1;
        self.budget_exceeded += u64::from(is_cut);
        self.last = took;
        self.longest = self.longest.max(took);
    }
}

fn promote_what_is_due(ctx: *mut raw::RedisModuleCtx, slice: &Slice) {
    let now = server::now();
    let may_write = waiting::may_write();
    while !slice.is_over() {
        let Some(hint) = PACEMAKER.with(|pacemaker| pacemaker.hints.take_due(now)).flatten() else {
            return;
        };
        let work = |site: &Site, value: &mut QueueValue| {
            // Another queue may be at the key by now, which has a hint of its own.
            let is_its = value.hint == Some(hint.time);
            is_its.then(|| look_after(site, value, now, may_write, slice)).flatten()
        };
        let next = if may_write {
            serve_at(ctx, hint.database, &hint.key, work)
        } else {
            visit(ctx, hint.database, &hint.key, work)
        };
        if let Some(next) = next.flatten() {
            PACEMAKER.with(|pacemaker| pacemaker.hints.add(next, hint.database, &hint.key));
        }
    }
}

/// Lets time pass for a queue, and does what follows from that; the time of its next hint.
fn look_after(
    site: &Site,
    value: &mut QueueValue,
    now: Time,
    may_write: bool,
    slice: &Slice,
) -> Option<Time> {
    value.queue.advance(now);
    while !value.queue.bury_the_overdue(STEP_JOBS) && !slice.is_over() {}
    notify(site, &mut value.queue, &[]);
    if may_write {
        forget_the_old(site, &mut value.queue, now, slice);
        if waiting::consumers() > 0 && !waiting::serve(site, value, slice) {
            waiting::look_at(site.database(), site.name());
        }
    } else if waiting::consumers() > 0 {
        waiting::look_at(site.database(), site.name());
    }
    let next = value.queue.next_upkeep().map(|next| match may_write {
        true => next,
        // What is to be forgotten now has to wait.
        false => next.max(now.saturating_add(UNTIL_WRITABLE)),
    });
    value.hint = next;
    value.share.update(value.queue.counts());
    next
}

/// Removes jobs that have been kept long enough: an explicit step, which replicas are told.
fn forget_the_old(site: &Site, queue: &mut Queue, now: Time, slice: &Slice) {
    while !slice.is_over() {
        let slots = queue.to_forget(now, STEP_JOBS);
        if slots.is_empty() {
            return;
        }
        let ids = queue.ids_of(&slots);
        queue.purge(&slots);
        publish(site, queue, &[Effect::Left(Leave::Purged, &ids)]);
    }
}
