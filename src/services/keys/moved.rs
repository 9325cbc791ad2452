//! Keys whose slot belongs to another node, while slots of a cluster move atomically: keys that
//! arrive and aren't this node's yet, and keys that have left and are about to be removed. The
//! timer doesn't change them. It looks again every second and whenever a move has ended: until the
//! key is this node's, or is gone.
//!
//! After a move, all hints are walked: no server reports each key that has left. Redis takes all
//! keys of a slot away at once and frees them on a thread.

use crate::queue::Millis;
use crate::services::host::Host;
use crate::services::timer::alarm::{arm, TimeSlice, NEXT_TURN};
use crate::services::timer::hints::{Hint, Walk};

const LOOKS_AGAIN_AFTER: Millis = Millis::of_secs(1);

/// Hints between two reads of the clock: some tens of microseconds.
const STEP_HINTS: usize = 100;

/// Slots begin to move to this node, have moved, or their move was cancelled.
pub fn on_slots_moved<H: Host>(host: H) {
    host.with(|state| {
        state.hints.resume_deferred();
        state.moved = Walk { is_under_way: true, reached: None };
    });
    arm(host, Some(NEXT_TURN));
}

/// Puts off a hint whose key belongs to another node.
pub fn defer<H: Host>(host: H, hint: Hint) {
    let again = host.wall_clock().saturating_add(LOOKS_AGAIN_AFTER);
    host.with(|state| state.hints.defer(hint, again));
}

/// Runs a slice of the walk, if one is in progress. Returns whether the walk goes on.
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
