//! Queues that come to keys and leave them: made there, out of a file, as a copy, deleted, or on
//! their way to another.

use super::host::Host;
use super::place::Database;
use super::value::QueueValue;
use super::{async_load, sweep, wakeup};
use crate::queue::Queue;

/// A queue that nobody has met yet.
pub fn new<H: Host>(host: H, queue: Queue) -> QueueValue {
    let (share, number) = host.with(|state| (state.sums.share(), state.next_queue()));
    QueueValue::new(queue, share, number)
}

/// Out of a file: of the data set that is being loaded async_load, if one is.
pub fn read<H: Host>(host: H, queue: Queue) -> QueueValue {
    let (share, number) = host.with(|state| (state.sums.share_of_async_load(), state.next_queue()));
    QueueValue::new(queue, share, number)
}

/// The value will be at this key, out of a file.
pub fn loaded<H: Host>(host: H, value: &mut QueueValue, database: Database, key: &[u8]) {
    let (lease, wall_clock) = (value.last_lease(), host.wall_clock());
    host.with(|state| state.leases.observe(lease, wall_clock));
    if !async_load::take(host, value, database, key) {
        wakeup::plan(host, value, || database, || key);
    }
}

/// A copy that will be at this key.
pub fn copy<H: Host>(host: H, value: &QueueValue, database: Database, key: &[u8]) -> QueueValue {
    let mut copy = new(host, value.queue.clone());
    // On a replica that is promoted, a new queue under this value's key goes on behind these
    // leases.
    let (lease, wall_clock) = (copy.last_lease(), host.wall_clock());
    host.with(|state| state.leases.observe(lease, wall_clock));
    wakeup::plan(host, &mut copy, || database, || key);
    copy
}

/// The value is no longer at this key. It may live on, at another.
pub fn left_key<H: Host>(host: H, value: &mut QueueValue, database: Database, key: &[u8]) {
    value.lease_epoch = 0;
    if wakeup::cancel(host, value, database, key) {
        sweep::left_its_key(host, value);
    }
}
