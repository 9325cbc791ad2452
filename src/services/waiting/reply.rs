//! Replies that a client gets at once or, where it waits, later: both are written here.

use super::pending::DeliveredJob;
use super::watchers::JobOutcome;
use super::wish::{Shape, Wish};
use crate::queue::Mode;
use crate::server::replies::Replies;

/// `[[id, body, lease, attempt] ...]`, after the key if there is one. With NOACK, the lease is nil.
/// The due time follows the attempt if it is asked for.
#[inline(always)]
pub fn deliveries<'j>(
    replies: Replies,
    shape: Shape,
    mode: Mode,
    key: &[u8],
    jobs: impl ExactSizeIterator<Item = DeliveredJob<&'j [u8]>>,
) {
    finished(replies, shape);
    if shape.with_key {
        replies.array(2);
        replies.bulk(key);
    }
    replies.array(jobs.len());
    for job in jobs {
        replies.array(4 + usize::from(shape.with_due));
        replies.bulk(job.id);
        replies.bulk(job.body);
        match mode {
            Mode::Lease => replies.integer(job.lease.number()),
            Mode::NoAck => replies.null(),
        }
        replies.integer(job.attempt.into());
        if shape.with_due {
            replies.integer(job.occurrence.unix_ms());
        }
    }
}

/// Nothing could be had.
pub fn nothing(replies: Replies, shape: Shape) {
    finished(replies, shape);
    replies.null();
}

/// How many jobs were finished, where that was asked for: what else is replied follows.
#[inline(always)]
fn finished(replies: Replies, shape: Shape) {
    if let Some(finished) = shape.finished {
        replies.array(2);
        replies.integer(finished as u64);
    }
}

/// `[state, what]`: what came of a job.
pub fn outcome(replies: Replies, state: &str, what: Option<&[u8]>) {
    replies.array(2);
    replies.bulk(state.as_bytes());
    match what {
        Some(what) => replies.bulk(what),
        None => replies.null(),
    }
}

/// The reply of a client whose wait has ended.
pub fn unblocked(replies: Replies, wish: Option<Wish>) {
    match wish {
        Some(Wish::Jobs(wish)) => match &wish.delivered {
            Some(delivered) => {
                let jobs = delivered.jobs.iter().map(DeliveredJob::borrowed);
                deliveries(replies, wish.shape, wish.terms.mode, &delivered.key_ref.1, jobs);
            }
            None => nothing(replies, wish.shape),
        },
        Some(Wish::Outcome(wish)) => match wish.told.get() {
            Some(JobOutcome::In(state, what)) => outcome(replies, state.name(), what.as_deref()),
            Some(JobOutcome::Gone) | None => replies.null(),
        },
        Some(Wish::Leases(wish)) => replies.bulks(wish.void_ids().into_iter()),
        None => replies.null(),
    }
}
