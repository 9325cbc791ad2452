//! What became of a job and what comes next, in the order of time, as far as the server keeps it:
//! it counts attempts and how they ended, and keeps the last reason, not one for each.

use maud::{html, Markup};

use super::job::is_long;
use super::{deps, facts, words};
use crate::bytes::line;
use crate::server::job::Job;
use crate::server::queue::State as JobState;

/// What of a reason a step shows: the whole is on the page, too.
const EXCERPT: usize = 160;

struct Step {
    at: Option<u64>,
    told: Markup,
}

impl Step {
    fn new(at: Option<u64>, told: Markup) -> Step {
        Step { at, told }
    }
}

pub fn of(job: &Job, now: u64) -> Markup {
    let ahead = ahead(job, now);
    html! {
        section.history { h2 { "History" }
            ol {
                @for step in so_far(job, now) { li { (show(&step, now)) } }
                @for step in ahead { li.ahead { (show(&step, now)) } }
            }
        }
    }
}

fn show(step: &Step, now: u64) -> Markup {
    html! {
        span { (step.told) }
        @if let Some(at) = step.at { span.at { (words::moment(at, now)) } }
    }
}

fn so_far(job: &Job, now: u64) -> Vec<Step> {
    let mut steps = vec![Step::new(Some(job.created), html! { "Added" })];
    steps.extend(attempts(job));
    steps.extend(present(job, now));
    steps
}

/// How often it was handed out, and how that ended.
fn attempts(job: &Job) -> Option<Step> {
    let tally = &job.tally;
    let ends = [
        ("its lease ran out", tally.timed_out),
        ("a worker gave it back", tally.released),
        ("a worker buried it", tally.buried),
        ("somebody kicked it", tally.kicked),
    ];
    let has_ended = ends.iter().any(|(_, many)| *many > 0);
    if job.attempt == 0 && !has_ended && job.reason.is_none() {
        return None;
    }
    let since = match (&job.schedule, tally.kicked) {
        (Some(_), _) => " in this run",
        (None, 0) => "",
        (None, _) => " since it was kicked",
    };
    let told = html! {
        @if job.attempt == 0 { "Not handed out" } @else {
            "Handed out " (facts::times(job.attempt))
            @if job.attempts > 0 { " of at most " (words::number(job.attempts)) }
        }
        (since)
        @if has_ended {
            ". So far: "
            @for (place, (what, many)) in ends.iter().filter(|(_, many)| *many > 0).enumerate() {
                @if place > 0 { ", " } (what) " " (facts::times(*many))
            }
        }
        // That of a dead one stands in the page's first sentence, and a long one is shown whole.
        @if let Some(reason) = job.reason.as_ref().filter(|reason| job.state != JobState::Dead && !is_long(reason)) {
            ". Last reason: " span.reason { (line(reason, EXCERPT)) }
        }
    };
    Some(Step::new(None, told))
}

/// The state that it is in.
fn present(job: &Job, now: u64) -> Option<Step> {
    Some(match job.state {
        JobState::Delayed => return None,
        JobState::Ready => Step::new(job.since, html! { "Ready: it waits for a worker" }),
        JobState::Reserved => return lease(job, now),
        JobState::Dead => Step::new(job.since, html! { "Died" }),
        JobState::Done => Step::new(job.since, html! { "Finished" }),
        JobState::Held => Step::new(None, html! { (deps::lead(job)) }),
    })
}

/// Since when a worker has it is told only by the end of its lease. POP and TOUCH may give another
/// TTR than the job's.
fn lease(job: &Job, now: u64) -> Option<Step> {
    job.deadline?;
    let began = job.began(now);
    let told = html! {
        "A worker has it" @if let Some(lease) = job.lease { ", by lease " (lease) }
        @if began.is_some() {
            ". It began or last extended the lease at this time, unless it asked for another time to run \
            than the job's own, " (words::span(job.ttr_ms)) ":"
        }
    };
    Some(Step::new(began, told))
}

/// What comes by itself, the next first; last what comes of it when a worker is done.
fn ahead(job: &Job, now: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut at = |at: Option<u64>, told: Markup| {
        if at.is_some() {
            steps.push(Step::new(at, told));
        }
    };
    match job.state {
        JobState::Delayed => at(job.due, html! { "Due" }),
        JobState::Reserved => {
            let has_ended = job.deadline < Some(now);
            at(
                job.deadline,
                html! {
                    @if has_ended { "Its lease ended" } @else { "Its lease ends, unless the worker extends it" }
                    @if job.due.is_none() { ": then it is dead, as this is its last attempt" }
                },
            );
            at(job.due, html! { "Due again, if the lease runs out" });
        }
        JobState::Done => at(job.kept_until, html! { "Removed" }),
        JobState::Ready | JobState::Dead | JobState::Held => {}
    }
    if job.state != JobState::Dead {
        at(job.expires, html! { "Dead, if no worker has finished it by then (time to live)" });
    }
    if let Some(next) = job.schedule.as_ref().and_then(|schedule| schedule.next) {
        at(Some(next), html! { "Comes back by its schedule" });
    }
    steps.sort_by_key(|step| step.at);
    let last = match job.state {
        JobState::Done => None,
        JobState::Dead => Some(html! { "It stays until it is kicked, deleted or purged" }),
        _ if job.schedule.is_some() => None,
        _ if job.keep_ms == 0 => Some(html! { "Once a worker finishes it, it is removed" }),
        _ => Some(
            html! { "Once a worker finishes it, it stays as done for " (words::span(job.keep_ms)) },
        ),
    };
    steps.extend(last.map(|told| Step::new(None, told)));
    steps
}

#[cfg(test)]
mod tests {
    use redis::Value;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn told(state: &str, fields: &[(&str, i64)]) -> Vec<String> {
        let text = |text: &str| Value::BulkString(text.into());
        let mut pairs = vec![(text("state"), text(state)), (text("created"), Value::Int(900_000))];
        pairs.extend(fields.iter().map(|(name, value)| (text(name), Value::Int(*value))));
        let job = Job::read(Value::Map(pairs)).unwrap().unwrap();
        let steps = so_far(&job, NOW).into_iter().chain(ahead(&job, NOW));
        steps
            .map(|step| {
                let at = step.at.map(|at| format!(" @{at}")).unwrap_or_default();
                format!("{}{at}", step.told.into_string())
            })
            .collect()
    }

    #[test]
    fn a_new_job_was_added_and_is_due() {
        assert_eq!(
            told("delayed", &[("due", 1_200_000), ("expires", 1_100_000), ("attempts", 3)]),
            [
                "Added @900000",
                "Dead, if no worker has finished it by then (time to live) @1100000",
                "Due @1200000",
                "Once a worker finishes it, it is removed",
            ]
        );
    }

    #[test]
    fn a_reserved_job_tells_of_its_lease_what_the_server_knows() {
        let fields =
            [("lease", 7), ("ttr", 60_000), ("attempt", 3), ("attempts", 3), ("released", 2)];
        let with = |more: &[(&str, i64)]| told("reserved", &[&fields[..], more].concat());
        assert_eq!(
            with(&[("deadline", 1_010_000), ("keep", 1_000)]),
            [
                "Added @900000",
                "Handed out 3 times of at most 3. So far: a worker gave it back 2 times",
                "A worker has it, by lease 7. It began or last extended the lease at this time, unless it \
                asked for another time to run than the job's own, 1 min: @950000",
                "Its lease ends, unless the worker extends it: then it is dead, as this is its last attempt \
                @1010000",
                "Once a worker finishes it, it stays as done for 1 s",
            ]
        );
        // A lease that is longer than the time to run began at no time that could be told.
        let longer = with(&[("deadline", 1_500_000), ("due", 1_500_100)]);
        assert_eq!(longer[2], "A worker has it, by lease 7");
        assert_eq!(longer[4], "Due again, if the lease runs out @1500100");
        let ended = with(&[("deadline", 999_000), ("due", 999_000)]);
        assert_eq!(ended[3], "Its lease ended @999000");
    }

    #[test]
    fn a_kicked_job_counts_its_attempts_from_there() {
        let fields = [("since", 990_000), ("kicked", 1), ("buried", 1), ("attempts", 25)];
        assert_eq!(
            told("ready", &fields)[1..],
            [
                "Not handed out since it was kicked. So far: a worker buried it once, \
                somebody kicked it once",
                "Ready: it waits for a worker @990000",
                "Once a worker finishes it, it is removed",
            ]
        );
        assert_eq!(
            told("dead", &[("since", 990_000)])[1..],
            ["Died @990000", "It stays until it is kicked, deleted or purged"]
        );
    }
}
