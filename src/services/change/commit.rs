//! One change of a queue: applied under its circumstances, logged, and announced.

use super::log::{self, LogForm};
use super::notify;
use crate::queue::{Changed, Circumstances, Lease, Millis, Operation, Queue, Time};
use crate::services::calendar::recording_calendar::RecordingCalendar;
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::keys::lazyfree;
use crate::services::keys::value::QueueValue;
use crate::services::waiting::watching;

/// If the wall clock is behind the queue's clock by at most this much, the queue's clock is used.
/// (On a new primary, or when the clock was set back.) If it is further behind, the wall clock is
/// used: otherwise the queue would stand still until the wall clock has caught up.
const CLOCK_BACK_MAX: Millis = Millis::of_secs(60);

/// The current time for this queue.
pub fn time_for(queue: &Queue, wall_clock: Time) -> Time {
    let clock = queue.log_state().clock;
    if clock.since(wall_clock) <= CLOCK_BACK_MAX {
        wall_clock.max(clock)
    } else {
        wall_clock
    }
}

/// The circumstances for a command on this queue now.
pub fn circumstances<H: Host>(host: H, value: &QueueValue) -> Circumstances {
    circumstances_at(host, value, host.wall_clock())
}

/// As [`circumstances`], with a wall clock that was read before.
pub fn circumstances_at<H: Host>(host: H, value: &QueueValue, wall_clock: Time) -> Circumstances {
    let now = time_for(&value.queue, wall_clock);
    Circumstances { now, defaults: host.defaults(), lease_floor: Lease::default() }
}

/// Applies an operation, logs it and announces it. Doesn't serve waiting clients.
pub fn commit<H: Host, O: Operation>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
    operation: &O,
    log_as: LogForm,
) -> O::Outcome {
    let mut circumstances = *circumstances;
    // A key may have held another queue before: its lease numbers must not be given out again.
    if O::GIVES_LEASES {
        circumstances.lease_floor =
            host.with(|state| state.leases.floor_for(value, circumstances.now));
    }
    // The log says what differs from the state before, so that is kept.
    let before = *value.queue.log_state();
    // Answers about cron expressions are logged, too: a replica asks no calendar.
    let mut recording_calendar = RecordingCalendar::new(host);
    let outcome = value.queue.apply_by(&circumstances, operation, &mut recording_calendar);
    // Nothing has changed: the log, WATCH and listeners hear nothing.
    if !outcome.has_changed() {
        return outcome;
    }
    lazyfree::free_removed(&mut value.queue);
    log::write(key, &before, &circumstances, recording_calendar.answers(), log_as);
    key.signal_modified();
    if let Some(deliveries) = outcome.deliveries() {
        value.lateness.record(deliveries, circumstances.now);
        let lease = value.last_lease();
        host.with(|state| {
            state.leases.observe(lease, circumstances.now);
            // Keep announcing the floor until a lease was given: if the clock goes back, this queue
            // could reuse another queue's lease numbers.
            if !deliveries.is_empty() || circumstances.lease_floor > Lease::default() {
                state.leases.mark_floor_set(value);
            }
        });
    }
    // The queue is in its new state and the log has it. Now events may say so.
    notify::publish(host, key, &mut value.queue);
    watching::report(host, key, value, circumstances.now);
    outcome
}
