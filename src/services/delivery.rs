//! Handing out to a consumer that waits, and giving back what it was never told of.

use super::alarm::TimeSlice;
use super::commit::{circumstances, circumstances_at, commit};
use super::host::Host;
use super::log::{pop_words, LogForm, POP, RELEASE};
use super::pending::{Assigned, Undelivered};
use super::place::QueueKey;
use super::value::QueueValue;
use crate::queue::{Claim, Id, Pop, Release, Time, WhenReleased};

/// What there is for a consumer that waits.
pub enum Delivered {
    Jobs(Assigned),
    Nothing,
    /// Nothing for one who leases: all places of CONCURRENCY are taken, and there is something that
    /// is ready.
    ConcurrencyFull,
    /// Nothing yet: there was more to step over than one delivery does.
    NotYet,
}

/// Hands out jobs to a client that waits. `now` is the time of the command or timer run that serves
/// it.
pub fn deliver<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    pop: &Pop,
    now: Time,
) -> Delivered {
    let circumstances = circumstances_at(host, value, now);
    let words = pop_words(pop);
    let words: Vec<&[u8]> = words.iter().map(String::as_bytes).collect();
    let deliveries = commit(host, key, value, &circumstances, pop, LogForm::Command(POP, &words));
    if !deliveries.is_empty() {
        let place = (key.database(), key.name().into());
        Delivered::Jobs(Assigned::new(place, value, &deliveries))
    } else if deliveries.have_ended_early() {
        Delivered::NotYet
    } else if deliveries.lack_places() {
        Delivered::ConcurrencyFull
    } else {
        Delivered::Nothing
    }
}

/// Gives back what its consumer was never told of: a RELEASE UNBEGUN of each job. Those for which
/// the time is too short are still there then.
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
        let words = [id.bytes(), number.as_bytes(), b"UNBEGUN"];
        let circumstances = circumstances(host, value);
        commit(host, key, value, &circumstances, &release, LogForm::Command(RELEASE, &words));
        if slice.is_over(host) {
            break;
        }
    }
}
