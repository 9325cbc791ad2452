//! Keys whose slot is another node's, while slots of a cluster move atomically: those that arrive
//! and aren't this node's own yet, and those that have left and are about to be removed. The timer
//! leaves them alone. It looks again every second and whenever a move has ended: until the key is
//! this node's own, or there is no such key.
//!
//! After a move the hints are walked through, since no server tells of each key that has left:
//! Redis takes all of a slot away at once and frees them on a thread.

use super::alarm::{arm, TimeSlice, NEXT_TURN};
use super::hints::{Hint, Walk};
use super::host::Host;
use crate::queue::Millis;

const LOOKS_AGAIN_AFTER: Millis = Millis::of_secs(1);

/// Hints between two looks at the clock: some tens of microseconds.
const STEP_HINTS: usize = 100;

/// Slots begin to move here, or have moved, here or away; or they don't move any more.
pub fn on_slots_moved<H: Host>(host: H) {
    host.with(|state| {
        state.hints.release();
        state.moved = Walk { is_under_way: true, reached: None };
    });
    arm(host, Some(NEXT_TURN));
}

/// The hint's key is another node's.
pub fn defer<H: Host>(host: H, hint: Hint) {
    let again = host.wall_clock().saturating_add(LOOKS_AGAIN_AFTER);
    host.with(|state| state.hints.defer(hint, again));
}

/// A slice of the walk, if one is under way; whether it goes on.
pub fn run_slice<H: Host>(host: H, slice: &TimeSlice) -> bool {
    while host.with(|state| state.moved.is_under_way) && !slice.is_over(host) {
        let hints = host.with(|state| state.hints.behind(state.moved.reached.as_ref(), STEP_HINTS));
        let reached = hints.last().map(|hint| (hint.database, hint.time, hint.key.clone()));
        for hint in hints {
            if !host.is_own(&hint.key) {
                host.with(|state| state.hints.remove(hint.time, hint.database, &hint.key));
                defer(host, hint);
            }
        }
        host.with(|state| state.moved = Walk { is_under_way: reached.is_some(), reached });
    }
    host.with(|state| state.moved.is_under_way)
}
