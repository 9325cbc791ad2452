//! A job as DQ.GET and DQ.PEEK show it.

use crate::queue::{Id, JobView, Queue, RunState, ScheduleView, Stage, State, Time, Timing};
use crate::server::replies::{Fields, Replies};

/// How many bytes of its reply clients wrote.
pub fn bytes_of(job: &JobView, now: Time) -> usize {
    let parts = [job.reason_at(now), job.note_at(now), job.result, job.group.map(Id::bytes)];
    let parts = parts.into_iter().flatten().map(<[u8]>::len).sum::<usize>();
    job.id.bytes().len() + job.body.len() + parts
}

/// A map of everything there is to a job.
pub fn reply_job(replies: Replies, queue: &Queue, job: &JobView, now: Time) {
    let (state, policy, progress) = (job.state(now), &job.policy, &job.progress);
    let limit = policy.attempts.limit();
    // Once its last attempt has timed out, a job with a schedule is at its next occurrence.
    let attempt = if job.has_come_back(now) { 0 } else { progress.attempt };
    let attempts_left = (limit > 0).then(|| u64::from(limit.saturating_sub(attempt)));
    let is_alive = matches!(state, State::Delayed | State::Ready | State::Reserved);
    // When the lease ends it will be dead, not due.
    let is_last = progress.stage == Stage::Leased
        && job.is_at_its_last_attempt()
        && !job.outlives_its_attempts();
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
    fields.add("attempt", u64::from(attempt));
    fields.add("attempts-left", attempts_left);
    fields.add("lease", progress.lease.map(|lease| lease.number()));
    fields.add("created", job.created.unix_ms());
    fields.add("since", is_settled.then(|| job.since(now).unix_ms()));
    fields.add("backoff-base", policy.backoff.base.as_u64());
    fields.add("backoff-max", policy.backoff.max.as_u64());
    fields.add("ttl", policy.ttl.as_u64());
    fields.add("expires", progress.expires_at.map(Time::unix_ms));
    fields.add("keep", policy.keep.as_u64());
    let late = job.schedule.map_or(policy.late, |schedule| schedule.rule.late);
    fields.add("late", late.as_u64());
    fields.add("kept-until", (progress.stage == Stage::Done).then(|| job.time.unix_ms()));
    fields.add("reason", job.reason_at(now));
    let tally = job.tally_at(now);
    fields.add("timed-out", u64::from(tally.timed_out));
    fields.add("released", u64::from(tally.released));
    fields.add("buried", u64::from(tally.buried));
    fields.add("kicked", u64::from(tally.kicked));
    if let Some(group) = job.group {
        fields.add("group", group.bytes());
    }
    if let Some(note) = job.note_at(now) {
        fields.add("note", note);
    }
    if let Some(result) = job.result {
        fields.add("result", result);
    }
    if let Some(edges) = queue.edge_counts(job.id) {
        fields.add("pending", edges.pending as u64);
        fields.add("after", edges.after as u64);
        fields.add("before", edges.before as u64);
        fields.add("on-hold", u64::from(edges.is_on_hold));
    }
    if let (Some(schedule), Some(run_state)) = (&job.schedule, job.run_state_at(now)) {
        show_schedule(&mut fields, schedule, &run_state, state);
    }
    replies.fields(&fields);
}

/// Of a job that comes back.
fn show_schedule<'j>(
    fields: &mut Fields<'j>,
    schedule: &ScheduleView<'j>,
    run_state: &RunState,
    state: State,
) {
    let rule = schedule.rule;
    let (every, cron) = match &rule.timing {
        Timing::Every(period) => (Some(period.as_u64()), None),
        Timing::Cron(cron) => (None, Some(cron)),
    };
    let zone = cron.map(|cron| if cron.zone.is_empty() { "UTC" } else { &*cron.zone });
    fields.add("every", every);
    fields.add("cron", cron.map(|cron| cron.expression.as_bytes()));
    fields.add("tz", zone.map(str::as_bytes));
    fields.add("misfire", rule.misfire.name().as_bytes());
    fields.add("jitter", rule.jitter.as_u64());
    fields.add("runs", u64::from(rule.runs));
    fields.add("until", rule.until.map(Time::unix_ms));
    fields.add("occurrence", run_state.occurrence.unix_ms());
    fields.add("next", run_state.next().filter(|_| state != State::Dead).map(Time::unix_ms));
    fields.add("runs-begun", u64::from(run_state.runs));
    fields.add("failed-runs", u64::from(run_state.failed));
    fields.add("missed", u64::from(run_state.missed));
}
