//! One queue: its jobs by state, in the order in which they leave it, and how it does.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{html, Markup};

use super::live::{self, Page};
use super::{facts, fields, forms, layout, words, App, Shared};
use crate::bytes::{bytes_of, excerpt, link, title, Fields, Hex, Shown};
use crate::server::job::Job;
use crate::server::jobs::{self, Peeked, Scanned};
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::{Name, Result};
use crate::watch::now_ms;

/// What of a body a list shows.
const EXCERPT: usize = 120;

pub async fn serve(State(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let Some(name) = fields.bytes("name") else { return Redirect::to("/").into_response() };
    if let Some(id) = fields.get("id") {
        return go_to_job(&app, &name, id).await;
    }
    let view = Arc::new(View::of(name.into(), &fields));
    live::serve(app, headers, fields.number("outcome"), move |app| render(app, view.clone())).await
}

/// To the job with an id that a person typed, which may be spelled as the pages show it.
async fn go_to_job(app: &App, queue: &[u8], typed: &[u8]) -> Response {
    let spelled = std::str::from_utf8(typed).ok().and_then(bytes_of).filter(|id| id != typed);
    let mut id = typed;
    if let Some(spelled) = &spelled {
        let command = Job::command(queue, spelled);
        let reply = jobs::ask_one(&app.watch.deployment, app.watch.node_of(queue), command).await;
        if reply.and_then(Job::read).is_ok_and(|job| job.is_some()) {
            id = spelled;
        }
    }
    Redirect::to(&layout::job_link(queue, id)).into_response()
}

/// What is asked for.
pub struct View {
    pub name: Name,
    /// `None`: the first state that has jobs.
    state: Option<JobState>,
    place: Place,
}

/// Which jobs of a state.
#[derive(Clone, Copy)]
enum Place {
    /// In order, by pages.
    Page(usize),
    /// In no order, from a cursor of DQ.SCAN.
    Cursor(u64),
}

impl View {
    fn of(name: Name, fields: &Fields) -> View {
        let place = match fields.number("cursor") {
            Some(cursor) => Place::Cursor(cursor),
            None => Place::Page(fields.number("page").unwrap_or(0).min(1 << 32) as usize),
        };
        View { name, state: fields.get("state").and_then(JobState::named), place }
    }

    fn link(&self, state: JobState, place: Place) -> String {
        let number;
        let mut fields: Vec<(&str, &[u8])> = vec![("name", &self.name), ("state", state.name().as_bytes())];
        match place {
            Place::Page(0) => {}
            Place::Page(page) => {
                number = page.to_string();
                fields.push(("page", number.as_bytes()));
            }
            Place::Cursor(cursor) => {
                number = cursor.to_string();
                fields.push(("cursor", number.as_bytes()));
            }
        }
        link("/queue", &fields)
    }

    /// The state to show: dead jobs and ready ones are what people come for.
    fn state(&self, info: &Info) -> JobState {
        let has = |state: &&JobState| info.counts.of(**state) > 0;
        self.state.or(JobState::ALL.iter().find(has).copied()).unwrap_or(JobState::Ready)
    }
}

enum Jobs {
    InOrder(Peeked),
    InNone(Scanned),
}

async fn render(app: Arc<App>, view: Arc<View>) -> Page {
    let name = title(&view.name);
    let read = match app.watch.read_one(&view.name).await {
        Ok(Some((info, node))) => {
            let state = view.state(&info);
            let jobs = read_jobs(&app, &node, &view, &info, state).await;
            Ok((info, state, jobs))
        }
        Ok(None) => return no_queue(name),
        Err(trouble) => Err(trouble),
    };
    let main = match &read {
        Ok((info, state, jobs)) => html! {
            (head(&app, &view.name, Some(info)))
            (forms::of_queue(&app, &view.name, info, *state))
            div.columns {
                section.jobs aria-label="Jobs" {
                    (tabs(&view, info, *state))
                    @match jobs {
                        Ok(jobs) => (list(&view, info, *state, jobs)),
                        Err(trouble) => (layout::trouble(trouble)),
                    }
                }
                aside { (facts::of(&app, &view.name, info)) }
            }
        },
        Err(trouble) => html! { (head(&app, &view.name, None)) (layout::trouble(trouble)) },
    };
    Page::new(name, main)
}

fn no_queue(name: String) -> Page {
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="/" { "queues" } }
        h1 { (name) }
        p.empty { "There is no such queue." }
    };
    Page { status: StatusCode::NOT_FOUND, ..Page::new(name, main) }
}

async fn read_jobs(app: &App, node: &Arc<Node>, view: &View, info: &Info, state: JobState) -> Result<Jobs> {
    let (deployment, node) = (&app.watch.deployment, Some(node.clone()));
    Ok(match view.place {
        Place::Page(page) => {
            Jobs::InOrder(jobs::peek(deployment, node, &view.name, info, state, page).await?)
        }
        Place::Cursor(from) => {
            Jobs::InNone(jobs::scan(deployment, node, &view.name, info, state, from).await?)
        }
    })
}

fn head(app: &App, name: &[u8], info: Option<&Info>) -> Markup {
    let rates = app.watch.known().get(name).and_then(|reading| reading.rates);
    html! {
        nav.path aria-label="Path" { a rel="up" href="/" { "queues" } }
        div.head {
            h1 { (title(name)) }
            @if let Some(info) = info { (layout::marks(info, rates.map(|rates| rates.popped), now_ms())) }
            form.jump action="/queue" method="get" {
                input type="hidden" name="name.hex" value=(Hex(name));
                input #jump name="id" placeholder="Go to a job by its id" aria-label="Go to a job by its id"
                    maxlength="2048" autocomplete="off" required;
            }
        }
    }
}

fn tabs(view: &View, info: &Info, shown: JobState) -> Markup {
    html! {
        nav.tabs aria-label="States" {
            @for state in JobState::ALL {
                a.{ "is-" (state.name()) }.zero[info.counts.of(state) == 0] href=(view.link(state, Place::Page(0)))
                    aria-current=[(state == shown).then_some("page")] {
                    (state.name()) " " span.count title=(words::number(info.counts.of(state))) {
                        (words::short(info.counts.of(state)))
                    }
                }
            }
        }
    }
}

fn list(view: &View, info: &Info, state: JobState, jobs: &Jobs) -> Markup {
    let (rows, is_ordered) = match jobs {
        Jobs::InOrder(peeked) => (&peeked.jobs, true),
        Jobs::InNone(scanned) => (&scanned.jobs, false),
    };
    let many = info.counts.of(state);
    html! {
        p.note {
            @if is_ordered { (order(state)) } @else {
                "All " (state.name()) " jobs, in no order. "
                a href=(view.link(state, Place::Page(0))) { "The first ones in order" }
            }
        }
        @if rows.is_empty() {
            p.empty { @if many == 0 { "No job is " (state.name()) "." } @else { "No jobs on this page." } }
        } @else {
            (table(&view.name, state, rows))
        }
        (pager(view, state, jobs, many))
    }
}

fn order(state: JobState) -> &'static str {
    match state {
        JobState::Ready => "As they will be handed out: by priority, due time, order of scheduling.",
        JobState::Delayed => "By due time.",
        JobState::Reserved => "By the end of their lease.",
        JobState::Dead => "Those that died first are first.",
        JobState::Done => "By the end of their KEEP.",
    }
}

fn table(queue: &[u8], state: JobState, jobs: &[Job]) -> Markup {
    let now = now_ms();
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "id" }
                th scope="col" { (time_heading(state)) }
                th.num scope="col" title="Attempts so far, of how many" { "attempt" }
                th.num scope="col" { "priority" }
                th.text scope="col" { @if state == JobState::Dead { "reason · body" } @else { "body" } }
            } }
            tbody { @for job in jobs { (row(queue, job, now)) } }
        }
    }
}

fn time_heading(state: JobState) -> &'static str {
    match state {
        JobState::Ready => "ready",
        JobState::Delayed => "due",
        JobState::Reserved => "lease ends",
        JobState::Dead => "died",
        JobState::Done => "kept until",
    }
}

fn row(queue: &[u8], job: &Job, now: u64) -> Markup {
    let time = match job.state {
        JobState::Ready | JobState::Dead => job.since,
        JobState::Delayed => job.due,
        JobState::Reserved => job.deadline,
        JobState::Done => job.kept_until,
    };
    html! {
        tr data-key=(Shown(&job.id)) {
            th.id scope="row" { a href=(layout::job_link(queue, &job.id)) { (excerpt(&job.id, 100)) } }
            td data-label=(time_heading(job.state)) { @if let Some(time) = time { (words::brief(time, now)) } }
            td.num data-label="attempt" {
                (job.attempt) @if job.attempts > 0 { span.soft { "/" (job.attempts) } }
            }
            td.num data-label="priority" { (job.priority) }
            td.text {
                @if let Some(reason) = &job.reason { span.reason { (excerpt(reason, EXCERPT)) } " " }
                span.soft { (excerpt(&job.body, EXCERPT)) }
            }
        }
    }
}

fn pager(view: &View, state: JobState, jobs: &Jobs, many: u64) -> Markup {
    let (previous, next, unordered) = match (view.place, jobs) {
        (Place::Page(page), Jobs::InOrder(peeked)) => (
            (page > 0).then(|| Place::Page(page - 1)),
            peeked.has_more.then_some(Place::Page(page + 1)),
            !peeked.has_more && many > peeked.jobs.len() as u64 && (page > 0 || !peeked.jobs.is_empty()),
        ),
        (Place::Cursor(_), Jobs::InNone(scanned)) => (None, scanned.next.map(Place::Cursor), false),
        _ => (None, None, false),
    };
    html! {
        @if previous.is_some() || next.is_some() || unordered {
            nav.pager aria-label="Pages" {
                @if let Some(place) = previous { a rel="prev" href=(view.link(state, place)) { "← previous" } }
                span { (words::number(many)) " in all" }
                @if let Some(place) = next { a rel="next" href=(view.link(state, place)) { "next →" } }
                @if unordered {
                    a.all href=(view.link(state, Place::Cursor(0))) { "all of them, in no order" }
                }
            }
        }
    }
}
