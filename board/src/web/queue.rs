//! One queue: its jobs by state, in the order in which they leave it, jobs that are sought, groups,
//! and how it does.

use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::choice::{Choice, Progress};
use super::group_jobs::{self, Seen, What};
use super::live;
use super::page::Page;
use super::why::Why;
use super::{
    charts, dead, facts, fields, filtered, forms, glossary, groups, layout, limits, list,
    selection, words, App, Shared,
};
use crate::bytes::{bytes_of, link, title, Fields, Hex, Shown};
use crate::server::deaths::Reasons;
use crate::server::forecast::{self, Forecast};
use crate::server::groups::Groups;
use crate::server::job::Job;
use crate::server::jobs::{self, Begin, Found, Peeked, Place, Sought};
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::search::Portion;
use crate::server::{Name, Result};
use crate::watch::now_ms;

pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let Some(name) = fields.bytes("name") else { return Redirect::to("./").into_response() };
    if let Some(id) = fields.get("id") {
        return go_to_job(&app, &name, id).await;
    }
    let view = Arc::new(View::of(name.into(), &fields));
    live::serve(app, headers, fields.number("outcome"), move |app| render(app, view.clone())).await
}

/// To the job with an id that a person typed, which may be spelled as the pages show it; or, when
/// that is a pattern and no job is called so, to the jobs that match it.
async fn go_to_job(app: &App, queue: &[u8], typed: &[u8]) -> Response {
    let spelled = std::str::from_utf8(typed).ok().and_then(bytes_of).filter(|id| id != typed);
    let ids = [Some(typed), spelled.as_deref()];
    let mut found = None;
    for id in ids.into_iter().flatten() {
        let reply =
            jobs::ask_one(&app.watch.deployment, app.watch.node_of(queue), Job::command(queue, id));
        if reply.await.and_then(Job::read).is_ok_and(|job| job.is_some()) {
            found = Some(id);
        }
    }
    let to = match found {
        None if Sought::is_pattern(typed) => match_link(queue, typed, 0),
        found => layout::job_link(queue, found.unwrap_or(typed)),
    };
    Redirect::to(&to).into_response()
}

/// What is asked for.
struct View {
    name: Name,
    part: Part,
    charts: charts::Asked,
    seen: Seen,
    /// How many dead jobs are looked at for why they died.
    look: u64,
}

/// Which of a queue's jobs, or its groups.
enum Part {
    /// Of a state, in order; `None`: the first state that has jobs. Pages count from 0.
    Ordered { state: Option<JobState>, begin: Begin, page: u64 },
    /// Of a state, those that fit a filter, or in another order.
    Filtered { choice: Choice, from: Progress },
    /// In no order, from a cursor of DQ.SCAN.
    Sought { sought: Sought, cursor: u64 },
    /// From a cursor of DQ.GROUPS.
    Groups { cursor: u64 },
}

impl Part {
    /// Whether it shows those jobs that fit something: then each action on the page means those.
    fn is_some_of_them(&self) -> bool {
        match self {
            Part::Ordered { .. } | Part::Groups { .. } => false,
            Part::Filtered { choice, .. } => !choice.filter.is_all(),
            Part::Sought { .. } => true,
        }
    }
}

impl View {
    fn of(name: Name, fields: &Fields) -> View {
        let cursor = fields.number("cursor").unwrap_or(0);
        let part = if let Some(pattern) = fields.bytes("match") {
            Part::Sought { sought: Sought::Ids(pattern), cursor }
        } else if let Some(group) = fields.bytes("group") {
            Part::Sought { sought: Sought::Group(group), cursor }
        } else if let Some(text) =
            fields.bytes("find").filter(|text| !text.is_empty() && fields.get("all").is_some())
        {
            Part::Sought { sought: Sought::Text(text), cursor }
        } else if fields.text("tab") == "schedules" {
            Part::Sought { sought: Sought::Schedules, cursor }
        } else if fields.text("tab") == "groups" {
            Part::Groups { cursor }
        } else if let Some(choice) = Choice::filtered(fields) {
            Part::Filtered { choice, from: Progress::of(fields) }
        } else {
            let begin = match fields.bytes("after") {
                Some(id) => Begin::After { id, time: fields.number("time") },
                None => Begin::First,
            };
            let page = if begin == Begin::First { 0 } else { fields.number("page").unwrap_or(1) };
            let state = fields.get("state").and_then(JobState::named);
            Part::Ordered { state, begin, page }
        };
        let charts = charts::Asked::of("queue", fields);
        View { name, part, charts, seen: Seen::of(fields), look: dead::look(fields) }
    }
}

fn page_link(queue: &[u8], state: JobState, begin: &Begin, page: u64) -> String {
    let Begin::After { id, time } = begin else { return layout::state_link(queue, state) };
    let (time, page) = (time.map(|time| time.to_string()), page.to_string());
    let mut fields: Vec<(&str, &[u8])> =
        vec![("name", queue), ("state", state.name().as_bytes()), ("after", id)];
    fields.extend(time.as_ref().map(|time| ("time", time.as_bytes())));
    fields.push(("page", page.as_bytes()));
    link("queue", &fields)
}

pub fn match_link(queue: &[u8], pattern: &[u8], cursor: u64) -> String {
    sought_link(queue, ("match", pattern), cursor)
}

fn sought_link(queue: &[u8], what: (&str, &[u8]), cursor: u64) -> String {
    let cursor = cursor.to_string();
    let mut fields: Vec<(&str, &[u8])> = vec![("name", queue), what];
    if cursor != "0" {
        fields.push(("cursor", cursor.as_bytes()));
    }
    link("queue", &fields)
}

/// The state to show: ready jobs are what people come for, else those that there are.
fn state_shown(asked: Option<JobState>, info: &Info) -> JobState {
    let has = |state: &&JobState| info.counts.of(**state) > 0;
    asked.or(JobState::ALL.iter().find(has).copied()).unwrap_or(JobState::Ready)
}

/// What is there to show.
enum Shows {
    Ordered { state: JobState, page: u64, peeked: Peeked, reasons: Option<Arc<Reasons>> },
    Filtered { choice: Choice, from: Progress, portion: Portion, reasons: Option<Arc<Reasons>> },
    Sought { sought: Sought, cursor: u64, found: Found },
    Groups { cursor: u64, found: Groups },
}

async fn render(app: Arc<App>, view: Arc<View>) -> Page {
    let name = title(&view.name);
    let (info, node) = match app.watch.read_one(&view.name).await {
        Ok(Some(read)) => read,
        Ok(None) => return no_queue(name),
        Err(trouble) => {
            let main = html! { (head(&view.name)) (layout::trouble(&trouble)) };
            let status = layout::status_of_trouble(&trouble);
            return Page { status, ..Page::new(name, main) };
        }
    };
    let shows = read(&app, &node, &view, &info).await;
    let why = Why::find(&app, &view.name, &node, &info).await;
    let deployment = &app.watch.deployment;
    let forecast = forecast::read(deployment, Some(node), &view.name, now_ms()).await;
    let charts = charts::section(&app, Some(&view.name), &view.charts).await;
    let status = layout::status_of(&shows);
    let main = show(&app, &view, &info, &why, &shows, &forecast, charts);
    // To go through a large queue every two seconds would be much to ask of a server.
    let is_live = !view.part.is_some_of_them();
    Page { status, is_live, ..Page::new(name, main) }
}

fn show(
    app: &App,
    view: &View,
    info: &Info,
    why: &Why,
    shows: &Result<Shows>,
    forecast: &Result<Vec<Forecast>>,
    charts: Markup,
) -> Markup {
    let state = match &view.part {
        Part::Ordered { state, .. } => Some(state_shown(*state, info)),
        Part::Filtered { choice, .. } => Some(choice.state),
        Part::Sought { .. } | Part::Groups { .. } => None,
    };
    html! {
        (head(&view.name))
        (why.line(&view.name, info))
        @if view.part.is_some_of_them() { (forms::of_whole_queue(app, &view.name)) }
        @else { (forms::of_queue(app, &view.name, info, state.unwrap_or(JobState::Dead), limits::panel(app, &view.name, info))) }
        (charts)
        div.columns {
            section.jobs aria-label=(if matches!(view.part, Part::Groups { .. }) { "Groups" } else { "Jobs" }) {
                (tabs(view, info, state))
                @match shows {
                    Ok(Shows::Ordered { state, page, peeked, reasons }) => {
                        (filtered::toolbar(&view.name, &Choice::all(*state)))
                        (deaths(app, view, info, &Choice::all(*state), reasons.as_deref()))
                        (ordered(app, view, info, *state, *page, peeked))
                    }
                    Ok(Shows::Filtered { choice, from, portion, reasons }) => {
                        (filtered::toolbar(&view.name, choice))
                        (deaths(app, view, info, choice, reasons.as_deref()))
                        (filtered::page(app, &view.name, info, choice, from, portion))
                    }
                    Ok(Shows::Sought { sought, cursor, found }) => (sought_jobs(app, view, info, sought, *cursor, found)),
                    Ok(Shows::Groups { cursor, found }) => (groups::page(app, &view.name, info, *cursor, found)),
                    Err(trouble) => (layout::trouble(trouble)),
                }
            }
            aside { (facts::of(app, &view.name, info, forecast)) }
        }
        (glossary::list())
    }
}

fn no_queue(name: String) -> Page {
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        h1 { (name) }
        p.empty { "There is no such queue." }
    };
    Page { status: StatusCode::NOT_FOUND, ..Page::new(name, main) }
}

async fn read(app: &App, node: &Arc<Node>, view: &View, info: &Info) -> Result<Shows> {
    let deployment = &app.watch.deployment;
    let place = Place { deployment, node: Some(node.clone()), queue: &view.name, info };
    Ok(match &view.part {
        Part::Ordered { state, begin, page } => {
            let state = state_shown(*state, info);
            let reasons = match begin {
                Begin::First => reasons(app, &place, state, view.look).await?,
                Begin::After { .. } | Begin::From { .. } => None,
            };
            let peeked = place.peek(state, begin).await?;
            Shows::Ordered { state, page: *page, peeked, reasons }
        }
        Part::Filtered { choice, from } => {
            let reasons = match from.mark {
                None if choice.filter.is_all() => {
                    reasons(app, &place, choice.state, view.look).await?
                }
                _ => None,
            };
            let portion = filtered::read(&place, choice, from).await?;
            Shows::Filtered { choice: choice.clone(), from: from.clone(), portion, reasons }
        }
        Part::Sought { sought, cursor } => {
            let mut found = place.seek(sought, *cursor).await?;
            if *sought == Sought::Schedules {
                found.jobs.sort_by_key(|job| job.next_run().unwrap_or(u64::MAX));
            }
            Shows::Sought { sought: sought.clone(), cursor: *cursor, found }
        }
        Part::Groups { cursor } => {
            Shows::Groups { cursor: *cursor, found: place.groups(*cursor).await? }
        }
    })
}

/// Why its jobs died, above the first of its dead ones.
async fn reasons(
    app: &App,
    place: &Place<'_>,
    state: JobState,
    look: u64,
) -> Result<Option<Arc<Reasons>>> {
    if state != JobState::Dead || place.info.counts.dead < 2 {
        return Ok(None);
    }
    app.watch.deaths.read(place, look).await.map(Some)
}

fn deaths(
    app: &App,
    view: &View,
    info: &Info,
    choice: &Choice,
    reasons: Option<&Reasons>,
) -> Markup {
    html! { @if let Some(reasons) = reasons { (dead::show(app, &view.name, info, choice, reasons, view.look)) } }
}

fn head(name: &[u8]) -> Markup {
    html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head {
            h1 { (title(name)) }
            form.jump action="queue" method="get" {
                input type="hidden" name="name.hex" value=(Hex(name));
                input #jump name="id" placeholder="Go to an id, or find: order:*" aria-label="Go to a job by its id, or find jobs by a pattern"
                    title="With * for any text, ? for any byte and [a-z] for one of some: all jobs whose ids match"
                    maxlength="2048" autocomplete="off" required;
            }
        }
    }
}

fn tabs(view: &View, info: &Info, shown: Option<JobState>) -> Markup {
    let count = |many: u64| {
        html! { span.count title=(words::number(many)) { (words::short(many)) } }
    };
    let is_shown = |state: &JobState| *state == JobState::Held && info.counts.held == 0;
    let states = info.counts.states().chain(shown.filter(is_shown));
    let is_groups = matches!(&view.part, Part::Groups { .. })
        || matches!(&view.part, Part::Sought { sought: Sought::Group(_), .. });
    let is_schedules = matches!(&view.part, Part::Sought { sought: Sought::Schedules, .. });
    html! {
        nav.tabs aria-label="States" {
            @for state in states {
                a.{ "is-" (state.name()) }.zero[info.counts.of(state) == 0] href=(layout::state_link(&view.name, state)) title=(meaning(state))
                    aria-current=[(Some(state) == shown).then_some("page")] {
                    (state.name()) " " (count(info.counts.of(state)))
                }
            }
            @if info.schedules > 0 || is_schedules {
                a.schedules href=(sought_link(&view.name, ("tab", b"schedules"), 0))
                    aria-current=[is_schedules.then_some("page")] {
                    "schedules " (count(info.schedules))
                }
            }
            @if info.groups > 0 || is_groups {
                a.groups href=(groups::page_link(&view.name, 0)) aria-current=[is_groups.then_some("page")] {
                    "groups " (count(info.groups))
                }
            }
        }
    }
}

fn ordered(
    app: &App,
    view: &View,
    info: &Info,
    state: JobState,
    page: u64,
    peeked: &Peeked,
) -> Markup {
    let many = info.counts.of(state);
    html! {
        @if peeked.is_anew {
            p.note { "The job that this page began behind has left: these are the first ones now." }
        } @else {
            p.note { (meaning(state)) " " (order(state, info)) }
        }
        @if peeked.jobs.is_empty() {
            p.empty { @if many == 0 { "No job is " (state.name()) "." } @else { "No jobs on this page." } }
        } @else {
            (selection::table(app, &view.name, info, &Choice::all(state), &peeked.jobs))
        }
        (pager(view, state, if peeked.is_anew { 0 } else { page }, peeked.next.as_ref(), many))
    }
}

fn order(state: JobState, info: &Info) -> &'static str {
    match state {
        JobState::Ready if info.groups > 0 => {
            "They leave by priority (the lowest number first), due time, order of scheduling; those of \
            groups are shown behind the others, and take turns as they leave."
        }
        JobState::Ready => {
            "They leave by priority (the lowest number first), due time, order of scheduling."
        }
        JobState::Delayed => "The next one is first.",
        JobState::Reserved => "The lease that ends next is first.",
        JobState::Dead => "Those that died first are first.",
        JobState::Done => "The one that goes next is first.",
        JobState::Held => {
            "Those that were added first are first."
        }
    }
}

fn meaning(state: JobState) -> &'static str {
    match state {
        JobState::Ready => glossary::READY,
        JobState::Delayed => glossary::DELAYED,
        JobState::Reserved => glossary::RESERVED,
        JobState::Dead => glossary::DEAD,
        JobState::Done => glossary::DONE,
        JobState::Held => glossary::HELD,
    }
}

/// A page says where the next one begins, and nothing says where the one before did: board.js
/// remembers.
fn pager(view: &View, state: JobState, page: u64, next: Option<&Begin>, many: u64) -> Markup {
    html! {
        @if page > 0 || next.is_some() {
            nav.pager aria-label="Pages" {
                @if page > 0 {
                    a.first href=(layout::state_link(&view.name, state)) { "⇤ first" }
                    a rel="prev" data-came-from hidden { "← previous" }
                }
                span { "page " (words::number(page.saturating_add(1))) ", " (words::jobs(many)) " in all" }
                @if let Some(begin) = next {
                    a rel="next" href=(page_link(&view.name, state, begin, page.saturating_add(1))) { "next →" }
                }
            }
        }
    }
}

fn sought_jobs(
    app: &App,
    view: &View,
    info: &Info,
    sought: &Sought,
    cursor: u64,
    found: &Found,
) -> Markup {
    let (name, jobs) = (&view.name, &found.jobs);
    let what: (&str, &[u8]) = match sought {
        Sought::Ids(pattern) => ("match", pattern),
        Sought::Schedules => ("tab", b"schedules"),
        Sought::Group(group) => {
            return group_jobs::page(app, name, info, What::Group(group), &view.seen, found)
        }
        Sought::Text(text) => {
            return group_jobs::page(app, name, info, What::Text(text), &view.seen, found)
        }
    };
    html! {
        p.note { @match sought {
            Sought::Ids(pattern) => { "Jobs in any state whose ids match " code { (Shown(pattern)) } ", in no order. "
                a href=(layout::queue_link(name)) { "All jobs" } },
            Sought::Schedules => { "Jobs that come back. On each page those that run next are first. "
                a href=(link("schedules", &[("find", Shown(name).to_string().as_bytes())])) { "Run, pause or change them" } },
            Sought::Group(_) | Sought::Text(_) => {},
        } }
        @if jobs.is_empty() {
            p.empty { @if found.next.is_some() { "None so far: there are more jobs to look through." }
                @else if cursor > 0 { "There are no more." } @else { "There are none." } }
        } @else {
            @match sought {
                Sought::Ids(_) | Sought::Group(_) | Sought::Text(_) => (list::of_any_state(name, jobs, now_ms())),
                Sought::Schedules => (list::of_schedules(name, jobs, now_ms())),
            }
        }
        @if cursor > 0 || found.next.is_some() {
            nav.pager aria-label="Pages" {
                @if cursor > 0 {
                    a.first href=(sought_link(name, what, 0)) { "⇤ first" }
                    a rel="prev" data-came-from hidden { "← previous" }
                }
                @if let Some(next) = found.next { a rel="next" href=(sought_link(name, what, next)) { "go on →" } }
            }
        }
    }
}
