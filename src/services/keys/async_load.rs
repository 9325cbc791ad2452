//! An async load: a replica with `repl-diskless-load swapdb` loads a data set while it serves
//! another. The new data set then replaces the old one, or is thrown away. Until then it doesn't
//! show: it has its own hints and sums.

use super::value::QueueValue;
use crate::queue::Time;
use crate::services::host::Host;
use crate::services::key_ref::Database;
use crate::services::timer::hints::Hints;

/// Queues read from now on belong to the async load.
pub fn begin<H: Host>(host: H) {
    host.with(|state| {
        state.sums.begin_async_load();
        state.async_load_hints = Some(Hints::NONE);
    });
}

/// A queue was loaded and will be at this key. Returns false if it isn't part of an async load.
pub fn take<H: Host>(host: H, value: &mut QueueValue, database: Database, key: &[u8]) -> bool {
    let next = Some(value.queue.wake_at()).filter(|next| *next < Time::MAX);
    let is_aside = host.with(|state| {
        let Some(hints) = &mut state.async_load_hints else {
            return false;
        };
        if let Some(next) = next {
            hints.add(next, database, key);
        }
        true
    });
    if is_aside {
        value.hint = next;
        value.share_counts();
    }
    is_aside
}

/// The loaded data set replaces the old one. The server frees the old one without a call for each
/// key.
pub fn swap_in<H: Host>(host: H) {
    let old = host.with(|state| {
        state.sums.swap_in();
        state.async_load_hints.take().map(|new| std::mem::replace(&mut state.hints, new))
    });
    drop(old);
}

/// The loaded data set is thrown away. The server frees it without a call for each key.
pub fn throw_away<H: Host>(host: H) {
    let never_used = host.with(|state| {
        state.sums.throw_away();
        state.async_load_hints.take()
    });
    drop(never_used);
}
