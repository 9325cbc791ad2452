//! What is being worked on: the reserved jobs of all queues, since when, and until when.

use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::Extension;
use futures_util::future::join_all;
use maud::{html, Markup};

use super::live;
use super::page::Page;
use super::{fields, layout, list, words, App, Shared};
use crate::bytes::{excerpt, link, Shown};
use crate::server::job::Job;
use crate::server::jobs::{page_size, Place};
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::{Name, Trouble};
use crate::watch::now_ms;

/// Queues of a page, and jobs of each: a queue's own page has the others.
const QUEUES: usize = 50;
const JOBS: usize = 20;
/// What of a name a row shows.
const NAME: usize = 60;

pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let page = fields(query).number("page").unwrap_or(0).min(1 << 32) as usize;
    live::serve(app, headers, None, move |app| render(app, page)).await
}

struct Queue {
    name: Name,
    info: Info,
    node: Arc<Node>,
}

async fn render(app: Arc<App>, page: usize) -> Page {
    let (queues, many) = queues(&app, page);
    let board = &*app;
    let reads = queues.iter().map(|queue| async move { (queue, read(board, queue).await) });
    let mut rows: Vec<(&Queue, Job)> = Vec::new();
    let mut trouble: Option<Trouble> = None;
    for (queue, jobs) in join_all(reads).await {
        match jobs {
            Ok(jobs) => rows.extend(jobs.into_iter().map(|job| (queue, job))),
            Err(error) => trouble = Some(error),
        }
    }
    let now = now_ms();
    rows.sort_by_key(|(queue, job)| (job.began(now).or(job.deadline), queue.name.clone()));
    let status = trouble.as_ref().filter(|_| rows.is_empty()).map(layout::status_of_trouble);
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head { h1 { "Being worked on" } }
        (summary(&app, many))
        @if let Some(trouble) = &trouble { (layout::trouble(trouble)) }
        @if rows.is_empty() { p.empty { @if page > 0 { "There are no more." } @else { "No worker has a job." } } }
        @else { (table(&rows, now)) }
        (left_out(&queues))
        (pager(page, many))
    };
    let page = Page::new("Being worked on".into(), main);
    Page { status: status.unwrap_or(page.status), ..page }
}

/// Those of a page that have reserved jobs, and how many there are on all pages.
fn queues(app: &App, page: usize) -> (Vec<Queue>, usize) {
    let known = app.watch.known();
    let has = known.iter().filter_map(|(name, reading)| {
        let info = reading.info.as_ref().filter(|info| info.counts.reserved > 0)?;
        Some((name, info, &reading.node))
    });
    let has: Vec<_> = has.collect();
    let of_page = has.iter().skip(page.saturating_mul(QUEUES)).take(QUEUES);
    let of_page = of_page.map(|(name, info, node)| Queue {
        name: (*name).clone(),
        info: (*info).clone(),
        node: (*node).clone(),
    });
    (of_page.collect(), has.len())
}

/// The leases that end first.
async fn read(app: &App, queue: &Queue) -> Result<Vec<Job>, Trouble> {
    let Queue { name, info, node } = queue;
    let deployment = &app.watch.deployment;
    let place = Place { deployment, node: Some(node.clone()), queue: name, info };
    place.first(JobState::Reserved, JOBS.min(page_size(info))).await
}

fn summary(app: &App, queues: usize) -> Markup {
    let known = app.watch.known();
    let reserved = known.sums.counts.reserved;
    html! {
        p.note #summary {
            (words::are(reserved)) " reserved, in " (words::many(queues as u64, "queue"))
            ". Those are first whose lease began first, or was extended longest ago. A worker tells the \
            server no name: a lease is a number."
            @if !known.has_passed || known.sums.read < known.sums.queues { " Not all queues have been read so far." }
            (layout::left_out(&known))
        }
    }
}

fn table(rows: &[(&Queue, Job)], now: u64) -> Markup {
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id · queue" }
                th scope="col" title="When its lease began or was last extended, unless the worker asked for another time to run than the job's" { "since" }
                th scope="col" { "lease ends" }
                th.num scope="col" title="Attempts so far, of how many" { "attempt" }
                th.text scope="col" { "note · body" }
            } }
            tbody { @for (queue, job) in rows { tr data-key={ (Shown(&queue.name)) "\n" (Shown(&job.id)) } {
                th.id scope="row" {
                    a href=(layout::job_link(&queue.name, &job.id)) { (excerpt(&job.id, NAME)) }
                    div.of { "in " a href=(layout::queue_link(&queue.name)) { (excerpt(&queue.name, NAME)) } }
                }
                td data-label="since" { @if let Some(began) = job.began(now) { (words::brief(began, now)) } @else { "–" } }
                td data-label="lease ends" { @if let Some(end) = job.deadline { (words::brief(end, now)) } }
                td.num data-label="attempt" { (job.attempt) @if job.attempts > 0 { span.soft { "/" (job.attempts) } } }
                (list::text(job))
            } } }
        }
    }
}

/// Queues that have more than are shown.
fn left_out(queues: &[Queue]) -> Markup {
    let shown = |queue: &Queue| JOBS.min(page_size(&queue.info)) as u64;
    let more = queues.iter().filter(|queue| queue.info.counts.reserved > shown(queue));
    let more: Vec<_> = more.collect();
    html! { @if !more.is_empty() { p.note #more {
        "Of a queue the first " (words::number(JOBS as u64)) " are shown. There are more in "
        @for (place, queue) in more.iter().enumerate() {
            @if place > 0 { ", " }
            a href=(layout::state_link(&queue.name, JobState::Reserved)) { (excerpt(&queue.name, NAME)) }
            " (" (words::number(queue.info.counts.reserved)) ")"
        } "."
    } } }
}

fn pager(page: usize, many: usize) -> Markup {
    let at = |page: usize| link("working", &[("page", page.to_string().as_bytes())]);
    html! { @if many > QUEUES || page > 0 {
        nav.pager aria-label="Pages" {
            @if page > 0 { a rel="prev" href=(at(page - 1)) { "← previous" } }
            span { "queues " (words::number((page * QUEUES + 1) as u64)) " to " (words::number(((page + 1) * QUEUES).min(many) as u64))
                " of " (words::number(many as u64)) }
            @if (page + 1) * QUEUES < many { a rel="next" href=(at(page + 1)) { "next →" } }
        }
    } }
}
