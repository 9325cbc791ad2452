//! Finds queues that have moved to an unknown key. RENAME and MOVE take a queue to another key, but
//! the module only sees the value leave its old key. The next command on the queue, or a client
//! waiting at its new key, finds it there (`timer/wakeup.rs`), so no client waits for a
//! sweep. But notifications, the sums in INFO and jobs whose KEEP is over need the timer even if no
//! command comes. For these, the sweep walks over all keys, slowly enough for clients not to notice
//! ([`super::pace`]), pass after pass, while there is such a queue.
//!
//! (A keyspace subscription would report the new key, but on Valkey 8.1 it makes COPY … DB and MOVE
//! leave the client in the wrong database; a command filter would cost time in every command of the
//! server.)

use std::time::Duration;

use super::pace::{GRACE, SLICE};
use crate::services::host::{Host, Keyspace};
use crate::services::timer::alarm::{arm, TimeSlice};

/// Starts a sweep soon, if a queue is at an unknown key.
pub fn request<H: Host>(host: H) {
    if host.with(|state| state.sums.is_any_unlocated()) {
        let uptime = host.uptime();
        host.with(|state| state.sweep.request(uptime));
        arm(host, Some(GRACE));
    }
}

/// Runs a slice of the sweep, if there is anything to find. Returns when to run again.
pub fn run_slice<H: Keyspace>(host: H, slice: &TimeSlice) -> Option<Duration> {
    if !host.with(|state| state.sums.is_any_unlocated()) {
        host.with(|state| state.sweep.cancel());
        return None;
    }
    let begun = host.uptime();
    let wait = host.with(|state| state.sweep.wait(begun));
    if !wait.is_zero() {
        return Some(wait);
    }
    host.with(|state| state.sweep.is_under_way = true);
    let took = || host.uptime().saturating_sub(begun);
    let mut goes_on = true;
    while goes_on && took() < SLICE && !slice.is_over(host) {
        goes_on = host.walk_on();
    }
    let (took, uptime) = (took(), host.uptime());
    Some(host.with(|state| {
        if !goes_on {
            state.sweep.finish_pass(uptime);
        }
        state.sweep.took(took, uptime)
    }))
}
