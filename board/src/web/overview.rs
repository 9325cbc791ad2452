//! All queues.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::Extension;
use maud::{html, Markup};

use super::live;
use super::page::Page;
use super::{chart, charts, fields, find, glossary, layout, why, words, App, Shared};
use crate::bytes::{link, title, Fields, Shown};
use crate::server::queue::State as Job;
use crate::server::Name;
use crate::watch::{now_ms, Known, Reading, Slot};

const ROWS: usize = 50;

pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let view = Arc::new(View::of(&fields(query)));
    live::serve(app, headers, None, move |app| render(app, view.clone())).await
}

/// What is asked for.
#[derive(Clone)]
struct View {
    find: String,
    sort: Sort,
    page: usize,
    charts: charts::Asked,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Those that need a look first, the others by name.
    Ill,
    Name,
    Jobs(Job),
    Oldest,
    LateP99,
    Rate,
}

impl Sort {
    const ALL: [Sort; 11] = [
        Sort::Ill,
        Sort::Name,
        Sort::Jobs(Job::Ready),
        Sort::Jobs(Job::Delayed),
        Sort::Jobs(Job::Reserved),
        Sort::Jobs(Job::Dead),
        Sort::Jobs(Job::Done),
        Sort::Jobs(Job::Held),
        Sort::Oldest,
        Sort::LateP99,
        Sort::Rate,
    ];

    fn name(self) -> &'static str {
        match self {
            Sort::Ill => "ill",
            Sort::Name => "name",
            Sort::Jobs(state) => state.name(),
            Sort::Oldest => "oldest",
            Sort::LateP99 => "late",
            Sort::Rate => "rate",
        }
    }

    /// The most come first.
    fn of(self, reading: &Reading) -> u64 {
        let Some(info) = &reading.info else { return 0 };
        match self {
            Sort::Ill => u64::from(reading.illness),
            Sort::Name => 0,
            Sort::Jobs(state) => info.counts.of(state),
            Sort::Oldest => info.oldest_ready_ms.map_or(0, |ms| ms + 1),
            Sort::LateP99 => info.lateness.p99_ms.map_or(0, |ms| ms + 1),
            Sort::Rate => reading.rates.map_or(0, |rates| (rates.popped * 1_000.0) as u64),
        }
    }
}

impl View {
    fn of(fields: &Fields) -> View {
        let sort = Sort::ALL.into_iter().find(|sort| sort.name() == fields.text("sort"));
        let page = fields.number("page").unwrap_or(0).min(1 << 32) as usize;
        View {
            find: fields.text("find").trim().to_string(),
            sort: sort.unwrap_or(Sort::Ill),
            page,
            charts: charts::Asked::of("./", fields),
        }
    }

    fn link(&self, sort: Sort, page: usize) -> String {
        let page = page.to_string();
        let mut fields: Vec<(&str, &[u8])> = Vec::new();
        if !self.find.is_empty() {
            fields.push(("find", self.find.as_bytes()));
        }
        if sort != Sort::Ill {
            fields.push(("sort", sort.name().as_bytes()));
        }
        if page != "0" {
            fields.push(("page", page.as_bytes()));
        }
        link("./", &fields)
    }

    /// The names on the page, and how many there are on all pages.
    fn choose(&self, known: &Known) -> (Vec<Name>, usize) {
        let find = self.find.to_lowercase();
        let fits = |name: &Name| find.is_empty() || has(name, &find);
        let skip = self.page.saturating_mul(ROWS);
        if find.is_empty() {
            let names: Option<Vec<Name>> = match self.sort {
                Sort::Ill => Some(known.ill_first().skip(skip).take(ROWS).cloned().collect()),
                Sort::Name => {
                    let names = known.iter().skip(skip).take(ROWS);
                    Some(names.map(|(name, _)| name.clone()).collect())
                }
                _ => None,
            };
            if let Some(names) = names {
                return (names, known.sums.queues);
            }
        }
        let mut chosen: Vec<_> = known
            .iter()
            .filter(|(name, _)| fits(name))
            .map(|(name, reading)| (Reverse(self.sort.of(reading)), name))
            .collect();
        chosen.sort_unstable();
        (
            chosen.iter().skip(skip).take(ROWS).map(|(_, name)| (*name).clone()).collect(),
            chosen.len(),
        )
    }
}

/// Whether a name, as it is shown, has this lower-case text in it. Plain names are many, and shown
/// as they are.
pub fn has(name: &[u8], find: &str) -> bool {
    if name.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\') {
        return name.windows(find.len()).any(|part| part.eq_ignore_ascii_case(find.as_bytes()));
    }
    Shown(name).to_string().to_lowercase().contains(find)
}

async fn render(app: Arc<App>, view: Arc<View>) -> Page {
    let (names, many) = view.choose(&app.watch.known());
    app.watch.refresh(&names).await;
    let charts = if view.find.is_empty() && view.page == 0 {
        charts::section(&app, None, &view.charts).await
    } else {
        html! {}
    };
    let known = app.watch.known();
    let main = html! {
        h1.unseen { "Queues" }
        (sums(&known, &view))
        (charts)
        @if !view.find.is_empty() {
            p.note { (words::many(many as u64, "queue")) " with “" (view.find) "” in the name. " a href="./" { "All queues" } " · "
                a #find-id href=(find::find_link(view.find.as_bytes())) { "Find the job with this id in all queues" } }
        }
        @if names.is_empty() { (nothing(&app, &known, &view)) } @else { (table(&known, &names, &view)) }
        @if view.sort == Sort::Ill && known.sums.queues > 1 {
            p.note { "Queues that need a look are first. A click on a heading sorts them; " a href=(view.link(Sort::Name, 0)) { "by name" } "." }
        }
        (pager(&view, many))
        (notes(&known))
        (glossary::list())
    };
    Page::new("Queues".into(), main)
}

/// A number of jobs leads to the queues that have most of them.
fn sums(known: &Known, view: &View) -> Markup {
    let sums = &known.sums;
    html! {
        dl.sums {
            div { dt { "queues" } dd { (words::number(sums.queues as u64 + known.left_out())) } }
            @for state in sums.counts.states() {
                div.{ "is-" (state.name()) }.zero[sums.counts.of(state) == 0] { dt { (state.name()) } dd {
                    @let many = sums.counts.of(state);
                    @if many == 0 { "0" } @else {
                        a href=(view.link(Sort::Jobs(state), 0)) title={ (words::number(many)) ": the queues that have most of them first" } { (words::short(many)) }
                    }
                } }
            }
            div { dt { "added a second" } dd { (words::rate(sums.rates.added)) } }
            div { dt title=(glossary::HANDED_OUT) { "handed out a second" } dd { (words::rate(sums.rates.popped)) } }
            div { dt { "waiting workers" } dd { (words::short(sums.waiting_consumers)) } }
        }
    }
}

fn table(known: &Known, names: &[Name], view: &View) -> Markup {
    let now = now_ms();
    let has_held = known.sums.counts.held > 0;
    let heading = |sort: Sort, text: &str, class: &str| {
        html! {
            th.{ (class) } scope="col" title=[meaning(sort)] aria-sort=[(view.sort == sort).then_some(
                if sort == Sort::Name { "ascending" } else { "descending" })] {
                a href=(view.link(sort, 0)) { (text) }
            }
        }
    };
    html! {
        table.queues {
            thead { tr {
                (heading(Sort::Name, "queue", "name"))
                (heading(Sort::Jobs(Job::Ready), "ready", "num"))
                th.line scope="col" { span.unseen { "ready in the last hour" } }
                (heading(Sort::Jobs(Job::Delayed), "delayed", "num"))
                (heading(Sort::Jobs(Job::Reserved), "reserved", "num"))
                (heading(Sort::Jobs(Job::Dead), "dead", "num"))
                (heading(Sort::Jobs(Job::Done), "done", "num"))
                @if has_held { (heading(Sort::Jobs(Job::Held), "held", "num")) }
                (heading(Sort::Oldest, "oldest ready", "num"))
                th.num scope="col" title=(LATE_P50) { "late p50" }
                (heading(Sort::LateP99, "late p99", "num"))
                (heading(Sort::Rate, "out/s", "num"))
                th.line scope="col" { span.unseen { "handed out in the last hour" } }
            } }
            tbody {
                @for name in names {
                    @if let Some(reading) = known.get(name) { (row(known, name, reading, now, has_held)) }
                }
            }
        }
    }
}

const LATE_P50: &str = "Half of the jobs were ready for at most so long before a worker got them";

fn meaning(sort: Sort) -> Option<&'static str> {
    match sort {
        Sort::Oldest => Some("For how long the oldest ready job has been ready"),
        Sort::LateP99 => {
            Some("99 of 100 jobs were ready for at most so long before a worker got them")
        }
        Sort::Rate => Some("Jobs that workers got, a second"),
        Sort::Ill | Sort::Name | Sort::Jobs(_) => None,
    }
}

fn row(known: &Known, name: &Name, reading: &Reading, now: u64, has_held: bool) -> Markup {
    let info = reading.info.as_ref();
    let count = |state: Job| {
        let many = info.map(|info| info.counts.of(state));
        html! {
            td.num.{ "is-" (state.name()) }.zero[many == Some(0)] data-label=(state.name())
                title=[many.filter(|many| *many >= 100_000).map(words::number)] {
                @match many {
                    Some(0) => "0",
                    Some(many) => a href=(layout::state_link(name, state)) { (words::short(many)) },
                    None => "…",
                }
            }
        }
    };
    let late = |label: &str, ms: Option<u64>| {
        html! { td.num.zero[ms.is_none()] data-label=(label) { (ms.map_or("–".into(), words::span)) } }
    };
    let line = |what: &str, pick: fn(Slot) -> Option<u32>| {
        html! { td.line { @if let Some(history) = &reading.history {
            (chart::spark(history.slots(now).map(pick), what))
        } } }
    };
    html! {
        tr data-key=(Shown(name)) {
            th.name scope="row" {
                a href=(layout::queue_link(name)) { (title(name)) }
                @if reading.is_denied { span.mark title="dq-board's user lacks the rights" { "no permission" } }
                @if let Some(info) = info { " " (why::marks(info, &known.health(&reading.node), reading.rates)) }
            }
            (count(Job::Ready))
            (line("ready", |slot| slot.ready.get()))
            (count(Job::Delayed)) (count(Job::Reserved)) (count(Job::Dead)) (count(Job::Done))
            @if has_held { (count(Job::Held)) }
            (late("oldest ready", info.and_then(|info| info.oldest_ready_ms)))
            (late("late p50", info.and_then(|info| info.lateness.p50_ms)))
            (late("late p99", info.and_then(|info| info.lateness.p99_ms)))
            td.num data-label="out/s" { (reading.rates.map_or("…".into(), |rates| words::rate(rates.popped))) }
            (line("handed out", |slot| slot.popped.get()))
        }
    }
}

fn nothing(app: &App, known: &Known, view: &View) -> Markup {
    html! {
        p.empty {
            @if app.watch.outage().is_some() { "No queue is known: see above." }
            @else if !view.find.is_empty() { "No such queue." }
            @else if view.page > 0 { "There are no more queues." }
            @else if known.has_passed { "There are no queues yet. " code { "DQ.ADD mail * \"Hello\"" } " makes one." }
            @else { "Looking for queues…" }
        }
    }
}

fn pager(view: &View, many: usize) -> Markup {
    let first = view.page.saturating_mul(ROWS);
    html! {
        @if many > ROWS || view.page > 0 {
            nav.pager aria-label="Pages" {
                @if view.page > 0 { a rel="prev" href=(view.link(view.sort, view.page - 1)) { "← previous" } }
                span { (words::number(first as u64 + 1)) " to " (words::number((first + ROWS).min(many) as u64))
                    " of " (words::number(many as u64)) }
                @if first + ROWS < many { a rel="next" href=(view.link(view.sort, view.page + 1)) { "next →" } }
            }
        }
    }
}

fn notes(known: &Known) -> Markup {
    html! {
        footer {
            @if known.left_out() > 0 {
                p { "Besides, " (words::many(known.left_out(), "queue"))
                    @if known.left_out() == 1 { " is" } @else { " are" } " only counted: see --max-queues." }
            }
            @if known.sums.read < known.sums.queues {
                p { (words::number(known.sums.read as u64)) " of " (words::many(known.sums.queues as u64, "queue"))
                    " read so far: sums grow until all are." }
            }
            @for server in &known.servers {
                p { (server.address) ": " (server.version)
                    @if let Some(version) = &server.dq_version { ", dq " (version) } }
            }
            p { a href="server" { "The server" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_names_are_found_as_they_are_shown() {
        assert!(has(b"Mail:EU", "mail:e") && has(b"mail", "mail"));
        assert!(!has(b"mail", "mails") && !has(b"", "a"));
        assert!(has("GRÜSSE".as_bytes(), "grü"));
        assert!(has(b"caf\xe9", "\\xe9") && has(b"a\\b", "a\\\\b"));
    }
}
