//! The hint that makes the timer come in time for a queue.

use super::alarm::arm;
use super::host::Host;
use super::place::Database;
use super::value::QueueValue;
use crate::queue::Time;

/// Sees to it that the timer comes in time for this queue, which is at that key. Whoever meets a
/// queue calls this: so one that came there unseen, by RENAME or MOVE, is known to be there from
/// then on.
pub fn plan<'n, H: Host>(
    host: H,
    value: &mut QueueValue,
    database: impl FnOnce() -> Database,
    name: impl FnOnce() -> &'n [u8],
) {
    value.share_counts();
    let next = value.queue.wake_at();
    let needs_no_hint = next == Time::MAX || value.hint.is_some_and(|hint| hint <= next);
    // Most often the queue's hint is early enough, and this is all.
    if needs_no_hint && !value.is_unlocated() {
        return;
    }
    value.set_unlocated(false);
    if needs_no_hint {
        return;
    }
    let (database, name) = (database(), name());
    host.with(|state| {
        if let Some(hint) = value.hint {
            state.hints.remove(hint, database, name);
        }
        state.hints.add(next, database, name);
    });
    value.hint = Some(next);
    arm(host, None);
}

/// Drops the queue's hint: it is not at that key any more. Says whether there was one.
pub fn cancel<H: Host>(host: H, value: &mut QueueValue, database: Database, name: &[u8]) -> bool {
    let hint = value.hint.take();
    if let Some(hint) = hint {
        host.with(|state| state.hints.remove(hint, database, name));
    }
    hint.is_some()
}
