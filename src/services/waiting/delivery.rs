//! Delivers jobs to a waiting client, and gives them back if it didn't get them.

use super::pending::{DeliveredJobs, Undelivered};
use crate::queue::{Claim, Id, Pop, Release, Time, WhenReleased};
use crate::services::change::commit::{circumstances, circumstances_at, commit};
use crate::services::change::log::{pop_args, LogForm, POP, RELEASE};
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::keys::value::QueueValue;
use crate::services::timer::alarm::TimeSlice;

/// The result of a delivery to a waiting client.
pub enum DeliveryOutcome {
    Jobs(DeliveredJobs),
    Nothing,
    /// CONCURRENCY has no free place, and a job is ready: no delivery with a lease is possible.
    ConcurrencyFull,
    /// Nothing yet: one delivery only looks at a limited number of jobs.
    NotYet,
}

/// Delivers jobs to a client that waits. `now` is the time of the command or timer run that serves
/// it.
pub fn deliver<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    pop: &Pop,
    now: Time,
) -> DeliveryOutcome {
    let circumstances = circumstances_at(host, value, now);
    let args = pop_args(pop);
    let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
    let deliveries = commit(host, key, value, &circumstances, pop, LogForm::Command(POP, &args));
    if !deliveries.is_empty() {
        let key_ref = (key.database(), key.name().into());
        DeliveryOutcome::Jobs(DeliveredJobs::new(key_ref, value, &deliveries))
    } else if deliveries.have_ended_early() {
        DeliveryOutcome::NotYet
    } else if deliveries.lack_places() {
        DeliveryOutcome::ConcurrencyFull
    } else {
        DeliveryOutcome::Nothing
    }
}

/// Gives jobs back that their client didn't get: a RELEASE UNBEGUN for each. What the time slice
/// doesn't suffice for is left in `undelivered`.
pub fn give_back<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    undelivered: &mut Undelivered,
    slice: &TimeSlice,
) {
    while let Some((id, lease)) = undelivered.take_next() {
        let Some(id) = Id::new(&id) else {
            continue;
        };
        let claim = Claim { id, lease: Some(lease) };
        let release = Release { when: WhenReleased::Unbegun, ..Release::plain(claim) };
        let number = lease.number().to_string();
        let args = [id.bytes(), number.as_bytes(), b"UNBEGUN"];
        let circumstances = circumstances(host, value);
        commit(host, key, value, &circumstances, &release, LogForm::Command(RELEASE, &args));
        if slice.is_over(host) {
            break;
        }
    }
}
