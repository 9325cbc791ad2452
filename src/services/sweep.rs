//! Finding queues that have moved and that nobody has met since. RENAME and MOVE take a queue to
//! another key and tell nobody where; all that a module sees is the value leaving its old key. The
//! next command on it, or a consumer that waits at its new key, meets it there
//! ([`super::wakeup::plan`]), and nobody waits for a sweep. But notifications, the sums in INFO and
//! jobs whose KEEP is over need the timer also where nobody comes. For them the keys are walked, at
//! a pace that nobody feels ([`super::pace`]), round after round, as long as such a queue lives.
//!
//! (A keyspace subscription would tell, but makes COPY … DB and MOVE leave the client in the wrong
//! database on Valkey 8.1; a command filter would cost every command of the server.)

use std::time::Duration;

use super::alarm::{arm, TimeSlice};
use super::host::Host;
use super::pace::{GRACE, SLICE};
use super::value::QueueValue;

/// The value has left its key, while it waited for something.
pub fn left_its_key<H: Host>(host: H, value: &mut QueueValue) {
    value.set_unlocated(true);
    request(host);
}

/// If a queue is who knows where, it is looked for, soon.
pub fn request<H: Host>(host: H) {
    if host.with(|state| state.sums.is_any_unlocated()) {
        let uptime = host.uptime();
        host.with(|state| state.sweep.request(uptime));
        arm(host, Some(GRACE));
    }
}

/// A slice of the work, if there is any; when to come again.
pub fn run_slice<H: Host>(host: H, slice: &TimeSlice) -> Option<Duration> {
    if !host.with(|state| state.sums.is_any_unlocated()) {
        host.with(|state| state.sweep.cancel());
        return None;
    }
    let begun = host.uptime();
    let wait = host.with(|state| state.sweep.wait(begun));
    if !wait.is_zero() {
        return Some(wait);
    }
    if !host.with(|state| std::mem::replace(&mut state.sweep.is_under_way, true)) {
        host.begin_walk();
    }
    let took = || host.uptime().saturating_sub(begun);
    let mut goes_on = true;
    while goes_on && took() < SLICE && !slice.is_over(host) {
        goes_on = host.walk_on();
    }
    let (took, uptime) = (took(), host.uptime());
    Some(host.with(|state| {
        if !goes_on {
            state.sweep.finish_round(uptime);
        }
        state.sweep.took(took, uptime)
    }))
}
