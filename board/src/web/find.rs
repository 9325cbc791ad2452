//! A job by its id, in all queues: each queue is asked for it, for half a second at a time. What can't be
//! asked is said: a job that isn't found may be there.

use std::collections::BTreeSet;
use std::time::Instant;

use axum::extract::RawQuery;
use axum::response::Response;
use axum::Extension;
use maud::{html, Markup};

use super::page::Page;
use super::{fields, layout, list, words, App, Shared};
use crate::bytes::{bytes_of, excerpt, link, Fields, Shown};
use crate::server::job::Job;
use crate::server::jobs::SEEK_WITHIN;
use crate::server::{Name, Trouble};
use crate::watch::{now_ms, Key};

/// Queues that are asked in one go: each may answer with a body.
const AT_ONCE: usize = 50;
/// Found jobs after which a page ends.
const FOUND: usize = 50;

/// What was typed, and how far the pages before have looked.
struct View {
    typed: Vec<u8>,
    behind: Option<Name>,
    looked: u64,
    found: u64,
    missed: u64,
}

impl View {
    fn of(fields: &Fields) -> View {
        let number = |name: &str| fields.number(name).unwrap_or(0).min(1 << 48);
        View {
            typed: fields.bytes("id").unwrap_or_default(),
            behind: fields.bytes("behind").map(Name::from),
            looked: number("looked"),
            found: number("found"),
            missed: number("missed"),
        }
    }

    /// An id as it is, or as the pages spell it.
    fn ids(&self) -> Vec<Name> {
        let spelled = std::str::from_utf8(&self.typed).ok().and_then(bytes_of);
        let spelled = spelled.filter(|id| *id != self.typed);
        [Some(self.typed.clone()), spelled].into_iter().flatten().map(Name::from).collect()
    }
}

/// What one page has found.
#[derive(Default)]
struct Portion {
    jobs: Vec<(Key, Job)>,
    looked: u64,
    /// Queues among these that told nothing, and why.
    missed: BTreeSet<Name>,
    trouble: Option<Trouble>,
    /// The last queue that was asked; `None` at the end.
    behind: Option<Name>,
}

pub fn find_link(id: &[u8]) -> String {
    link("find", &[("id", id)])
}

pub async fn serve(Extension(app): Shared, query: RawQuery) -> Response {
    let view = View::of(&fields(query));
    let portion = match view.typed.is_empty() {
        true => Portion::default(),
        false => look(&app, &view).await,
    };
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head {
            h1 { "Find a job" }
            form.jump action="find" method="get" role="search" aria-label="Jobs" {
                input #jump type="search" name="id" placeholder="Its whole id" aria-label="Find a job in all queues by its id"
                    value=[std::str::from_utf8(&view.typed).ok()] maxlength="2048" autocomplete="off";
            }
        }
        @if view.typed.is_empty() {
            p.empty { "Type the whole id of a job: it is looked for in each queue. A part of an id, or a text, is found on the page of a queue." }
        } @else { (show(&app, &view, &portion)) }
    };
    let is_blind = portion.jobs.is_empty() && portion.missed.len() as u64 == portion.looked;
    let status = portion.trouble.as_ref().filter(|_| is_blind).map(layout::status_of_trouble);
    let page = Page::still("Find a job".into(), main);
    layout::answer(&*app, &Page { status: status.unwrap_or(page.status), ..page }, None)
}

async fn look(app: &App, view: &View) -> Portion {
    let ids = view.ids();
    let mut portion = Portion { behind: view.behind.clone(), ..Portion::default() };
    let began = Instant::now();
    loop {
        let names: Vec<Name> = {
            let known = app.watch.known();
            let names = known.behind(portion.behind.as_ref()).take(AT_ONCE);
            names.map(|(name, _)| name.clone()).collect()
        };
        let keys: Vec<Key> =
            names.iter().flat_map(|name| ids.iter().map(|id| (name.clone(), id.clone()))).collect();
        for (key, job) in app.watch.asked(&keys).await {
            match job {
                Ok(Some(job)) => portion.jobs.push((key, job)),
                // What was a queue is one no more.
                Ok(None) => {}
                Err(trouble) if trouble.is("WRONGTYPE") => {}
                Err(trouble) => {
                    portion.missed.insert(key.0);
                    portion.trouble = Some(trouble);
                }
            }
        }
        portion.looked += names.len() as u64;
        let is_end = names.len() < AT_ONCE;
        portion.behind = names.last().cloned().filter(|_| !is_end);
        if is_end || portion.jobs.len() >= FOUND || began.elapsed() > SEEK_WITHIN {
            return portion;
        }
    }
}

fn show(app: &App, view: &View, portion: &Portion) -> Markup {
    let (looked, found) = (view.looked + portion.looked, view.found + portion.jobs.len() as u64);
    let missed = view.missed + portion.missed.len() as u64;
    let known = app.watch.known();
    let queues = known.sums.queues as u64;
    let is_all = missed == 0 && known.left_out() == 0 && known.has_passed;
    html! {
        p #progress.note role="status" {
            @if portion.behind.is_some() {
                (words::number(looked)) " of " (words::many(queues.max(looked), "queue")) " searched: " (words::number(found)) " found so far."
            } @else {
                @if is_all { "All " }
                (words::many(looked.saturating_sub(missed), "queue")) " searched: " (words::number(found)) " found."
            }
            @if missed > 0 {
                " " (words::many(missed, "queue")) " told nothing"
                @if let Some(trouble) = &portion.trouble { ": " span.reason { (trouble) } } "."
            }
            (layout::left_out(&known))
            @if !known.has_passed { " Queues are still being looked for." }
        }
        (table(portion))
        @if found == 0 && portion.behind.is_none() {
            p.empty {
                @if is_all { "No queue has" } @else { "No queue that was searched has" }
                " a job with the id " code { (excerpt(&view.typed, 200)) }
                @if is_all { ". A job that was finished or deleted is gone." } @else { ". It may be in another one." }
            }
        }
        @if let Some(behind) = &portion.behind {
            @let (looked, found, missed) = (looked.to_string(), found.to_string(), missed.to_string());
            nav.pager aria-label="Pages" {
                a #go-on data-goes-on href=(link("find", &[("id", &view.typed), ("behind", behind), ("looked", looked.as_bytes()), ("found", found.as_bytes()), ("missed", missed.as_bytes())])) { "look on →" }
            }
        }
    }
}

fn table(portion: &Portion) -> Markup {
    let now = now_ms();
    html! {
        table.list {
            thead { tr {
                th.id scope="col" { "queue" }
                th scope="col" { "state" }
                th scope="col" { "since, or until" }
                th.text scope="col" { "reason · result · body" }
            } }
            tbody data-found { @for ((queue, id), job) in &portion.jobs { tr data-key={ (Shown(queue)) "\n" (Shown(id)) } {
                th.id scope="row" { a href=(layout::job_link(queue, id)) { (excerpt(queue, 100)) } }
                td data-label="state" { span.state.{ "is-" (job.state.name()) } { (job.state.name()) } }
                (list::time(job, list::time_heading(job.state), now))
                (list::text(job))
            } } }
        }
    }
}
