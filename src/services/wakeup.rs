//! The hint that makes the timer look at a queue in time.

use super::alarm::arm;
use super::host::Host;
use super::place::Database;
use super::value::QueueValue;
use crate::queue::Time;

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
    if needs_no_hint(value) && !value.is_unlocated() {
        return;
    }
    plan_anew(host, value, database(), name());
}

/// Most often there is nothing to do here.
#[cold]
#[inline(never)]
fn plan_anew<H: Host>(host: H, value: &mut QueueValue, database: Database, name: &[u8]) {
    value.set_unlocated(false);
    if needs_no_hint(value) {
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

fn needs_no_hint(value: &QueueValue) -> bool {
    let next = value.queue.wake_at();
    next == Time::MAX || value.hint.is_some_and(|hint| hint <= next)
}

/// Removes the queue's hint, as the queue has left this key. Returns whether there was one.
pub fn cancel<H: Host>(host: H, value: &mut QueueValue, database: Database, name: &[u8]) -> bool {
    let hint = value.hint.take();
    if let Some(hint) = hint {
        host.with(|state| state.hints.remove(hint, database, name));
    }
    hint.is_some()
}
