//! The one alarm of the module: when it goes off, and how long a run of the timer may take.

use std::time::Duration;

use crate::queue::Millis;
use crate::services::host::Host;
use crate::services::key_ref::Ticket;

/// The longest wait for the alarm: Redis 7.0 spins at 100 % CPU while a timer is more than 35
/// minutes away.
const FURTHEST: Duration = Duration::from_secs(60);
/// The longest wait while a client waits for a job. Server timers use a monotonic clock: so if the
/// wall clock is set, it is noticed within this time.
const FURTHEST_WHILE_CLIENTS_WAIT: Duration = Duration::from_secs(1);
/// Two clocks that are read one after the other may differ by this much.
const CLOCKS_DIFFER_BY: Millis = Millis::of_ms(5);
/// Soon, but not in this turn of the event loop.
pub const NEXT_TURN: Duration = Duration::from_millis(1);
/// While the server must not write, the timer asks this often whether it may write again.
pub const UNTIL_WRITABLE: Millis = Millis::of_ms(10);

/// Sets the alarm for the earliest hint or wait, and within `at_latest`, unless it goes off before
/// that anyway.
pub fn arm<H: Host>(host: H, at_latest: Option<Duration>) {
    let (earliest, alarm, is_stopped, do_clients_wait) = host.with(|state| {
        (state.hints.earliest(), state.alarm, !state.is_active(), state.waiters.len() > 0)
    });
    if is_stopped {
        return;
    }
    let wait = earliest
        .map(|time| host.until(time))
        .into_iter()
        .chain(at_latest)
        .chain(next_turn(host))
        .min();
    let wait = if do_clients_wait {
        // Even if there is nothing to do: there may be if the clock is set.
        Some(wait.map_or(FURTHEST_WHILE_CLIENTS_WAIT, |wait| wait.min(FURTHEST_WHILE_CLIENTS_WAIT)))
    } else {
        wait.map(|wait| wait.min(FURTHEST))
    };
    let Some(wait) = wait else {
        return;
    };
    let fires = host.uptime().saturating_add(wait);
    if alarm.is_some_and(|alarm| alarm <= fires) {
        return;
    }
    host.with(|state| state.alarm = Some(fires));
    host.set_alarm(wait);
}

/// When the next waiting client is to be served, or its wait ends.
pub fn next_turn<H: Host>(host: H) -> Option<Duration> {
    let until_writable = Duration::from_millis(UNTIL_WRITABLE.as_u64());
    let when_writable = if host.may_change() { NEXT_TURN } else { until_writable };
    let uptime = host.uptime();
    host.with(|state| {
        let has_writes = !state.to_serve.is_empty() || !state.undelivered.is_empty();
        let until = |deadline: Duration| deadline.saturating_sub(uptime);
        let next_deadline = state.waiters.next_deadline().map(until);
        let to_write = has_writes.then_some(when_writable);
        let has_more = state.has_to_unblock() || !state.to_check.is_empty();
        let more = has_more.then_some(NEXT_TURN);
        next_deadline.into_iter().chain(to_write).chain(more).min()
    })
}

/// Unblocks these clients, and those that chores find, at the end of the turn.
pub fn unblock_soon<H: Host>(host: H, tickets: impl IntoIterator<Item = Ticket>) {
    let is_awaited = host.with(|state| {
        state.to_unblock.extend(tickets);
        !state.has_to_unblock() || std::mem::replace(&mut state.is_turn_end_awaited, true)
    });
    if !is_awaited {
        host.at_end_of_turn();
    }
}

/// Whether the wall clock was set since the last call.
pub fn was_clock_set<H: Host>(host: H) -> bool {
    let (wall_clock, uptime) = (host.wall_clock(), host.uptime());
    let Some((before, then)) = host.with(|state| state.clocks.replace((wall_clock, uptime))) else {
        return false;
    };
    let passed = u64::try_from(uptime.saturating_sub(then).as_millis()).unwrap_or_default();
    let expected = before.saturating_add(Millis::new(passed).unwrap_or(Millis::MAX));
    expected.since(wall_clock).max(wall_clock.since(expected)) > CLOCKS_DIFFER_BY
}

/// The time that one run of the timer may take.
#[derive(Clone, Copy)]
pub struct TimeSlice {
    begun: Duration,
    budget: Duration,
}

impl TimeSlice {
    pub fn begin<H: Host>(host: H) -> TimeSlice {
        TimeSlice { begun: host.uptime(), budget: host.tick_budget() }
    }

    /// The first half of the slice.
    pub fn half(self) -> TimeSlice {
        TimeSlice { budget: self.budget / 2, ..self }
    }

    pub fn took<H: Host>(&self, host: H) -> Duration {
        host.uptime().saturating_sub(self.begun)
    }

    pub fn is_over<H: Host>(&self, host: H) -> bool {
        self.took(host) >= self.budget
    }
}
