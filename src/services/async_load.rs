//! A data set that is loaded while another is served, and that takes its place or is thrown away:
//! what a replica does with `repl-diskless-load swapdb`. Until then nothing of it shows: it has
//! hints and sums of its own.

use super::hints::Hints;
use super::host::Host;
use super::place::Database;
use super::value::QueueValue;
use crate::queue::Time;

/// What is loaded from now on is loaded async_load.
pub fn begin<H: Host>(host: H) {
    host.with(|state| {
        state.sums.begin_async_load();
        state.async_load_hints = Some(Hints::NONE);
    });
}

/// A queue has been loaded, and will be at this key. False when it is in the data set that is
/// served.
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

/// The data set is the one that is served now. The other is thrown away, and its values tell
/// nobody.
pub fn swap_in<H: Host>(host: H) {
    let old = host.with(|state| {
        state.sums.swap_in();
        state.async_load_hints.take().map(|new| std::mem::replace(&mut state.hints, new))
    });
    drop(old);
}

/// The data set is thrown away. Its values tell nobody.
pub fn throw_away<H: Host>(host: H) {
    let never_used = host.with(|state| {
        state.sums.throw_away();
        state.async_load_hints.take()
    });
    drop(never_used);
}
