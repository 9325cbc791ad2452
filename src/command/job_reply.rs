//! A job as DQ.GET and DQ.PEEK show it.

use crate::queue::{JobView, Stage, State, Time};
use crate::redis::replies::Replies;

/// A map of everything there is to a job.
pub fn reply_job(replies: Replies, job: &JobView, now: Time) {
    let (state, policy, progress) = (job.state(now), &job.policy, &job.progress);
    let limit = policy.attempts.limit();
    let attempts_left = (limit > 0).then(|| u64::from(limit.saturating_sub(progress.attempt)));
    let is_alive = matches!(state, State::Delayed | State::Ready | State::Reserved);
    // When the lease ends it will be dead, not due.
    let is_last = progress.stage == Stage::Leased && job.is_at_its_last_attempt();
    let is_settled = matches!(state, State::Ready | State::Dead | State::Done);
    replies.map(20);
    replies.field("id", job.id.bytes());
    replies.field("body", job.body);
    replies.field("state", state.name().as_bytes());
    replies.field("due", (is_alive && !is_last).then(|| job.due().unix_ms()));
    replies.field("deadline", (progress.stage == Stage::Leased).then(|| job.time.unix_ms()));
    replies.field("priority", u64::from(policy.priority));
    replies.field("ttr", policy.ttr.as_u64());
    replies.field("attempts", u64::from(limit));
    replies.field("attempt", u64::from(progress.attempt));
    replies.field("attempts-left", attempts_left);
    replies.field("lease", progress.lease.map(|lease| lease.number()));
    replies.field("created", job.created.unix_ms());
    replies.field("since", is_settled.then(|| job.since(now).unix_ms()));
    replies.field("backoff-base", policy.backoff.base.as_u64());
    replies.field("backoff-max", policy.backoff.max.as_u64());
    replies.field("ttl", policy.ttl.as_u64());
    replies.field("expires", progress.dies.map(Time::unix_ms));
    replies.field("keep", policy.keep.as_u64());
    replies.field("kept-until", (progress.stage == Stage::Done).then(|| job.time.unix_ms()));
    replies.field("reason", job.reason_at(now));
}
