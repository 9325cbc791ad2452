//! Deaths by time of jobs that others wait for. They are the one effect of time that is written to
//! the log, by id, as `SETTLE`: before the next change of the queue, or by the timer. A bounded
//! number at once: the others come right behind. So is what is pending for jobs that wait: what
//! follows from an end that many wait for is carried out by the timer in slices, each a `SETTLE`, too.

use super::commit::{circumstances, commit};
use super::log::{Internal, LogForm};
use crate::queue::{Circumstances, Settle, Time};
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::keys::value::QueueValue;
use crate::services::timer::alarm::TimeSlice;

/// By the timer: about half a millisecond.
const DEATHS_AT_ONCE: usize = 500;
/// Before a change. There may be thousands of commands in a turn, and no change needs it: an
/// operation on a job that has died notes the death itself.
const DEATHS_BEFORE_A_CHANGE: usize = 20;

/// Settles what has died before a client's change. Returns whether there was any. While more is
/// pending, the timer does that.
#[inline]
pub fn before_change<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
) -> bool {
    let is_due = is_due(value, circumstances.now) && !value.queue.has_pending();
    if is_due {
        settle_some(host, key, value, circumstances, DEATHS_BEFORE_A_CHANGE);
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
        settle_some(host, key, value, &circumstances, DEATHS_AT_ONCE);
    }
}

#[inline]
fn is_due(value: &QueueValue, now: Time) -> bool {
    value.queue.has_edges() && settles_by(value, now)
}

#[inline(never)]
fn settles_by(value: &QueueValue, now: Time) -> bool {
    value.queue.settles_at().is_some_and(|time| time <= now)
}

#[inline(never)]
fn settle_some<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
    deaths: usize,
) {
    let slots = value.queue.to_settle(circumstances.now, deaths);
    let names = value.queue.ids_of(&slots);
    let form = LogForm::Internal(Internal::Settle, &names.bytes());
    commit(host, key, value, circumstances, &Settle { ids: names.ids() }, form);
}
