//! Deaths by time of jobs that others wait for. They are the one effect of time that is written to
//! the log, by id, as `SETTLE`: before the next change of the queue, or by the timer. A bounded
//! number at once: the others come right behind.

use super::alarm::TimeSlice;
use super::commit::{circumstances, commit};
use super::host::Host;
use super::log::LogForm;
use super::place::QueueKey;
use super::value::QueueValue;
use crate::queue::{Circumstances, Settle, Time};

/// About a millisecond.
const EDGES_AT_ONCE: usize = 1_000;

/// Settles what is due before a client's change. Returns whether there was any.
#[inline]
pub fn before_change<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
) -> bool {
    let is_due = is_due(value, circumstances.now);
    if is_due {
        settle_some(host, key, value, circumstances);
    }
    is_due
}

/// The timer settles what is due.
pub fn while_in_slice<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    slice: &TimeSlice,
) {
    let circumstances = circumstances(host, value);
    while is_due(value, circumstances.now) && !slice.is_over(host) {
        settle_some(host, key, value, &circumstances);
    }
}

#[inline]
fn is_due(value: &QueueValue, now: Time) -> bool {
    value.queue.has_edges() && has_died(value, now)
}

#[inline(never)]
fn has_died(value: &QueueValue, now: Time) -> bool {
    value.queue.settles_at().is_some_and(|time| time <= now)
}

#[inline(never)]
fn settle_some<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
) {
    let slots = value.queue.to_settle(circumstances.now, EDGES_AT_ONCE);
    let names = value.queue.ids_of(&slots);
    let form = LogForm::Internal(c"SETTLE", &names.words());
    commit(host, key, value, circumstances, &Settle { ids: names.ids() }, form);
}
