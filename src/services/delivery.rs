//! Handing out to a consumer that waits, and taking back what it didn't get.

use super::alarm::Slice;
use super::commit::{circumstances, circumstances_at, commit};
use super::host::{Host, QueueKey};
use super::log::{pop_words, Wording, POP};
use super::pending::{Lost, PendingDeliveries};
use super::value::QueueValue;
use crate::queue::{Id, Limit, Mode, Pop, Record, Return, Time};

/// What there is for a consumer that waits.
pub enum Delivered {
    Jobs(PendingDeliveries),
    Nothing,
    /// Nothing for one who leases: all places of CONCURRENCY are taken, and there is something that is ready.
    NoPlace,
    /// Nothing yet: there was more to step over than one delivery does.
    NotYet,
}

/// Hands out jobs to a consumer that waits, by the time that whoever comes has read.
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
    let deliveries = commit(host, key, value, &circumstances, pop, Wording::Command(POP, &words));
    if !deliveries.is_empty() {
        Delivered::Jobs(PendingDeliveries::of(&deliveries, &value.queue))
    } else if deliveries.have_ended_early() {
        Delivered::NotYet
    } else if deliveries.held_by() == Some(Limit::Concurrency) {
        Delivered::NoPlace
    } else {
        Delivered::Nothing
    }
}

/// Puts the jobs back that nobody has got, the last one first, so that they stand as they stood; those for which the
/// time is too short are still there then.
pub fn give_back<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    lost: &mut Lost,
    slice: Option<&Slice>,
) {
    let is_noack = lost.mode == Mode::NoAck;
    while let Some(job) = lost.take_last() {
        let Some(id) = Id::new(&job.id) else {
            continue;
        };
        let circumstances = circumstances(host, value);
        if job.was_removed(&value.queue) {
            continue;
        }
        let body = is_noack.then_some(&job.body[..]);
        let (lease, record) = (job.lease.number().to_string(), job.record.encode());
        let mut words: Vec<&[u8]> = vec![&job.id, lease.as_bytes(), &record];
        words.extend(body);
        let missed = if is_noack { job.missed } else { 0 };
        let missed_word = missed.to_string();
        words.extend((missed > 0).then_some(missed_word.as_bytes()));
        let returned = Return { id, lease: job.lease, record: &job.record, body, missed };
        commit(host, key, value, &circumstances, &returned, Wording::Internal(c"RETURN", &words));
        if slice.is_some_and(|slice| slice.is_over(host)) {
            break;
        }
    }
}
