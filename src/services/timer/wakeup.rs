//! The hint that makes the timer look at a queue in time.

use super::alarm::arm;
use crate::queue::Time;
use crate::services::host::Host;
use crate::services::key_ref::Database;
use crate::services::keys::value::QueueValue;

/// Makes sure that the timer looks at this queue, at this key, in time. All code that opens a queue
/// calls it: so a queue that came to its key unnoticed, by RENAME or MOVE, gets its hint.
pub fn plan<'n, H: Host>(
    host: H,
    value: &mut QueueValue,
    database: impl FnOnce() -> Database,
    name: impl FnOnce() -> &'n [u8],
) {
    value.share_counts();
    // For most calls the queue's hint is early enough.
    if !value.is_to_be_planned() && !value.is_unlocated() {
        return;
    }
    plan_anew(host, value, database(), name());
}

/// The same for something else than what the queue does: the timer looks at it by `time`.
pub fn plan_by<H: Host>(
    host: H,
    value: &mut QueueValue,
    time: Time,
    database: Database,
    name: &[u8],
) {
    if value.hint.is_some_and(|hint| hint <= time) {
        return;
    }
    host.with(|state| {
        if let Some(hint) = value.hint {
            state.hints.remove(hint, database, name);
        }
        state.hints.add(time, database, name);
    });
    value.hint = Some(time);
    arm(host, None);
}

/// Most often there is nothing to do here.
#[cold]
#[inline(never)]
fn plan_anew<H: Host>(host: H, value: &mut QueueValue, database: Database, name: &[u8]) {
    value.set_unlocated(false);
    if !value.is_to_be_planned() {
        return;
    }
    let next = value.queue.wake_at();
    host.with(|state| {
        if let Some(hint) = value.hint {
            state.hints.remove(hint, database, name);
        }
        state.hints.add(next, database, name);
    });
    value.hint = Some(next);
    arm(host, None);
}
