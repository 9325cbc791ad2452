//! One job: all its fields in words, and its body.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::RawQuery;
use axum::http::{header, HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::body::{self, View as BodyView};
use super::deps::Chain;
use super::live;
use super::page::Page;
use super::{
    clock, deps, facts, fields, find, forms, glossary, history, layout, list, queue, schedules,
    sending, words, App, Shared,
};
use crate::bytes::{excerpt, line, link, title};
use crate::server::deps::Deps;
use crate::server::job::{Job, Schedule};
use crate::server::jobs::{self, Place, Sought};
use crate::server::queue::State as JobState;
use crate::server::runs::{self, Runs};
use crate::server::{Name, Result};
use crate::watch::now_ms;

/// A body of half a gigabyte by a slow line.
const DOWNLOAD_TAKES: Duration = Duration::from_secs(1_800);
/// Runs to come of a job that comes back.
const AHEAD: usize = 5;

pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let (Some(queue), Some(id)) = (fields.get("queue"), fields.get("id")) else {
        return Redirect::to("./").into_response();
    };
    let body = BodyView::named(fields.text("body"));
    let from = fields.number("from").unwrap_or(0);
    let view = Arc::new(View { queue: queue.into(), id: id.into(), body, from });
    live::serve(app, headers, fields.number("outcome"), move |app| render(app, view.clone())).await
}

/// The body or the result as it is, to be kept in a file: never to be shown by the browser.
pub async fn download(Extension(app): Shared, query: RawQuery) -> Response {
    let fields = fields(query);
    let (Some(queue), Some(id)) = (fields.get("queue"), fields.get("id")) else {
        return (StatusCode::BAD_REQUEST, "queue and id are needed\n").into_response();
    };
    let Ok(place) = app.board.downloads.clone().try_acquire_owned() else {
        let why = "too many downloads at once: try again\n";
        return (StatusCode::SERVICE_UNAVAILABLE, why).into_response();
    };
    match read(&app, queue, id).await {
        Ok(Some(job)) => {
            let headers = [
                (header::CONTENT_TYPE, "application/octet-stream".to_string()),
                (
                    header::CONTENT_DISPOSITION,
                    format!("attachment; filename=\"{}\"", file_name(id)),
                ),
            ];
            let is_result = fields.text("of") == "result";
            let bytes = if is_result { job.result.unwrap_or_default() } else { job.body };
            (headers, sending::whole(bytes.into(), place, DOWNLOAD_TAKES)).into_response()
        }
        Ok(None) => (StatusCode::NOT_FOUND, "there is no such job\n").into_response(),
        Err(trouble) => {
            (layout::status_of_trouble(&trouble), format!("{trouble}\n")).into_response()
        }
    }
}

fn file_name(id: &[u8]) -> String {
    format!("job-{}.bin", plain(id))
}

/// Only what means nothing to any file system.
pub fn plain(name: &[u8]) -> String {
    let plain = |byte: &u8| {
        if byte.is_ascii_alphanumeric() || *byte == b'-' {
            char::from(*byte)
        } else {
            '_'
        }
    };
    name.iter().take(100).map(plain).collect()
}

/// What of a reason or a note a sentence shows.
const LINE: usize = 200;

/// What is more than a sentence shows, or has lines of its own, is shown whole.
fn long_text(heading: &str, text: Option<&[u8]>) -> Markup {
    html! { @if let Some(text) = text.filter(|text| is_long(text)) {
        div.bodyhead { h2 { (heading) } }
        (body::show(text, BodyView::Text))
        @if text.len() > body::SHOWN_MAX { p.note { "This is the beginning." } }
    } }
}

/// Whether a text is shown whole, so that no sentence has it too.
pub fn is_long(text: &[u8]) -> bool {
    text.len() > LINE || text.contains(&b'\n')
}

struct View {
    queue: Name,
    id: Name,
    body: Option<BodyView>,
    /// Where in what it waits for.
    from: u64,
}

async fn read(app: &App, queue: &[u8], id: &[u8]) -> Result<Option<Job>> {
    let command = Job::command(queue, id);
    jobs::ask_one(&app.watch.deployment, app.watch.node_of(queue), command)
        .await
        .and_then(Job::read)
}

async fn read_deps(app: &App, view: &View, job: &Job) -> Option<Result<Deps>> {
    if job.edges.after == 0 {
        return (job.edges.before > 0).then(|| Ok(Deps::default()));
    }
    let command = Deps::command(&view.queue, &view.id, view.from);
    let node = app.watch.node_of(&view.queue);
    Some(jobs::ask_one(&app.watch.deployment, node, command).await.and_then(Deps::read))
}

/// What a held job waits for in the end, and how many jobs wait for that; or how many wait for a job
/// that is dead. Nothing where the server doesn't tell.
async fn read_chain(app: &App, view: &View, job: &Job) -> Option<Chain> {
    let is_root = job.state == JobState::Dead && job.edges.before > 0;
    if !is_root && (job.state != JobState::Held || job.edges.pending == 0) {
        return None;
    }
    let (info, node) = app.watch.read_one(&view.queue).await.ok()??;
    let deployment = &app.watch.deployment;
    let place = Place { deployment, node: Some(node), queue: &view.queue, info: &info };
    let root = match is_root {
        true => None,
        false => Some(place.root(&view.id).await.ok()??),
    };
    let at = root.as_ref().map_or(&view.id[..], |root| &root.dep.id);
    let behind = place.behind(at).await.ok()?;
    Some(Chain { root, behind })
}

async fn render(app: Arc<App>, view: Arc<View>) -> Page {
    let heading = excerpt(&view.id, 200);
    let read = read(&app, &view.queue, &view.id).await;
    let deps = match &read {
        Ok(Some(job)) => read_deps(&app, &view, job).await,
        _ => None,
    };
    let chain = match &read {
        Ok(Some(job)) => read_chain(&app, &view, job).await,
        _ => None,
    };
    let runs = match &read {
        Ok(Some(job)) if job.schedule.is_some() => {
            runs::of(&app.watch.deployment, &[job], AHEAD).await.into_iter().next()
        }
        _ => None,
    };
    let status = match &read {
        Ok(None) => StatusCode::NOT_FOUND,
        read => layout::status_of(read),
    };
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" } " / "
            @if let Ok(Some(job)) = &read {
                a href=(layout::queue_link(&view.queue)) { (title(&view.queue)) }
                " / " a rel="up" href=(layout::state_link(&view.queue, job.state)) { (job.state.name()) " jobs" }
            } @else {
                a rel="up" href=(layout::queue_link(&view.queue)) { (title(&view.queue)) }
            }
        }
        @match &read {
            Ok(Some(job)) => {
                div.head { h1 { (heading) } span.state.{ "is-" (job.state.name()) } { (job.state.name()) } }
                p.lead { (lead(job, now_ms())) @if let Some(chain) = &chain { " " (deps::chain(&view.queue, chain)) } }
                (forms::of_job(&app, &view.queue, job))
                div.columns {
                    section.jobs {
                        (long_text("Reason of the last failure", job.reason.as_deref()))
                        (long_text("Note of its worker", job.note.as_deref()))
                        @if let Some(deps) = &deps { (deps::of(&view.queue, job, view.from, deps)) }
                        @if let Some(result) = &job.result { (show_result(&view, result)) }
                        (show_body(&view, job))
                    }
                    aside { (about(&view.queue, job, runs.as_ref())) }
                }
                (glossary::list())
            }
            Ok(None) => {
                div.head { h1 { (heading) } }
                p.empty { "There is no such job. It was finished or deleted, or has never been. "
                    @if let Sought::Ids(pattern) = Sought::containing(&view.id) {
                        a.similar href=(queue::match_link(&view.queue, &pattern, 0)) { "Find ids with this in them" } " · "
                        a href=(find::find_link(&view.id)) { "Find this id in all queues" }
                    }
                }
            }
            Err(trouble) => {
                div.head { h1 { (heading) } }
                (layout::trouble(trouble))
            }
        }
    };
    Page { status, ..Page::new(heading, main) }
}

/// How it stands, in a sentence.
fn lead(job: &Job, now: u64) -> Markup {
    let at = |ms: Option<u64>| html! { @if let Some(ms) = ms { (words::moment(ms, now)) } };
    html! {
        @match job.state {
            JobState::Delayed => { "Due " (at(job.due)) "." },
            JobState::Ready => { "Ready since " (at(job.since)) "." },
            JobState::Reserved => {
                "A worker has it: its lease ends " (at(job.deadline)) ". "
                @if job.due.is_none() { "This is its last attempt." }
            },
            JobState::Dead => {
                "Dead since " (at(job.since))
                @if let Some(reason) = job.reason.as_ref().filter(|reason| !is_long(reason)) { ": " strong.reason { (line(reason, LINE)) } } "."
            },
            JobState::Done => { "Done since " (at(job.since)) ", kept until " (at(job.kept_until)) "." },
            JobState::Held => (deps::lead(job)),
        }
        " " (deps::behind(job))
        @if let Some(note) = job.note.as_ref().filter(|note| !is_long(note)) { " It says: " strong.told { (line(note, LINE)) } }
    }
}

fn about(queue: &[u8], job: &Job, runs: Option<&Runs>) -> Markup {
    let now = now_ms();
    html! {
        (history::of(job, now))
        @if let Some(schedule) = &job.schedule { (about_schedule(job, schedule, runs, now)) }
        section.policy { h2 { "What it was added with" }
            dl.facts {
                @if let Some(group) = &job.group {
                    dt { "group" } dd { a href=(layout::group_link(queue, group)) title="All jobs of this group" { (excerpt(group, 200)) } }
                }
                dt title="PRIORITY: of the ready jobs the lowest number leaves first" { "priority" }
                dd { (job.priority) }
                dt title="TTR: how long a worker may have it before it is handed out again" { "time to run" }
                dd { (words::span(job.ttr_ms)) }
                dt title="ATTEMPTS: how often it is handed out before it is dead" { "attempts" }
                dd { @if job.attempts == 0 { "no limit" } @else { (words::number(job.attempts)) } }
                dt title="BACKOFF: how long it waits after a failed attempt" { "backoff" }
                dd {
                    @if job.backoff_max_ms == 0 { "none" } @else {
                        (words::span(job.backoff_base_ms)) ", doubling to " (words::span(job.backoff_max_ms))
                    }
                }
                dt title="TTL: if it isn't finished so long after it was added, it is dead" { "time to live" }
                dd { (words::span_or(job.ttl_ms, "no limit")) }
                dt title="LATE: if it is handed out to no worker for so long after it is ready, it is dead" { "dead when late by" }
                dd { (words::span_or(job.late_ms, "no limit")) }
                dt title="KEEP: how long a finished job stays, as done" { "when finished" }
                dd { @if job.keep_ms == 0 { "removed" } @else { "kept for " (words::span(job.keep_ms)) } }
                (facts::others(&job.others))
            }
        }
    }
}

fn about_schedule(job: &Job, schedule: &Schedule, runs: Option<&Runs>, now: u64) -> Markup {
    let (is_late, zone) = (schedule.occurrence < job.due, clock::zone_of(schedule));
    html! {
        section.schedule { h2 { "Schedule" }
            dl.facts {
                dt { "comes back" }
                dd { (list::rule(schedule)) @if let Some(words) = schedules::in_words(schedule) { div.soft { (words) } } }
                dt { "next run" } dd { (list::next_run(job, now))
                    @if let Some(next) = job.next_run().filter(|_| zone.is_some() && job.state != JobState::Ready) { div.soft { (clock::moment(next, zone, now)) } } }
                @if let Some(runs) = runs {
                    @let later = runs.next.iter().filter(|time| **time > now).skip(usize::from(job.state != JobState::Ready));
                    @for (index, time) in later.enumerate() {
                        dt { @if index == 0 { "then" } } dd { (clock::moment(*time, zone, now)) }
                    }
                    dt title="The time of the rule before the next one. A run that was kicked, or came late, began at another time: the server doesn't keep it" { "last run" }
                    dd { (schedules::last(&runs.last, now)) }
                }
                @if let Some(occurrence) = schedule.occurrence.filter(|_| is_late || job.state == JobState::Reserved) {
                    dt { @if job.state == JobState::Reserved { "this run is for" } @else { "it is for" } }
                    dd { (words::brief(occurrence, now)) }
                }
                dt { "runs" }
                dd { (words::number(schedule.runs_begun))
                    @if schedule.runs > 0 { " of " (words::number(schedule.runs)) } }
                dt { "failed runs" } dd { (words::number(schedule.failed_runs)) }
                dt { "missed" } dd { (words::number(schedule.missed)) }
                dt { "those that are missed" }
                dd { @if schedule.misfire == b"ALL" { "are made up for" } @else { "come as one" } }
                @if schedule.jitter_ms > 0 { dt { "jitter" } dd { "up to " (words::span(schedule.jitter_ms)) } }
                @if let Some(until) = schedule.until { dt { "until" } dd { (words::brief(until, now)) } }
                @if let Some(reason) = job.reason.as_ref().filter(|reason| !is_long(reason)) { dt { "last error" } dd.reason { (line(reason, LINE)) } }
            }
        }
    }
}

fn show_body(view: &View, job: &Job) -> Markup {
    let shown = view.body.unwrap_or_else(|| BodyView::of(&job.body));
    let at = |body: BodyView| {
        link("job", &[("queue", &view.queue), ("id", &view.id), ("body", body.name().as_bytes())])
    };
    let is_offered =
        |body: &BodyView| *body != BodyView::Json || *body == shown || body::is_json(&job.body);
    html! {
        div.bodyhead {
            h2 { "Body" }
            span.soft { (words::size(job.body.len() as u64)) }
            nav.views aria-label="Body as" {
                @for body in BodyView::ALL.into_iter().filter(is_offered) {
                    a href=(at(body)) aria-current=[(body == shown).then_some("true")] { (body.name()) }
                }
                a.download href=(link("body", &[("queue", &view.queue), ("id", &view.id)])) download { "download" }
            }
        }
        (body::show(&job.body, shown))
        @if job.body.len() > body::SHOWN_MAX { (is_cut()) }
    }
}

/// As what suits it.
fn show_result(view: &View, result: &[u8]) -> Markup {
    let whole = [("queue", &view.queue[..]), ("id", &view.id), ("of", b"result")];
    html! {
        div.bodyhead {
            h2 { "Result" }
            span.soft { (words::size(result.len() as u64)) }
            nav.views aria-label="Result as" { a.download href=(link("body", &whole)) download { "download" } }
        }
        (body::show(result, BodyView::of(result)))
        @if result.len() > body::SHOWN_MAX { (is_cut()) }
    }
}

fn is_cut() -> Markup {
    html! { p.note { "These are the first " (words::size(body::SHOWN_MAX as u64)) ". The download is whole." } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_s_name_is_plain() {
        assert_eq!(file_name(b"order:17"), "job-order_17.bin");
        assert_eq!(file_name(b"../../etc/passwd\r\n\"x"), "job-______etc_passwd___x.bin");
    }
}
