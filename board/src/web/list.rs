//! Jobs in a table: those of a state, those that were sought, schedules.

use maud::{html, Markup};

use super::{layout, selection, words};
use crate::bytes::{excerpt, line, Shown};
use crate::server::job::{Job, Schedule};
use crate::server::queue::State as JobState;

/// What of a body a list shows.
const EXCERPT: usize = 120;
/// And of a group's name.
const GROUP: usize = 40;

/// Jobs of one state, in its order, which can be ticked.
pub fn of_state(queue: &[u8], state: JobState, jobs: &[Job], now: u64) -> Markup {
    one_state(queue, state, jobs, now, tickable)
}

/// The same, where nothing is chosen.
pub fn to_look_at(queue: &[u8], state: JobState, jobs: &[Job], now: u64) -> Markup {
    one_state(queue, state, jobs, now, name)
}

fn one_state(
    queue: &[u8],
    state: JobState,
    jobs: &[Job],
    now: u64,
    name_of: fn(&[u8], &Job) -> Markup,
) -> Markup {
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { (time_heading(state)) }
                (headings(jobs))
                th.text scope="col" { (text_heading(state)) }
            } }
            tbody data-found { @for job in jobs { tr data-key=(Shown(&job.id)) {
                (name_of(queue, job))
                (time(job, time_heading(state), now))
                (figures(queue, job, jobs))
                (text(job))
            } } }
        }
    }
}

/// Jobs of any state.
pub fn of_any_state(queue: &[u8], jobs: &[Job], now: u64) -> Markup {
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { "state" }
                th scope="col" { "when" }
                (headings(jobs))
                th.text scope="col" { "reason · result · body" }
            } }
            tbody { @for job in jobs { tr data-key=(Shown(&job.id)) {
                (name(queue, job))
                td data-label="state" { span.state.{ "is-" (job.state.name()) } { (job.state.name()) } }
                td data-label="when" { (time_heading(job.state)) " " (when(job, now)) }
                (figures(queue, job, jobs))
                (text(job))
            } } }
        }
    }
}

/// Jobs that come back.
pub fn of_schedules(queue: &[u8], jobs: &[Job], now: u64) -> Markup {
    html! {
        table.list.schedules {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { "schedule" }
                th scope="col" { "next run" }
                th.num scope="col" title="Runs that were handed out, of how many" { "runs" }
                th.num scope="col" title="Runs that were out of attempts" { "failed" }
                th.num scope="col" title="Times that passed without a run of their own" { "missed" }
                th.text scope="col" { "last error" }
            } }
            tbody { @for job in jobs { @if let Some(schedule) = &job.schedule { tr data-key=(Shown(&job.id)) {
                (name(queue, job))
                td data-label="schedule" { (rule(schedule)) }
                td data-label="next run" { (next_run(job, now)) }
                td.num data-label="runs" {
                    (words::number(schedule.runs_begun))
                    @if schedule.runs > 0 { span.soft { "/" (words::number(schedule.runs)) } }
                }
                (failures("failed", schedule.failed_runs))
                (failures("missed", schedule.missed))
                td.text { @if let Some(reason) = &job.reason { span.reason { (line(reason, EXCERPT)) } } }
            } } } }
        }
    }
}

fn failures(label: &str, many: u64) -> Markup {
    html! { td.num.is-dead.zero[many == 0] data-label=(label) { (words::number(many)) } }
}

/// A schedule as it was given.
pub fn rule(schedule: &Schedule) -> Markup {
    html! {
        @if let Some(ms) = schedule.every_ms { "every " (words::span(ms)) }
        @if let Some(cron) = &schedule.cron {
            code { (excerpt(cron, 100)) }
            " " span.soft { (schedule.zone.as_deref().map_or("UTC".into(), |zone| excerpt(zone, 60))) }
        }
    }
}

/// When a job that comes back will be handed out next, or why it won't.
pub fn next_run(job: &Job, now: u64) -> Markup {
    html! {
        @match job.state {
            JobState::Reserved => {
                "running"
                @if let Some(next) = job.next_run() { ", then " (words::brief(next, now)) } @else { ", the last one" }
            },
            JobState::Ready => "ready",
            JobState::Delayed => { @if let Some(due) = job.next_run() { (words::brief(due, now)) } },
            JobState::Dead | JobState::Done | JobState::Held => { "none: " (job.state.name()) },
        }
    }
}

pub fn name(queue: &[u8], job: &Job) -> Markup {
    html! {
        th.id scope="row" { a href=(layout::job_link(queue, &job.id)) title=[(job.id.len() > 20).then(|| excerpt(&job.id, 512))] { (excerpt(&job.id, 100)) } }
    }
}

fn tickable(queue: &[u8], job: &Job) -> Markup {
    let id = excerpt(&job.id, 100);
    html! {
        th.id scope="row" {
            input.tick type="checkbox" name="job" value=(selection::value_of(job)) aria-label={ "Tick " (id) };
            a href=(layout::job_link(queue, &job.id)) { (id) }
        }
    }
}

/// Most queues have no groups, and need no column of them.
fn has_groups(jobs: &[Job]) -> bool {
    jobs.iter().any(|job| job.group.is_some())
}

fn headings(jobs: &[Job]) -> Markup {
    html! {
        th.num scope="col" title="Attempts so far, of how many" { "attempt" }
        th.num scope="col" title="Of the ready jobs the lowest number leaves first" { "priority" }
        @if has_groups(jobs) { th scope="col" { "group" } }
    }
}

fn figures(queue: &[u8], job: &Job, jobs: &[Job]) -> Markup {
    html! {
        td.num data-label="attempt" {
            (job.attempt) @if job.attempts > 0 { span.soft { "/" (job.attempts) } }
        }
        td.num data-label="priority" { (job.priority) }
        @if has_groups(jobs) { td.group data-label="group" title=[job.group.as_ref().map(|group| excerpt(group, 512))] {
            @if let Some(group) = &job.group { a href=(layout::group_link(queue, group)) { (excerpt(group, GROUP)) } }
        } }
    }
}

pub fn text(job: &Job) -> Markup {
    html! {
        td.text {
            @if let Some(schedule) = &job.schedule { span.mark.comes-back { (rule(schedule)) } " " }
            (waits(job))
            @if let Some(reason) = &job.reason { span.reason { (line(reason, EXCERPT)) } " " }
            @if let Some(note) = &job.note { span.told { (line(note, EXCERPT)) } " " }
            @if let Some(result) = &job.result { span.told { (line(result, EXCERPT)) } " " }
            span.soft { (line(&job.body, EXCERPT)) }
        }
    }
}

/// What holds a held job.
fn waits(job: &Job) -> Markup {
    html! { @if job.state == JobState::Held {
        @if job.edges.is_on_hold { span.mark.waits { "on hold" } " " }
        @if job.edges.pending > 0 { span.mark.waits { "waits for " (words::jobs(job.edges.pending)) } " " }
    } }
}

fn text_heading(state: JobState) -> &'static str {
    match state {
        JobState::Dead => "reason · body",
        JobState::Done => "result · body",
        JobState::Reserved => "note · body",
        JobState::Held => "what holds it · body",
        JobState::Ready | JobState::Delayed => "body",
    }
}

pub fn time_heading(state: JobState) -> &'static str {
    match state {
        JobState::Ready => "ready",
        JobState::Delayed => "due",
        JobState::Reserved => "lease ends",
        JobState::Dead => "died",
        JobState::Done => "kept until",
        JobState::Held => "added",
    }
}

pub fn time(job: &Job, label: &str, now: u64) -> Markup {
    html! { td data-label=(label) { (when(job, now)) } }
}

fn when(job: &Job, now: u64) -> Markup {
    let time = match job.state {
        JobState::Ready | JobState::Dead => job.since,
        JobState::Delayed => job.due,
        JobState::Reserved => job.deadline,
        JobState::Done => job.kept_until,
        JobState::Held => Some(job.created),
    };
    html! { @if let Some(time) = time { (words::brief(time, now)) } }
}
