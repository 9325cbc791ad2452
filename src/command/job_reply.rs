//! A job as DQ.GET and DQ.PEEK show it.

use crate::queue::{JobView, Stage, State, Time};
use crate::server::replies::{Fields, Replies};

/// A map of everything there is to a job.
pub fn reply_job(replies: Replies, job: &JobView, now: Time) {
    let (state, policy, progress) = (job.state(now), &job.policy, &job.progress);
    let limit = policy.attempts.limit();
    let attempts_left = (limit > 0).then(|| u64::from(limit.saturating_sub(progress.attempt)));
    let is_alive = matches!(state, State::Delayed | State::Ready | State::Reserved);
    // When the lease ends it will be dead, not due.
    let is_last = progress.stage == Stage::Leased && job.is_at_its_last_attempt();
    let is_settled = matches!(state, State::Ready | State::Dead | State::Done);
    let mut fields = Fields::default();
    fields.add("id", job.id.bytes());
    fields.add("body", job.body);
    fields.add("state", state.name().as_bytes());
    fields.add("due", (is_alive && !is_last).then(|| job.due().unix_ms()));
    fields.add("deadline", (progress.stage == Stage::Leased).then(|| job.time.unix_ms()));
    fields.add("priority", u64::from(policy.priority));
    fields.add("ttr", policy.ttr.as_u64());
    fields.add("attempts", u64::from(limit));
    fields.add("attempt", u64::from(progress.attempt));
    fields.add("attempts-left", attempts_left);
    fields.add("lease", progress.lease.map(|lease| lease.number()));
    fields.add("created", job.created.unix_ms());
    fields.add("since", is_settled.then(|| job.since(now).unix_ms()));
    fields.add("backoff-base", policy.backoff.base.as_u64());
    fields.add("backoff-max", policy.backoff.max.as_u64());
    fields.add("ttl", policy.ttl.as_u64());
    fields.add("expires", progress.expires_at.map(Time::unix_ms));
    fields.add("keep", policy.keep.as_u64());
    fields.add("kept-until", (progress.stage == Stage::Done).then(|| job.time.unix_ms()));
    fields.add("reason", job.reason_at(now));
    replies.fields(&fields);
}
