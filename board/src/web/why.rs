//! Why nothing comes, in words: a line above a queue's jobs, and marks in the list of all queues.

use std::sync::Arc;

use maud::{html, Markup};

use super::{facts, groups, layout, words, App};
use crate::bytes::{excerpt, Shown};
use crate::server::groups::HeldBack;
use crate::server::health::Health;
use crate::server::jobs::Place;
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::why::{Cause, Seen};
use crate::server::Name;
use crate::watch::{now_ms, Rates};

/// Jobs that hold a queue's places, which its line names.
const HOLDERS: usize = 3;

/// What a queue's line is made of.
pub struct Why {
    health: Health,
    popped: Option<f64>,
    held_back: Option<HeldBack>,
    /// Some of those that are reserved, where these are in the way.
    holders: Vec<Vec<u8>>,
}

impl Why {
    /// Reads groups and reserved jobs only where they may be the cause. What our user may not read
    /// isn't told.
    pub async fn find(app: &App, name: &Name, node: &Arc<Node>, info: &Info) -> Why {
        let (health, popped) = {
            let known = app.watch.known();
            (known.health(node), known.get(name).and_then(|reading| popped(reading.rates)))
        };
        let deployment = &app.watch.deployment;
        let place = Place { deployment, node: Some(node.clone()), queue: name, info };
        let mut why = Why { health, popped, held_back: None, holders: Vec::new() };
        if why.seen(info).asks_for_groups() {
            why.held_back = place.held_back().await.ok();
        }
        let causes = why.seen(info).causes();
        if causes.iter().any(|cause| matches!(cause, Cause::Concurrency | Cause::Busy)) {
            let holders = place.first(JobState::Reserved, HOLDERS).await.unwrap_or_default();
            why.holders = holders.into_iter().map(|job| job.id).collect();
        }
        why
    }

    fn seen<'a>(&'a self, info: &'a Info) -> Seen<'a> {
        let held_back = self.held_back.as_ref();
        Seen { info, health: &self.health, popped: self.popped, held_back }
    }

    /// There always is one, so that nothing below it moves when it changes.
    pub fn line(&self, queue: &[u8], info: &Info) -> Markup {
        let seen = self.seen(info);
        let causes = seen.causes();
        let is_fault = causes.iter().any(|cause| cause.is_fault());
        let needs_care = causes.iter().any(|cause| *cause != Cause::NothingReady);
        html! {
            p #why .why .fault[is_fault] .care[needs_care] {
                @if seen.delivers() || causes.is_empty() { strong { (goes_on(info, self.popped)) } " " }
                @for (place, cause) in causes.iter().enumerate() {
                    span.cause.first[place == 0 && !seen.delivers()] { (self.sentence(*cause, queue, info)) } " "
                }
                @if info.counts.dead > 0 && !causes.contains(&Cause::BehindDead) {
                    a href=(layout::state_link(queue, JobState::Dead)) { (words::jobs(info.counts.dead)) } @if info.counts.dead == 1 { " is dead." } @else { " are dead." }
                }
            }
        }
    }

    fn sentence(&self, cause: Cause, queue: &[u8], info: &Info) -> Markup {
        let (settings, now) = (&info.settings, now_ms());
        let at = |ms: Option<u64>| html! { @if let Some(ms) = ms { (words::brief(ms, now)) } };
        let until = info.limits.blocked_until;
        html! { @match cause {
            Cause::Concurrency => {
                strong { @match settings.concurrency {
                    1 => "The one place of CONCURRENCY is taken",
                    many => { "All " (words::number(many)) " places of CONCURRENCY are taken" },
                } }
                (self.held_by(queue, info))
                ". The next job may go when " (to_end(info))
                @if until.is_some() { ", " (at(until)) } "."
            },
            Cause::Rate => {
                strong { "The RATE is used up" }
                ": " (facts::rate(&settings.rate)) ". The next job may go " (at(until)) "."
            },
            Cause::Groups => (self.groups(queue, info)),
            Cause::Sink => {
                strong { "Jobs can't leave for the sink's stream" }
                @if let Some(error) = &info.sink.error { ": " span.reason { (Shown(error)) } } "."
            },
            Cause::Busy => {
                strong { "All workers are busy" }
                ": they are held" (self.held_by(queue, info))
                ", and none waits for another job. The oldest ready job has waited for "
                (words::span(info.oldest_ready_ms.unwrap_or(0))) "."
            },
            Cause::BehindDead => {
                strong { (words::behind_dead(info.held_behind_dead)) ". " }
                @if info.held_behind_dead == 1 { "It goes on when that is done" } @else { "They go on when those are done" }
                ": kick the " a href=(layout::state_link(queue, JobState::Dead)) { "dead jobs" }
                ", or delete those that can't be done any more."
            },
            Cause::NothingReady => (nothing_ready(info, now)),
            cause => {
                @let (first, rest) = plain(cause, info, &self.health);
                strong { (first) } " " (rest)
                @if cause == Cause::Paused {
                    @if let Some(until) = info.paused_until { " The pause ends " (words::moment(until, now)) "." }
                    @else { " It has no end: somebody has to resume it." }
                }
            },
        } }
    }

    fn held_by(&self, queue: &[u8], info: &Info) -> Markup {
        let more = info.counts.reserved.saturating_sub(self.holders.len() as u64);
        html! {
            @if !self.holders.is_empty() {
                " by "
                @for (place, id) in self.holders.iter().enumerate() {
                    @if place > 0 { ", " }
                    a href=(layout::job_link(queue, id)) { (excerpt(id, 40)) }
                }
            }
            @if more > 0 || self.holders.is_empty() {
                @if self.holders.is_empty() { " by " } @else { " and " }
                a href=(layout::state_link(queue, JobState::Reserved)) {
                    @if self.holders.is_empty() { (words::jobs(more)) } @else { (words::number(more)) " more" }
                }
            }
        }
    }

    fn groups(&self, queue: &[u8], info: &Info) -> Markup {
        let held = self.held_back.clone().unwrap_or_default();
        let many = |many: u64| {
            format!("{} {}", words::number(many), if many == 1 { "group" } else { "groups" })
        };
        html! {
            strong { "Groups hold back all ready jobs (" (words::number(info.counts.ready)) "). " }
            @if held.limited > 0 { (many(held.limited)) " at the limit" }
            @if held.limited > 0 && held.paused > 0 { ", " }
            @if held.paused > 0 { (many(held.paused)) " paused" }
            @if held.limited + held.paused > 0 {
                @if let Some(until) = held.until { "; the first may go " (words::brief(until, now_ms())) }
                ". "
            }
            a href=(groups::page_link(queue, 0)) { "Groups" }
        }
    }
}

/// What has to end before a place of CONCURRENCY is free: of a limit that was lowered, several jobs.
fn to_end(info: &Info) -> String {
    match info.counts.reserved.saturating_sub(info.settings.concurrency) {
        0 => "one of these is finished, or when its lease ends".into(),
        over => {
            let many = words::number(over.saturating_add(1));
            format!("{many} of these are finished, or when their leases end")
        }
    }
}

fn popped(rates: Option<Rates>) -> Option<f64> {
    rates.map(|rates| rates.popped)
}

/// How a queue does that nothing stops.
fn goes_on(info: &Info, popped: Option<f64>) -> String {
    match popped {
        Some(rate) if rate > 0.0 => format!("{} jobs a second go to workers.", words::rate(rate)),
        _ => format!(
            "{} ready for a worker, the oldest for {}.",
            words::jobs(info.counts.ready),
            words::span(info.oldest_ready_ms.unwrap_or(0))
        ),
    }
}

fn nothing_ready(info: &Info, now: u64) -> Markup {
    let counts = &info.counts;
    html! {
        @if info.jobs == 0 {
            "The queue is empty."
        } @else {
            "No job is ready. "
            @match info.next_due {
                Some(due) if counts.reserved == 0 => { "The next one is due " (words::brief(due, now)) "." },
                Some(due) if counts.delayed == 0 => {
                    "Workers have all that there are: " (words::jobs(counts.reserved))
                    ". The first lease ends " (words::brief(due, now)) "."
                },
                // Of these DQ.INFO has one time.
                Some(due) => {
                    "Workers have " (words::jobs(counts.reserved)) ". The first lease ends, or the next delayed job \
                    is due, " (words::brief(due, now)) "."
                },
                None if counts.reserved > 0 => { "Workers have the last ones: " (words::jobs(counts.reserved)) "." },
                None => "None comes due by itself: the others are dead, done or held.",
            }
        }
    }
}

/// Causes that need no link: what is so, and what that means.
fn plain(cause: Cause, info: &Info, health: &Health) -> (String, String) {
    let (first, rest) = match cause {
        Cause::Replica => {
            let of = health.replica_of.as_deref().unwrap_or("?");
            let first = format!("The server is a replica of {of}.");
            return (first, "It hands out nothing: workers and dq-board belong at that primary.".into());
        }
        Cause::LacksReplicas => (
            "No replica follows the server.",
            "min-replicas-to-write asks for some: until then no job is added or handed out.",
        ),
        Cause::DiskFailed => (
            "The server couldn't write its file.",
            "Until it can, it may refuse all changes (MISCONF): its log says why.",
        ),
        Cause::Paused => {
            ("The queue is paused.", "Jobs become ready, and none is handed out.")
        }
        Cause::NoWorkers => {
            let waited = words::span(info.oldest_ready_ms.unwrap_or(0));
            let rest = format!(
                "None waits for a job and none has one; the oldest ready job has waited for {waited}."
            );
            return ("No worker takes jobs.".into(), rest);
        }
        Cause::Unknown => (
            "Jobs are ready, and none leaves.",
            "No setting of the queue explains it: see the server's log, and whether its clients are paused.",
        ),
        Cause::Full => {
            let (jobs, most) = (words::number(info.jobs), words::jobs(info.settings.max_jobs));
            let rest =
                format!("It holds {jobs} of {most} (MAXJOBS, in all states), so DQ.ADD is refused.");
            return ("The queue is full.".into(), rest);
        }
        Cause::MemoryFull => {
            ("The server's memory is full.", "DQ.ADD is refused (OOM); workers go on.")
        }
        Cause::Concurrency
        | Cause::Rate
        | Cause::Groups
        | Cause::Sink
        | Cause::Busy
        | Cause::BehindDead
        | Cause::NothingReady => ("", ""),
    };
    (first.into(), rest.into())
}

/// The same in the list of all queues.
pub fn marks(info: &Info, health: &Health, rates: Option<Rates>) -> Markup {
    let seen = Seen { info, health, popped: popped(rates), held_back: None };
    let causes = seen.causes();
    let is_limited = (info.is_limited() || info.limits_groups())
        && !causes.iter().any(|cause| (Cause::Concurrency..=Cause::Groups).contains(cause));
    html! {
        // Without a place to break a line, several are wider than a narrow window.
        @for cause in &causes { (mark(*cause, info, health)) wbr; }
        @if info.counts.dead > 0 {
            span.mark.has-dead title={ (words::jobs_in(JobState::Dead, info.counts.dead)) ": their reasons are on the queue's page" } {
                (words::short(info.counts.dead)) " dead"
            }
            wbr;
        }
        @if is_limited {
            span.mark.limited title="It has CONCURRENCY or RATE, or its groups have: just now that holds nothing back" { "limited" }
        }
    }
}

fn mark(cause: Cause, info: &Info, health: &Health) -> Markup {
    let now = now_ms();
    let ends = |ms: Option<u64>| html! { @if let Some(ms) = ms.filter(|ms| *ms > now) { ", ends " (words::brief(ms, now)) } };
    let (first, rest) = plain(cause, info, health);
    let told = format!("{first} {rest}");
    let blocked = |why: &str, until: Option<u64>| {
        html! { span.mark.blocked title=(why) { "blocked" (ends(until)) } }
    };
    html! { @match cause {
        Cause::NothingReady => {},
        Cause::Paused => span.mark.paused title=(told) { "paused" (ends(info.paused_until)) },
        Cause::Concurrency => (blocked("All places of its CONCURRENCY are taken", info.limits.blocked_until)),
        Cause::Rate => (blocked("Its RATE is used up", info.limits.blocked_until)),
        Cause::Groups => (blocked("All ready jobs are of groups that are at their limit or paused", None)),
        Cause::Sink => {
            @let error = info.sink.error.as_deref().unwrap_or_default();
            span.mark.sink-error title={ "Jobs can't leave for its stream: " (Shown(error)) } { "sink error" }
        },
        Cause::BehindDead => {
            span.mark.behind-dead title="Kick the dead ones: when they are done, these go on" {
                (words::behind_dead(info.held_behind_dead))
            }
        },
        Cause::Busy => span.mark.busy title="Jobs are ready, all workers have one, and none waits for another" { "workers busy" },
        cause => span.mark.{ (class(cause)) } title=(told) { (class(cause).replace('-', " ")) },
    } }
}

/// That of a mark, and its words.
fn class(cause: Cause) -> &'static str {
    match cause {
        Cause::Replica => "replica",
        Cause::LacksReplicas => "no-replicas",
        Cause::DiskFailed => "disk-error",
        Cause::NoWorkers => "no-workers",
        Cause::Full => "full",
        Cause::MemoryFull => "memory-full",
        _ => "stuck",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::queue::Counts;

    fn line(info: &Info, popped: Option<f64>) -> String {
        let why = Why {
            health: Health::default(),
            popped,
            held_back: None,
            holders: vec![b"<a>".to_vec()],
        };
        let html = why.line(b"q", info).into_string();
        html.split('>').skip(1).filter_map(|part| part.split('<').next()).collect()
    }

    #[test]
    fn a_line_tells_what_is_so_and_what_follows() {
        let mut info = Info { jobs: 4, ..Info::default() };
        info.counts = Counts { ready: 2, reserved: 2, ..Counts::default() };
        info.settings.concurrency = 2;
        assert_eq!(
            line(&info, Some(0.0)),
            "All 2 places of CONCURRENCY are taken by &lt;a&gt; and 1 more. The next job may go when one of \
            these is finished, or when its lease ends. "
        );
        assert!(line(&info, Some(2.0)).starts_with("2.0 jobs a second go to workers. All 2 places"));
        // CONCURRENCY was lowered below what is reserved: more than one of these has to end first.
        info.counts.reserved = 4;
        assert!(line(&info, None).contains(
            "The next job may go when 3 of these are finished, or when their leases end. "
        ));
        info.counts.reserved = 2;
        info.settings.concurrency = 0;
        info.oldest_ready_ms = Some(3_000);
        assert_eq!(line(&info, None), "2 jobs ready for a worker, the oldest for 3 s. ");
        assert_eq!(line(&Info::default(), None), "The queue is empty. ");
        info.counts = Counts { dead: 1, ready: 2, ..Counts::default() };
        assert!(line(&info, None).ends_with("the oldest for 3 s. 1 job is dead."));
        info.counts = Counts { dead: 4, ..Counts::default() };
        info.held_behind_dead = 1;
        assert_eq!(
            line(&info, None),
            "1 held job waits for a dead one. It goes on when that is done: kick the dead jobs, or delete \
            those that can't be done any more. No job is ready. None comes due by itself: the others are dead, done or held. "
        );
    }

    #[test]
    fn every_cause_but_an_idle_queue_has_a_mark() {
        let mut info = Info { is_paused: true, held_behind_dead: 1, jobs: 1, ..Info::default() };
        info.settings.max_jobs = 1;
        let marks = marks(&info, &Health::default(), None).into_string();
        for class in ["mark paused", "mark behind-dead", "mark full"] {
            assert!(marks.contains(class), "{class} isn't in {marks}");
        }
        assert_eq!(marks.matches("class=\"mark").count(), 3);
    }
}
