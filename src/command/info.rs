//! `DQ.INFO key`
//!
//! Shows a queue: settings, counts by state, totals, lateness. Replies with a map, whose fields
//! docs/commands/info.md explains; with nil when there is no such key.
//!
//! O(1) in the number of jobs.

use std::num::NonZeroU64;

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::{Settings, State, Time, Totals};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::config;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::replies::Replies;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Info<'c> {
    key: Arg<'c>,
}

impl Command for Info<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.info",
        summary: c"Shows a queue: settings, counts by state, totals, next due",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"readonly fast",
        arity: 2,
        key: KeyUse::Read,
        args: &[ArgSpec::KEY],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Info::parse(call)?.apply(call)
    }
}

impl<'c> Info<'c> {
    fn parse(call: &Call<'c>) -> Result<Info<'c>, Error> {
        let mut words = Words::of(call, "dq.info");
        let key = words.require()?;
        words.end()?;
        Ok(Info { key })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        match OpenQueue::open(call, self.key, Access::Read)? {
            Some(mut queue) => {
                let now = queue.advance(call.now());
                reply(call.replies(), &queue, now);
            }
            None => call.replies().null(),
        }
        Ok(())
    }
}

const FIELDS: usize = 36;

fn reply(replies: Replies, queue: &OpenQueue, now: Time) {
    replies.map(FIELDS);
    reply_settings(replies, queue.settings());
    let paused_until = queue.paused_until(now);
    replies.field("paused", u64::from(paused_until.is_some()));
    replies.field("paused-until", paused_until.filter(|until| *until < Time::MAX).map(Time::unix_ms));
    let counts = queue.counts();
    replies.field("jobs", queue.len() as u64);
    for state in State::ALL {
        replies.field(state.name(), counts.of(state) as u64);
    }
    replies.field("waiting-consumers", queue.consumers() as u64);
    replies.field("oldest-ready-ms", queue.oldest_ready().map(|since| now.since(since).as_u64()));
    replies.field("next-due", queue.next_due().map(Time::unix_ms));
    replies.field("last-lease", queue.last_lease().map(|lease| lease.number()));
    replies.field("memory", queue.memory() as u64);
    reply_totals(replies, queue.totals());
    let lateness = queue.lateness();
    replies.field("lateness-p50-ms", lateness.percentile_ms(50.0));
    replies.field("lateness-p90-ms", lateness.percentile_ms(90.0));
    replies.field("lateness-p99-ms", lateness.percentile_ms(99.0));
    replies.field("lateness-p999-ms", lateness.percentile_ms(99.9));
    replies.field("lateness-max-ms", lateness.max_ms());
}

/// What jobs get that are added now without saying so themselves, and the limits.
fn reply_settings(replies: Replies, settings: &Settings) {
    let attempts = settings.attempts.unwrap_or_else(config::default_attempts);
    replies.field("default-ttr", settings.ttr.unwrap_or_else(config::default_ttr).as_u64());
    replies.field("default-attempts", u64::from(attempts.limit()));
    replies.field("default-backoff-base", settings.backoff.base.as_u64());
    replies.field("default-backoff-max", settings.backoff.max.as_u64());
    replies.field("default-keep", settings.keep.as_u64());
    replies.field("max-jobs", settings.max_jobs.map_or(0, NonZeroU64::get));
    replies.field("dead-keep", settings.dead_keep.as_u64());
}

fn reply_totals(replies: Replies, totals: &Totals) {
    replies.field("total-added", totals.added);
    replies.field("total-replaced", totals.replaced);
    replies.field("total-popped", totals.popped);
    replies.field("total-finished", totals.finished);
    replies.field("total-released", totals.released);
    replies.field("total-timed-out", totals.timed_out);
    replies.field("total-buried", totals.buried);
    replies.field("total-dead", totals.died);
    replies.field("total-kicked", totals.kicked);
    replies.field("total-deleted", totals.deleted);
    replies.field("total-purged", totals.purged);
}
