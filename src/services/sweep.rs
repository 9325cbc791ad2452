//! Finding queues that have moved. RENAME and MOVE take a queue to another key and tell nobody where; all
//! that a module sees is the value leaving its old key. When it still lives a moment later, it is looked
//! for: a walk over the keys, in slices of the timer's budget, gives a hint to every queue without one.
//!
//! (A keyspace subscription would tell, but makes COPY … DB and MOVE leave the client in the wrong
//! database on Valkey 8.1; a command filter would cost every command of the server.)

use std::time::Duration;

use super::alarm::{arm, Slice};
use super::host::Host;
use super::orphans::GRACE;
use super::value::QueueValue;

/// While a sweep goes on, the timer comes this often.
const BETWEEN_SLICES: Duration = Duration::from_millis(1);

/// The value, which waits for something, has left its key.
pub fn left_its_key<H: Host>(host: H, value: &QueueValue) {
    let since = host.uptime();
    host.with(|state| state.sweep.add(value.life(), since));
    arm(host, Some(GRACE));
}

/// Looks through all keys, soon.
pub fn want<H: Host>(host: H) {
    host.with(|state| state.sweep.is_wanted = true);
    arm(host, Some(BETWEEN_SLICES));
}

/// A slice of the work, if there is any; when to come again.
pub fn go_on<H: Host>(host: H, slice: &Slice) -> Option<Duration> {
    let uptime = host.uptime();
    if host.with(|state| state.sweep.take_begin(uptime)) {
        host.begin_walk();
        host.with(|state| state.sweep.is_under_way = true);
    }
    let mut goes_on = host.with(|state| state.sweep.is_under_way);
    while goes_on && !slice.is_over(host) {
        goes_on = host.walk_on();
    }
    host.with(|state| {
        state.sweep.is_under_way = goes_on;
        if goes_on {
            Some(BETWEEN_SLICES)
        } else {
            state.sweep.has_more().then_some(GRACE)
        }
    })
}
