//! The timer. It wakes when the first queue with a hint has something to do, and advances that
//! queue: due jobs become ready, and jobs whose lease ran out come back.
//!
//! It has a time budget (`dq.tick-budget-us`). If that isn't enough, it goes on in the next turn of
//! the event loop, and clients are served in between. While it is behind, the first half of each
//! run is for queues with waiting clients. A queue is right without the timer, as each command
//! advances the queue that it opens. On a replica the timer is stopped.

use std::ffi::CStr;
use std::time::Duration;

use super::alarm::{arm, was_clock_set, TimeSlice, NEXT_TURN, UNTIL_WRITABLE};
use super::sink;
use crate::queue::{ForgetGroups, Millis, Removal, Remove, Time};
use crate::services::change::commit::{circumstances, commit, time_for};
use crate::services::change::log::{Internal, LogForm};
use crate::services::change::{notify, settle};
use crate::services::host::{Host, Keyspace};
use crate::services::key_ref::{Access, Closed, Database, QueueKey};
use crate::services::keys::value::QueueValue;
use crate::services::keys::{lazyfree, moved, sweep};
use crate::services::waiting::{checks, serving, watching};

/// `LATENCY HISTORY dq-timer` shows runs that took their whole budget or more.
pub const LATENCY_EVENT: &CStr = c"dq-timer";
/// Jobs between two reads of the clock, or bytes of them: some tens of microseconds.
const STEP_JOBS: usize = 100;
const STEP_BYTES: usize = 4 << 20;

/// A run of the timer removes no further job once it has removed so many bytes. Another thread frees
/// them, which takes two milliseconds: if it fell behind, it would get in the way of the main thread
/// at the server's allocator.
const REMOVED_BYTES_IN_A_RUN: usize = 16 << 20;

/// Two databases were swapped. Clients stay in their database, and there may be jobs for them now.
pub fn on_swapped<H: Host>(host: H, a: Database, b: Database) {
    host.with(|state| {
        state.hints.swap(a, b);
        state.leases.keys_changed();
    });
    serving::serve_all_soon(host);
    arm(host, None);
}

/// A database, or all of them, is about to be emptied.
pub fn on_flushed<H: Host>(host: H, database: Option<Database>) {
    lazyfree::free_hints(host.with(|state| state.hints.take(database)));
    watching::check_all_soon(host, database);
    arm(host, None);
    if database.is_none() {
        host.with(|state| state.sums.flush());
    }
}

/// This server has become a primary or a replica. A new primary looks for the queues that were
/// moved to unknown keys while it was a replica.
pub fn on_role_changed<H: Host>(host: H, is_primary: bool) {
    let (wall_clock, uptime) = (host.wall_clock(), host.uptime());
    host.with(|state| {
        state.is_primary = is_primary;
        if is_primary {
            state.leases.may_have_lost_some(wall_clock, uptime);
        }
    });
    if is_primary {
        arm(host, Some(NEXT_TURN));
        sweep::request(host);
    } else {
        serving::drop_all(host);
    }
}

/// Data is about to be loaded, or was loaded.
pub fn on_loading<H: Host>(host: H, is_loading: bool) {
    let (wall_clock, uptime) = (host.wall_clock(), host.uptime());
    host.with(|state| {
        state.is_loading = is_loading;
        if !is_loading {
            state.leases.may_have_lost_some(wall_clock, uptime);
        }
    });
    if !is_loading {
        watching::check_all_soon(host, None);
        arm(host, Some(NEXT_TURN));
    }
}

/// A run of the timer, under its budget: advances the queues that have something to do now, and serves
/// clients that wait. Arms the timer for its next run. Returns how long the run took, if work is left.
pub fn on_alarm<H: Keyspace>(host: H, is_primary: bool) -> Option<Duration> {
    host.with(|state| state.alarm = None);
    if !is_primary {
        on_role_changed(host, false);
        return None;
    }
    if host.with(|state| state.is_loading) {
        return None;
    }
    if was_clock_set(host) {
        // The wall clock was set: recheck every key at which clients wait. The hints were made by
        // the old clock: what had happened may happen again. And a queue's clock that was too far
        // ahead to be used may be used now: see [`time_for`].
        serving::serve_all_soon(host);
    }
    let slice = TimeSlice::begin(host);
    host.with(|state| state.removed_bytes = 0);
    // Clients first: those that wait for what a job or a lease came to; and, where the last run left
    // work, those that wait for jobs get half of the budget before more queues are advanced.
    checks::check_watched(host, &slice);
    if host.with(|state| state.is_behind) {
        serving::run_slice_for_waiting(host, &slice.half());
    }
    advance_due_queues(host, &slice);
    // Queues that left their key, clients left over from above, and the slow walk over all keys get
    // what is left of the budget.
    let has_more_moved = moved::run_slice(host, &slice);
    let served = serving::run_slice(host, &slice);
    let again = sweep::run_slice(host, &slice).into_iter().chain(served).min();
    let is_cut = slice.is_over(host) || has_more_moved;
    let took = slice.took(host);
    host.with(|state| {
        state.is_behind = is_cut;
        state.stats.count(took, is_cut);
    });
    arm(host, if is_cut { Some(NEXT_TURN) } else { again });
    is_cut.then_some(took)
}

fn advance_due_queues<H: Keyspace>(host: H, slice: &TimeSlice) {
    let wall_clock = host.wall_clock();
    let access = if host.may_change() { Access::Write } else { Access::Read };
    while !slice.is_over(host) {
        let Some(hint) = host.with(|state| state.hints.take_due(wall_clock)) else {
            return;
        };
        let next = host.open((hint.database, &hint.key), access, |key, value| {
            // If another queue is at the key now, it has its own hint.
            let is_its = value.hint == Some(hint.time);
            is_its.then(|| run_due(host, &key, value, access, slice)).flatten()
        });
        match next {
            Ok(Some(next)) => host.with(|state| state.hints.add(next, hint.database, &hint.key)),
            Ok(None) | Err(Closed::Missing) => {}
            Err(Closed::NotOwn) => moved::defer(host, hint),
        }
    }
}

/// Advances a queue, and does what follows. Returns the time of its next hint.
fn run_due<H: Host>(
    host: H,
    key: &H::Key<'_>,
    value: &mut QueueValue,
    access: Access,
    slice: &TimeSlice,
) -> Option<Time> {
    let now = time_for(&value.queue, host.wall_clock());
    value.queue.advance(now);
    // What time did is an event, though nothing is logged.
    notify::publish(host, key, &mut value.queue);
    // Clients that watch jobs of this queue; the rest of them in the next turn.
    if !watching::report_due(host, key, value, now, slice) {
        watching::check_soon(host, key.database(), key.name());
    }
    // What is logged: only where this server may write, so not on a replica or while it is paused.
    let may_change = access == Access::Write;
    let mut forgets_again = None;
    if may_change {
        settle::while_in_slice(host, key, value, slice);
        forget_the_old(host, key, value, slice);
        let has_removed_enough = has_removed_enough(host);
        forgets_again = has_removed_enough.then(|| now.saturating_add(Millis::of_ms(1)));
    }
    if serving::consumers_at(host, key) > 0
        && (!may_change || !serving::serve(host, key, value, slice, now))
    {
        serving::serve_soon(host, key.database(), key.name());
    }
    let sink_again = sink::pour(host, key, value, slice, now);
    // All of this has moved the next time at which there is something to do, so it is found last.
    let next = value.queue.find_wake_at().into_iter().chain(watching::next_check(host, key));
    let next = next.chain(serving::lingers_until(host, key, value, now)).min();
    let next = next.map(|next| match access {
        // Other queues come first.
        Access::Write => next.max(forgets_again.unwrap_or(next)),
        // What must be forgotten has to wait until this server may write.
        Access::Read => next.max(now.saturating_add(UNTIL_WRITABLE)),
    });
    if let Some(again) = sink_again {
        value.queue.wake_by(again);
    }
    let next = next.into_iter().chain(sink_again).min();
    value.hint = next;
    value.share_counts();
    next
}

fn has_groups_to_forget(value: &QueueValue, now: Time) -> bool {
    value.queue.forgets_groups_at(now).is_some_and(|time| time <= now)
}

fn has_removed_enough<H: Host>(host: H) -> bool {
    host.with(|state| state.removed_bytes) >= REMOVED_BYTES_IN_A_RUN
}

/// Removes jobs that have been kept long enough, then groups without jobs that count for nothing.
/// These are explicit operations, which are logged.
fn forget_the_old<H: Host>(host: H, key: &H::Key<'_>, value: &mut QueueValue, slice: &TimeSlice) {
    while !slice.is_over(host) && !has_removed_enough(host) {
        let circumstances = circumstances(host, value);
        let slots = value.queue.to_forget(circumstances.now, STEP_JOBS);
        let (slots, bytes) = value.queue.up_to_bytes(slots, STEP_BYTES);
        host.with(|state| state.removed_bytes += bytes);
        let names = value.queue.ids_of(&slots);
        let (ids, args) = (names.ids(), names.bytes());
        if ids.is_empty() {
            if has_groups_to_forget(value, circumstances.now) {
                let forget = LogForm::Internal(Internal::Forget, &[]);
                commit(host, key, value, &circumstances, &ForgetGroups, forget);
            }
            return;
        }
        commit(
            host,
            key,
            value,
            &circumstances,
            &Remove { ids, counted_as: Removal::Purged },
            LogForm::Internal(Internal::Forget, &args),
        );
    }
}
