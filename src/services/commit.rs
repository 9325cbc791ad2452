//! One change of a queue: carried out under its circumstances, logged, and told to those who watch.

use super::host::Host;
use super::lazyfree;
use super::log::{self, LogForm};
use super::notify::{self, Announced};
use super::place::QueueKey;
use super::recording_calendar::RecordingCalendar;
use super::value::QueueValue;
use crate::queue::{Changed, Circumstances, Lease, Millis, Queue, Time};

/// A clock that is behind a queue's own by at most this waits at the queue's. (A new primary's, or
/// one that was set back.) Behind by more, it is taken as it is: else the queue would stand still
/// until it has caught up.
const CLOCK_BACK_MAX: Millis = Millis::of_secs(60);

/// The time for this queue.
pub fn time_for(queue: &Queue, wall_clock: Time) -> Time {
    let clock = queue.log_state().clock;
    if clock.since(wall_clock) <= CLOCK_BACK_MAX {
        wall_clock.max(clock)
    } else {
        wall_clock
    }
}

/// The circumstances in which a command is carried out on this queue now.
pub fn circumstances<H: Host>(host: H, value: &QueueValue) -> Circumstances {
    circumstances_at(host, value, host.wall_clock())
}

/// The same for whoever has looked at the clock already.
pub fn circumstances_at<H: Host>(host: H, value: &QueueValue, wall_clock: Time) -> Circumstances {
    let now = time_for(&value.queue, wall_clock);
    Circumstances { now, defaults: host.defaults(), lease_floor: Lease::default() }
}

/// Does something to a queue, logs it and tells watchers. Consumers that wait are not served by it.
pub fn commit<H: Host, O: Announced>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
    operation: &O,
    log_as: LogForm,
) -> O::Outcome {
    let mut circumstances = *circumstances;
    if O::GIVES_LEASES {
        circumstances.lease_floor =
            host.with(|state| state.leases.floor_for(value, circumstances.now));
    }
    let before = *value.queue.log_state();
    let mut recording_calendar = RecordingCalendar::new(host);
    let outcome = value.queue.apply_by(&circumstances, operation, &mut recording_calendar);
    if !outcome.has_changed() {
        return outcome;
    }
    lazyfree::free_removed(&mut value.queue);
    log::write(key, &before, &circumstances, recording_calendar.answers(), log_as);
    key.signal_modified();
    if let Some(deliveries) = O::deliveries(&outcome) {
        value.lateness.record(deliveries, circumstances.now);
        let lease = value.last_lease();
        host.with(|state| {
            state.leases.observe(lease, circumstances.now);
            // A queue that has given none may still begin with those of another, once the clock is
            // set back.
            if !deliveries.is_empty() || circumstances.lease_floor > Lease::default() {
                state.leases.mark_floor_set(value);
            }
        });
    }
    let announcement = O::announce(&outcome);
    notify::count(&announcement);
    notify::tell(host, key, &mut value.queue, Some(&announcement));
    outcome
}
