//! Sinks: what is due leaves a queue for a stream, as if a client with NOACK waited there for ever.
//! Only the timer does that. A change of a queue with a sink makes it come in the next turn, and
//! clients that wait for jobs are served before.
//!
//! One job at a time: the server adds it to the stream, with its own checks, and then it is taken
//! from the queue. If the server refuses, nothing has changed. Both are in the log, in this order,
//! in the one transaction that a run of the timer is there; so a log that ends between them has the
//! job twice, and never not at all.

use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::alarm::{TimeSlice, UNTIL_WRITABLE};
use crate::queue::{Changed, Circumstances, Millis, Mode, NextToLeave, PassOver, Pop, Sink, Time};
use crate::services::change::commit::{circumstances_at, commit};
use crate::services::change::log::{Internal, LogForm, POP};
use crate::services::change::notify::JOBS_SUNK;
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::keys::value::QueueValue;

/// The timer comes in the next turn, if there may be something for the sink. By the wall clock: the
/// queue's own may be ahead of it.
pub fn wake<H: Host>(host: H, value: &mut QueueValue) {
    if value.queue.has_work_for_sink() {
        value.queue.wake_by(host.wall_clock());
    }
}

/// Lets what is due leave for the sink, if there is one, until the time slice is over. Returns when
/// to go on, by the wall clock, if something is left that may leave.
pub fn pour<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    slice: &TimeSlice,
    now: Time,
) -> Option<Time> {
    loop {
        if !value.queue.has_work_for_sink() {
            return None;
        }
        if !host.may_change() {
            return Some(host.wall_clock().saturating_add(UNTIL_WRITABLE));
        }
        if slice.is_over(host) {
            return Some(host.wall_clock());
        }
        // The queue's clock may be ahead of `now`: what leaves is what leaves then.
        let circumstances = circumstances_at(host, value, now);
        if pass_over(host, key, value, &circumstances) {
            continue;
        }
        let next = value.queue.next_to_leave(circumstances.now)?;
        let sink = value.queue.sink()?;
        if let Err(error) = add(key, sink, &next, host.wall_clock()) {
            let wait = refused(host, key, value, error);
            return Some(host.wall_clock().saturating_add(wait));
        }
        take(host, key, value, &circumstances)?;
    }
}

/// How the server refuses an id because the stream's last one is greater.
const IS_BEHIND: &str = "equal or smaller than the target stream top item";

/// Adds a job to the stream. The id isn't below the job's due time, as one that the server makes may
/// be: its time is that of an earlier moment of this turn.
fn add(key: &impl QueueKey, sink: &Sink, job: &NextToLeave, now: Time) -> Result<(), String> {
    let id = format!("{}-*", now.max(job.due).unix_ms());
    match add_as(key, sink, job, id.as_bytes()) {
        // What is behind the last entry of the stream is above it all the more.
        Err(error) if error.contains(IS_BEHIND) => add_as(key, sink, job, b"*"),
        result => result,
    }
}

fn add_as(
    key: &impl QueueKey,
    sink: &Sink,
    job: &NextToLeave,
    entry_id: &[u8],
) -> Result<(), String> {
    let due = job.due.unix_ms().to_string();
    let max_len = sink.max_len().map(|max_len| max_len.to_string());
    let mut args: SmallVec<[&[u8]; 16]> = SmallVec::new();
    args.push(sink.stream());
    if let Some(max_len) = &max_len {
        args.extend([b"MAXLEN", &b"~"[..], max_len.as_bytes()]);
    }
    args.extend([entry_id, &b"id"[..], job.id.bytes(), b"due", due.as_bytes(), b"body", job.body]);
    if let Some(group) = job.group {
        args.extend([&b"group"[..], group.bytes()]);
    }
    key.run(c"XADD", &args)
}

/// The job is in the stream. `None`: it isn't what leaves the queue, which can't be.
fn take<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
) -> Option<()> {
    let pop = Pop { mode: Mode::NoAck, ..Pop::ONE };
    let log_as = LogForm::Command(POP, &[b"COUNT", b"1", b"NOACK"]);
    if commit(host, key, value, circumstances, &pop, log_as).len() != 1 {
        host.bug("a job went to a sink and is still there");
        return None;
    }
    JOBS_SUNK.fetch_add(1, Ordering::Relaxed);
    if let Some(trouble) = &mut value.sink_trouble {
        trouble.end();
    }
    Some(())
}

/// Passes over runs of schedules that are too late. False if the first job isn't.
fn pass_over<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    circumstances: &Circumstances,
) -> bool {
    if value.queue.schedules() == 0 {
        return false;
    }
    let log_as = LogForm::Internal(Internal::PassOver, &[]);
    commit(host, key, value, circumstances, &PassOver, log_as).has_changed()
}

/// The stream refuses a job. Returns how long to wait.
#[cold]
fn refused<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue, error: String) -> Millis {
    let stream = value.queue.sink().map_or(&[][..], Sink::stream);
    let trouble = value.sink_trouble.get_or_insert_default();
    let wait = trouble.begin(stream, &error);
    if !trouble.was_logged(host.uptime()) {
        let stream = stream.escape_ascii();
        host.warn(&format!(
            "the jobs of queue '{}' can't leave for the stream '{stream}': {error}. They stay ready, \
             and it is tried again until it goes on",
            key.name().escape_ascii()
        ));
    }
    wait
}
