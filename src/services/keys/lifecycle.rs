//! Queues that come to keys and leave them: created, loaded from a file, copied, deleted, or moved.

use super::value::QueueValue;
use super::{async_load, sweep};
use crate::queue::Queue;
use crate::services::host::Host;
use crate::services::key_ref::Database;
use crate::services::timer::wakeup;
use crate::services::waiting::watching;

/// A value for a queue that was just created.
pub fn new<H: Host>(host: H, queue: Queue) -> QueueValue {
    let (share, number) = host.with(|state| (state.sums.share(), state.next_queue()));
    QueueValue::new(queue, share, number)
}

/// A value for a queue read from a file. It belongs to the async load, if one is in progress.
pub fn read<H: Host>(host: H, queue: Queue) -> QueueValue {
    let (share, number) = host.with(|state| (state.sums.share_of_async_load(), state.next_queue()));
    QueueValue::new(queue, share, number)
}

/// The value was read from a file and will be at this key.
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
    // If this replica is promoted, a new queue at this key must continue above these leases.
    let (lease, wall_clock) = (copy.last_lease(), host.wall_clock());
    host.with(|state| state.leases.observe(lease, wall_clock));
    wakeup::plan(host, &mut copy, || database, || key);
    copy
}

/// The value is no longer at this key. It may live on at another.
pub fn left_key<H: Host>(host: H, value: &mut QueueValue, database: Database, key: &[u8]) {
    value.lease_epoch = 0;
    watching::on_leaving(host, database, key);
    if let Some(hint) = value.hint.take() {
        host.with(|state| state.hints.remove(hint, database, key));
        value.set_unlocated(true);
        sweep::request(host);
    }
}
