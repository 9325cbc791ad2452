//! The jobs of all queues that come back: when each ran and will run, and what can be done about
//! it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::Extension;
use maud::{html, Markup};

use super::live;
use super::page::Page;
use super::{fields, forms, layout, list, overview, planned, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{excerpt, link, title, Fields, Hex, Shown};
use crate::server::groups;
use crate::server::job::{Job, Schedule};
use crate::server::queue::State as JobState;
use crate::server::runs::{self, Last, Runs};
use crate::server::Name;
use crate::watch::{now_ms, Found, Key, Rank};

const ROWS: usize = 50;
/// Runs of each that are told.
const AHEAD: usize = 4;
/// What of an error, of a name a row shows.
const EXCERPT: usize = 120;
const NAME: usize = 60;

pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let view = Arc::new(View::of(&fields));
    live::serve(app, headers, fields.number("outcome"), move |app| render(app, view.clone())).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Next,
    Failed,
    Missed,
    Name,
}

impl Sort {
    const ALL: [Sort; 4] = [Sort::Next, Sort::Failed, Sort::Missed, Sort::Name];

    fn name(self) -> &'static str {
        match self {
            Sort::Next => "next",
            Sort::Failed => "failed",
            Sort::Missed => "missed",
            Sort::Name => "name",
        }
    }

    /// The soonest first, or the most. Those that won't run are last.
    fn of(self, row: &Rank) -> (u64, Reverse<u64>) {
        match self {
            Sort::Next => (row.next.unwrap_or(u64::MAX), Reverse(0)),
            Sort::Failed => (0, Reverse(row.failed)),
            Sort::Missed => (0, Reverse(row.missed)),
            Sort::Name => (0, Reverse(0)),
        }
    }
}

/// What is asked for.
pub struct View {
    find: String,
    sort: Sort,
    page: usize,
}

impl View {
    fn of(fields: &Fields) -> View {
        let sort = Sort::ALL.into_iter().find(|sort| sort.name() == fields.text("sort"));
        View {
            find: fields.text("find").trim().to_string(),
            sort: sort.unwrap_or(Sort::Next),
            page: fields.number("page").unwrap_or(0).min(1 << 32) as usize,
        }
    }

    fn link(&self, sort: Sort, page: usize) -> String {
        let page = page.to_string();
        let mut fields: Vec<(&str, &[u8])> = Vec::new();
        if !self.find.is_empty() {
            fields.push(("find", self.find.as_bytes()));
        }
        if sort != Sort::Next {
            fields.push(("sort", sort.name().as_bytes()));
        }
        if page != "0" {
            fields.push(("page", page.as_bytes()));
        }
        link("schedules", &fields)
    }

    /// The jobs on the page, and how many there are on all pages.
    fn choose(&self, found: &Found) -> (Vec<Key>, usize) {
        let find = self.find.to_lowercase();
        let fits = |(queue, id): &Key| {
            find.is_empty() || overview::has(queue, &find) || overview::has(id, &find)
        };
        let rows = found.rows.iter().filter(|(key, _)| fits(key));
        let mut rows: Vec<_> = rows.map(|(key, row)| (self.sort.of(row), key)).collect();
        rows.sort_unstable();
        let page = rows.iter().skip(self.page.saturating_mul(ROWS)).take(ROWS);
        (page.map(|(_, key)| (*key).clone()).collect(), rows.len())
    }
}

/// Back to the page that a form was on.
pub fn back(fields: &Fields, outcome: (&str, &[u8])) -> String {
    let view = View::of(fields);
    let page = view.page.to_string();
    let mut to: Vec<(&str, &[u8])> = vec![
        ("find", view.find.as_bytes()),
        ("sort", view.sort.name().as_bytes()),
        ("page", page.as_bytes()),
    ];
    to.push(outcome);
    link("schedules", &to)
}

/// One job as a row tells it.
struct Told {
    queue: Name,
    job: Job,
    runs: Runs,
    is_queue_paused: bool,
    is_group_paused: bool,
}

async fn render(app: Arc<App>, view: Arc<View>) -> Page {
    app.watch.survey.go_on(&app.watch).await;
    let (keys, many) = view.choose(&app.watch.survey.found());
    let rows = read(&app, &keys, view.sort).await;
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head {
            h1 { "Schedules" }
            form.jump action="schedules" method="get" role="search" aria-label="Schedules" {
                input #jump type="search" name="find" placeholder="Find by queue or id" aria-label="Find schedules by their queue or id"
                    value=(view.find) maxlength="200" autocomplete="off";
            }
        }
        @if app.may(Verb::Schedule) { div.actions { a.button href="schedule" { "Add a schedule…" } } }
        p.note { "Jobs that come back, of all queues. " (progress(&app)) }
        @if !view.find.is_empty() {
            p.note { (words::many(many as u64, "schedule")) " with “" (view.find) "” in the name of the queue or in the id. "
                a href="schedules" { "All schedules" } }
        }
        (withheld(&app))
        @if rows.is_empty() { (nothing(&app, &view)) } @else { (table(&app, &view, &rows)) }
        (pager(&view, many))
    };
    Page::new("Schedules".into(), main)
}

async fn read(app: &App, keys: &[Key], sort: Sort) -> Vec<Told> {
    let jobs = app.watch.scheduled(keys).await;
    let deployment = &app.watch.deployment;
    let runs =
        runs::of(deployment, &jobs.iter().map(|(_, job)| job).collect::<Vec<_>>(), AHEAD).await;
    let mut groups: HashMap<Name, Vec<Vec<u8>>> = HashMap::new();
    for ((queue, _), job) in &jobs {
        let info = app.watch.known().get(queue).and_then(|reading| reading.info.clone());
        let can_ask =
            job.group.is_some() && info.is_some_and(|info| info.groups <= groups::ALL_MAX);
        if can_ask && !groups.contains_key(queue) {
            let paused = groups::paused(deployment, app.watch.node_of(queue), queue).await;
            groups.insert(queue.clone(), paused.unwrap_or_default());
        }
    }
    let known = app.watch.known();
    let is_paused = |queue: &[u8]| {
        known
            .get(queue)
            .and_then(|reading| reading.info.as_ref())
            .is_some_and(|info| info.is_paused)
    };
    let told = jobs.into_iter().zip(runs).map(|(((queue, _), job), runs)| {
        let group = job.group.as_ref();
        let is_group_paused =
            groups.get(&queue).zip(group).is_some_and(|(paused, group)| paused.contains(group));
        Told { is_queue_paused: is_paused(&queue), is_group_paused, queue, job, runs }
    });
    let mut told: Vec<Told> = told.collect();
    // They may have come from several servers, and may have run since they were found.
    told.sort_by_key(|told| {
        let schedule = told.job.schedule.as_deref().cloned().unwrap_or_default();
        let most = match sort {
            Sort::Failed => schedule.failed_runs,
            Sort::Missed => schedule.missed,
            Sort::Next | Sort::Name => 0,
        };
        let next = told.job.next_run().unwrap_or(u64::MAX);
        (
            Reverse(most),
            if sort == Sort::Next { next } else { 0 },
            told.queue.clone(),
            told.job.id.clone(),
        )
    });
    told
}

/// How far the search is.
fn progress(app: &App) -> Markup {
    let (found, progress) = {
        let found = app.watch.survey.found();
        (found.rows.len() as u64, found.progress.clone())
    };
    let known = app.watch.known();
    let (there, read, queues) = (known.sums.schedules, known.sums.read, known.sums.queues);
    html! { span #progress {
        @if progress.is_full {
            "There are more than are listed: these are the first " (words::number(found)) " that were found, of "
            (words::number(there)) "."
        } @else if !known.has_passed {
            "Looking for queues…"
        } @else if progress.has_passed && (progress.is_resting || found >= there) {
            @if known.left_out() == 0 { "All queues have been gone through: " } @else { (words::many(queues as u64, "queue")) " gone through: " } (words::number(found)) @if found == 1 { " schedule." } @else { " schedules." }
        } @else {
            (words::number(found)) " of about " (words::number(there.max(found))) " found so far, "
            (words::number(progress.looked)) @if progress.looked == 1 { " job looked at" } @else { " jobs looked at" }
            @if let Some(queue) = &progress.queue { ", now in " strong { (title(queue)) } }
            ". The search goes on by itself while this page is open, and when it is loaded again."
        }
        @if read < queues {
            " " (words::number(read as u64)) " of " (words::many(queues as u64, "queue")) " read so far."
        }
        (layout::left_out(&known))
    } }
}

/// What isn't here since our user may not see it.
fn withheld(app: &App) -> Markup {
    let refused = app.watch.survey.found().progress.refused.clone();
    let denied = app.watch.known().sums.denied as u64;
    html! {
        @if let Some(trouble) = refused { (layout::trouble(&trouble)) }
        @if denied > 0 {
            p.banner role="alert" { "dq-board's user may not look at " (words::number(denied))
                @if denied == 1 { " queue" } @else { " queues" } ": their schedules aren't here." }
        }
    }
}

fn nothing(app: &App, view: &View) -> Markup {
    let has_passed = app.watch.known().has_passed && app.watch.survey.found().progress.has_passed;
    html! { p.empty {
        @if !has_passed { "Looking for schedules…" }
        @else if !view.find.is_empty() { "No such schedule." }
        @else if view.page > 0 { "There are no more." }
        @else if app.watch.survey.found().progress.refused.is_some() || app.watch.known().sums.denied > 0 { "None that dq-board may see." }
        @else { "No job comes back. " code { "DQ.ADD mail nightly \"…\" CRON \"30 2 * * *\"" } " makes one that does." }
    } }
}

fn pager(view: &View, many: usize) -> Markup {
    let first = view.page.saturating_mul(ROWS);
    html! { @if many > ROWS || view.page > 0 {
        nav.pager aria-label="Pages" {
            @if view.page > 0 { a rel="prev" href=(view.link(view.sort, view.page - 1)) { "← previous" } }
            span { (words::number(first as u64 + 1)) " to " (words::number((first + ROWS).min(many) as u64))
                " of " (words::number(many as u64)) }
            @if first + ROWS < many { a rel="next" href=(view.link(view.sort, view.page + 1)) { "next →" } }
        }
    } }
}

fn table(app: &App, view: &View, rows: &[Told]) -> Markup {
    let has_forms = [Verb::Kick, Verb::Pause, Verb::Schedule].into_iter().any(|verb| app.may(verb));
    let heading = |sort: Sort, text: &str, class: &str, told: &str| {
        let order =
            if matches!(sort, Sort::Next | Sort::Name) { "ascending" } else { "descending" };
        html! {
            th.{ (class) } scope="col" title=(told) aria-sort=[(view.sort == sort).then_some(order)] {
                a href=(view.link(sort, 0)) { (text) }
            }
        }
    };
    html! {
        table.list.schedules.all {
            thead { tr {
                (heading(Sort::Name, "id · queue", "id", "By queue, then by id"))
                th scope="col" { "comes back" }
                th scope="col" title="The time of the rule before the next one. A run that was kicked, or came late, began at another time: the server doesn't keep it" { "last run" }
                (heading(Sort::Next, "next runs", "", "The soonest first"))
                (heading(Sort::Missed, "missed", "num", "Times that passed without a run of their own"))
                (heading(Sort::Failed, "failed", "num", "Runs that were out of attempts"))
                th.text scope="col" { "last error" }
                @if has_forms { th scope="col" { span.unseen { "what can be done" } } }
            } }
            tbody { @for told in rows { @if let Some(schedule) = &told.job.schedule {
                (row(app, view, told, schedule, has_forms))
            } } }
        }
    }
}

fn row(app: &App, view: &View, told: &Told, schedule: &Schedule, has_forms: bool) -> Markup {
    let (job, now) = (&told.job, now_ms());
    html! { tr data-key={ (Shown(&told.queue)) "\n" (Shown(&job.id)) } {
        th.id scope="row" {
            a href=(layout::job_link(&told.queue, &job.id)) { (excerpt(&job.id, NAME)) }
            div.of { "in " a href=(layout::queue_link(&told.queue)) { (excerpt(&told.queue, NAME)) } }
        }
        td data-label="comes back" { (list::rule(schedule)) @if let Some(told) = in_words(schedule) { div.soft.cron { (told) } } }
        td data-label="last run" { (last(&told.runs.last, now)) }
        td.runs data-label="next runs" { (next(told, now)) }
        td.num.is-dead.zero[schedule.missed == 0] data-label="missed" { (words::number(schedule.missed)) }
        td.num.is-dead.zero[schedule.failed_runs == 0] data-label="failed" { (words::number(schedule.failed_runs)) }
        td.text { @if let Some(reason) = &job.reason { span.reason { (excerpt(reason, EXCERPT)) } } }
        @if has_forms { td.act { (actions(app, view, told, schedule)) } }
    } }
}

/// A cron expression in English.
pub fn in_words(schedule: &Schedule) -> Option<String> {
    planned::cron_in_words(schedule.cron.as_deref()?)
}

pub fn last(last: &Last, now: u64) -> Markup {
    html! { @match last {
        Last::Never => span.soft { "never" },
        Last::Now(time) => { "running: that of " (words::brief(*time, now)) },
        Last::By(time) => (words::brief(*time, now)),
        Last::Unknown => span.soft title="The server doesn't keep when that was" { "–" },
    } }
}

fn next(told: &Told, now: u64) -> Markup {
    let (first, later) = match told.runs.next.split_first() {
        Some((first, later)) => (Some(*first), later),
        None => (None, &[] as &[u64]),
    };
    let jitter = told.job.schedule.as_ref().map_or(0, |schedule| schedule.jitter_ms);
    html! {
        @match told.job.state {
            JobState::Ready => "ready: it waits for a worker",
            JobState::Dead | JobState::Done | JobState::Held => span.is-dead { "none: it is " (told.job.state.name()) },
            JobState::Reserved | JobState::Delayed => {
                @if let Some(first) = first { (words::brief(first, now)) } @else { "none: this is the last one" }
            },
        }
        @if told.is_queue_paused { " " span.mark.paused { "queue paused" } }
        @else if told.is_group_paused { " " span.mark.paused { "group paused" } }
        @let later = if told.job.state == JobState::Ready { told.runs.next.as_slice() } else { later };
        @let later = later.iter().filter(|time| told.job.state != JobState::Ready || **time > now);
        div.soft.later { @for (index, time) in later.enumerate() { @if index > 0 { " · " } (words::brief(*time, now)) }
            @if jitter > 0 { " · each up to " (words::span(jitter)) " later" } }
    }
}

/// What every form here has besides: the page that it is on.
fn hidden(app: &App, view: &View, verb: Verb, queue: &[u8], id: Option<&[u8]>) -> Markup {
    html! {
        (forms::hidden(app, verb, queue, id))
        input type="hidden" name="back" value="schedules";
        input type="hidden" name="find" value=(view.find);
        input type="hidden" name="sort" value=(view.sort.name());
        input type="hidden" name="page" value=(view.page);
    }
}

fn actions(app: &App, view: &View, told: &Told, schedule: &Schedule) -> Markup {
    let (queue, job): (&[u8], &Job) = (&told.queue, &told.job);
    let can_run = matches!(job.state, JobState::Delayed | JobState::Dead);
    let name = excerpt(&job.id, 100);
    html! {
        @if app.may(Verb::Kick) && can_run {
            form action="act" method="post" {
                (hidden(app, view, Verb::Kick, queue, Some(&job.id)))
                button aria-label={ "Run now: " (name) } title=(forms::run_now(job)) { "Run now" }
            }
        }
        @if app.may(Verb::Schedule) {
            a.button href=(forms::schedule_link(queue, &job.id)) aria-label={ "Edit " (name) } { "Edit" }
        }
        @if app.may(Verb::Pause) { (pause(app, view, told, schedule, &name)) }
    }
}

fn pause(app: &App, view: &View, told: &Told, schedule: &Schedule, name: &str) -> Markup {
    let (queue, job): (&[u8], &Job) = (&told.queue, &told.job);
    let group = job.group.as_deref();
    let group_field =
        |group: &[u8]| html! { input type="hidden" name="group.hex" value=(Hex(group)); };
    html! {
        @if told.is_queue_paused {
            form action="act" method="post" {
                (hidden(app, view, Verb::Pause, queue, None))
                button name="resume" value="1" aria-label={ "Resume queue: " (name) } { "Resume queue" }
            }
        } @else if let Some(group) = group.filter(|_| told.is_group_paused) {
            form action="act" method="post" {
                (hidden(app, view, Verb::Pause, queue, None)) (group_field(group))
                button name="resume" value="1" aria-label={ "Resume group: " (name) } { "Resume group" }
            }
        } @else {
            details name="panel" { summary aria-label={ "Pause… " (name) } { "Pause…" }
                div.panel {
                    p { "DQ pauses groups and queues, not one job. " (missed_meanwhile(schedule)) }
                    @if let Some(group) = group {
                        form action="act" method="post" {
                            (hidden(app, view, Verb::Pause, queue, None)) (group_field(group))
                            (forms::for_how_long())
                            button { "Pause its group, " (excerpt(group, 40)) }
                        }
                    } @else if app.may(Verb::Schedule) {
                        p { "To pause it alone, " a href=(forms::schedule_link(queue, &job.id)) { "give it a group of its own" }
                            " first." }
                    }
                    form action="act" method="post" {
                        (hidden(app, view, Verb::Pause, queue, None))
                        (forms::for_how_long())
                        button.danger { "Pause all jobs of " (excerpt(queue, 40)) }
                    }
                }
            }
        }
    }
}

fn missed_meanwhile(schedule: &Schedule) -> &'static str {
    if schedule.misfire == b"ALL" {
        "Each run that it misses meanwhile is made up for."
    } else {
        "Runs that it misses meanwhile come as one."
    }
}
