//! `DQ.INFO key`
//!
//! Shows a queue: settings, counts by state, totals, lateness. Replies with a map, whose fields
//! docs/commands/info.md explains; with nil when there is no such key.
//!
//! O(1) in the number of jobs.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{Query, QueryContext};
use std::num::{NonZeroU32, NonZeroU64};

use crate::queue::{Millis, Rate, Settings, Sink, State, Time, Totals};
use crate::server::replies::Fields;
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};
use crate::services::keys::lateness::{SoFar, LATENESS_STEPS};
use crate::services::{config, live};

pub struct Info;

impl Query for Info {
    const SPEC: Spec = Spec {
        name: c"dq.info",
        summary: c"Shows a queue: settings, counts by state, totals, lateness",
        complexity: c"O(1)",
        since: Spec::SINCE_0_1,
        flags: c"readonly fast",
        arity: 2,
        key: KeyUse::Read,
        grammar: "key",
    };

    type Parsed<'c> = ();

    fn parse(args: ArgReader) -> Result<(), Error> {
        args.end()
    }

    fn reply((): &(), context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let (queue, now) = (context.queue(), context.now);
        let mut fields = Fields::default();
        show_settings(&mut fields, queue.settings());
        let paused_until = queue.paused_until(now);
        fields.add("paused", u64::from(paused_until.is_some()));
        fields.add(
            "paused-until",
            paused_until.filter(|until| *until < Time::MAX).map(Time::unix_ms),
        );
        fields.add("rate-left", queue.may_leave_by_rate(now).map(|jobs| jobs as u64));
        fields.add("blocked-until", queue.blocked_until().map(Time::unix_ms));
        let counts = queue.counts();
        fields.add("jobs", queue.len() as u64);
        for state in State::ALL {
            fields.add(state.name(), counts.of(state) as u64);
        }
        fields.add("held-behind-dead", queue.held_behind_dead() as u64);
        fields.add("groups", queue.groups_len() as u64);
        fields.add("waiting-consumers", context.consumers as u64);
        fields.add("oldest-ready-ms", queue.oldest_ready().map(|since| now.since(since).as_u64()));
        fields.add("next-due", queue.next_due().map(Time::unix_ms));
        fields.add("last-lease", queue.last_lease().map(|lease| lease.number()));
        fields.add("memory", queue.memory() as u64);
        show_totals(&mut fields, queue.totals());
        let lateness = context.value.lateness().so_far();
        show_lateness(&mut fields, &lateness);
        fields.add("schedules", queue.schedules() as u64);
        fields.add("total-missed", queue.totals().missed);
        show_lateness_counts(&mut fields, &lateness);
        fields.add("watchers", context.watchers as u64);
        let sink = queue.sink();
        fields.add("sink", sink.map(Sink::stream));
        fields.add("sink-maxlen", sink.and_then(Sink::max_len).unwrap_or(0));
        let error = context.value.sink_error(now).filter(|_| live::is_primary());
        fields.add("sink-error", error.map(str::as_bytes));
        replies.fields(&fields);
        Ok(())
    }
}

/// What jobs get that are added now without saying so themselves, and the limits.
fn show_settings(fields: &mut Fields, settings: &Settings) {
    let defaults = config::defaults();
    let attempts = settings.attempts.unwrap_or(defaults.attempts);
    fields.add("default-ttr", settings.ttr.unwrap_or(defaults.ttr).as_u64());
    fields.add("default-attempts", u64::from(attempts.limit()));
    let backoff = settings.backoff.unwrap_or(defaults.backoff);
    fields.add("default-backoff-base", backoff.base.as_u64());
    fields.add("default-backoff-max", backoff.max.as_u64());
    fields.add("default-keep", settings.keep.as_u64());
    fields.add("default-late", settings.late.as_u64());
    fields.add("max-jobs", settings.max_jobs.map_or(0, NonZeroU64::get));
    fields.add("dead-keep", settings.dead_keep.as_u64());
    fields.add("concurrency", u64::from(settings.concurrency.map_or(0, NonZeroU32::get)));
    let rate = settings.rate.as_ref();
    fields.add("rate", u64::from(rate.map_or(0, Rate::jobs)));
    fields.add("rate-per-ms", rate.map_or(Millis::ZERO, Rate::per).as_u64());
    fields.add("rate-burst", u64::from(rate.map_or(0, Rate::burst)));
    fields
        .add("group-concurrency", u64::from(settings.group_concurrency.map_or(0, NonZeroU32::get)));
    let rate = settings.group_rate.as_ref();
    fields.add("group-rate", u64::from(rate.map_or(0, Rate::jobs)));
    fields.add("group-rate-per-ms", rate.map_or(Millis::ZERO, Rate::per).as_u64());
    fields.add("group-rate-burst", u64::from(rate.map_or(0, Rate::burst)));
}

fn show_totals(fields: &mut Fields, totals: &Totals) {
    fields.add("total-added", totals.added);
    fields.add("total-replaced", totals.replaced);
    fields.add("total-popped", totals.popped);
    fields.add("total-finished", totals.finished);
    fields.add("total-released", totals.released);
    fields.add("total-timed-out", totals.timed_out);
    fields.add("total-buried", totals.buried);
    fields.add("total-dead", totals.died);
    fields.add("total-kicked", totals.kicked);
    fields.add("total-deleted", totals.deleted);
    fields.add("total-purged", totals.purged);
}

/// For those who draw a histogram over time.
fn show_lateness_counts(fields: &mut Fields, lateness: &SoFar) {
    let within = lateness.within();
    for (name, jobs) in LATENESS_FIELDS.into_iter().zip(within.jobs) {
        fields.add(name, jobs);
    }
    fields.add("lateness-count", within.all);
    fields.add("lateness-sum-ms", within.sum_ms);
}

/// As [`LATENESS_STEPS`].
const LATENESS_FIELDS: [&str; LATENESS_STEPS.len()] = [
    "lateness-within-1-ms",
    "lateness-within-10-ms",
    "lateness-within-100-ms",
    "lateness-within-1000-ms",
    "lateness-within-10000-ms",
    "lateness-within-60000-ms",
    "lateness-within-600000-ms",
    "lateness-within-3600000-ms",
];

fn show_lateness(fields: &mut Fields, lateness: &SoFar) {
    fields.add("lateness-p50-ms", lateness.percentile_ms(50.0));
    fields.add("lateness-p90-ms", lateness.percentile_ms(90.0));
    fields.add("lateness-p99-ms", lateness.percentile_ms(99.0));
    fields.add("lateness-p999-ms", lateness.percentile_ms(99.9));
    fields.add("lateness-max-ms", lateness.max_ms());
}
