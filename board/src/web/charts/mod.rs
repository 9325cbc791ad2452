//! Charts with axes: what became of a queue's jobs, or of those of all queues, in the last hour, day
//! or week.
//!
//! | file | what it is |
//! | --- | --- |
//! | `scale.rs` | round ticks |
//! | `plot.rs` | one chart |
//!
//! charts.js shows the figures of the time that a reader points at. Without it, and for those who
//! can't see the lines, a page has them as a table.

mod plot;
mod scale;

use std::sync::Arc;

use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::Extension;
use maud::{html, Markup};

use super::live;
use super::page::Page;
use super::{fields, layout, words, App, Shared};
use crate::args::Args;
use crate::bytes::{link, title, Fields};
use crate::prometheus::Prometheus;
use crate::server::Name;
use crate::watch::{now_ms, Figure, Span, Table};

use plot::Plot;
use scale::Scale;

const PLOTS: [Plot; 4] = [
    Plot {
        title: "Jobs",
        about: "Jobs added, handed out to workers, and finished by them",
        figures: &[
            (Figure::Added, "added"),
            (Figure::Delivered, "delivered"),
            (Figure::Finished, "finished"),
        ],
        scale: Scale::jobs,
    },
    Plot {
        title: "Failures",
        about: "Failed: attempts that a worker gave back or buried, or whose lease ran out. Dead: jobs that no attempt is left for, or that were buried",
        figures: &[(Figure::Failed, "failed"), (Figure::Dead, "dead")],
        scale: Scale::jobs,
    },
    Plot {
        title: "Lateness",
        about: "From when a job was ready until a worker got it: half of the jobs at most so late (p50), and 99 of 100 (p99). Estimated from steps of 1, 10, 100 ms and so on",
        figures: &[(Figure::LateP99, "p99"), (Figure::LateP50, "p50")],
        scale: Scale::log_time,
    },
    Plot {
        title: "Oldest ready job",
        about: "For how long the oldest ready job had been ready",
        figures: &[(Figure::OldestReady, "oldest")],
        scale: Scale::time,
    },
];

/// Where charts come from: a Prometheus, or what was seen here.
pub struct Source {
    prometheus: Option<Prometheus>,
    /// How many queues have charts here.
    max: usize,
}

impl Source {
    pub fn new(args: &Args) -> Result<Source, String> {
        let prometheus = args.prometheus.as_deref();
        let prometheus = prometheus.map(|url| Prometheus::new(url, &args.prometheus_match));
        Ok(Source { prometheus: prometheus.transpose()?, max: args.max_charts() })
    }
}

/// What charts of a queue, or of all queues, show; or in words why there are none.
async fn figures(app: &App, queue: Option<&[u8]>, span: Span) -> Result<Table, String> {
    let (watch, source) = (&app.watch, &app.board.charts);
    match &source.prometheus {
        Some(prometheus) => {
            let table = prometheus.table(&watch.name, queue, span, now_ms()).await;
            table.map_err(|why| format!("Prometheus can't be read: {why}"))
        }
        None => watch.table(queue, span).ok_or_else(|| {
            let kept = words::number(source.max as u64);
            format!("Charts are kept of {kept} other queues, in which more happens: see --history-queues.")
        }),
    }
}

/// Which charts a page shows, and where it shows others.
#[derive(Clone)]
pub struct Asked {
    span: Span,
    links: [(Span, String); 3],
}

impl Asked {
    pub fn of(path: &str, fields: &Fields) -> Asked {
        Asked {
            span: Span::named(fields.text("span")).unwrap_or(Span::Hour),
            links: Span::ALL.map(|span| (span, fields.link(path, "span", span.name()))),
        }
    }
}

/// The charts of a queue, or of all queues.
pub async fn section(app: &App, queue: Option<&[u8]>, asked: &Asked) -> Markup {
    let figures = figures(app, queue, asked.span).await;
    html! {
        section.charts aria-label="Charts" {
            div.charthead {
                h2 { "The last " (asked.span.name()) @if queue.is_none() { ", all queues" } }
                nav.spans aria-label="Span of the charts" {
                    @for (span, link) in &asked.links {
                        a href=(link) aria-current=[(*span == asked.span).then_some("true")] { (span.name()) }
                    }
                }
                a href=(table_link(queue, asked.span)) { "table" }
            }
            @match &figures {
                Ok(table) => (plots(table, asked.span)),
                Err(why) => p.note { (why) },
            }
        }
    }
}

fn plots(table: &Table, span: Span) -> Markup {
    let each = words::span(table.slot_ms);
    let of_what = format!("in the last {}", span.name());
    html! {
        div.plots tabindex="0" role="group" aria-label="Charts: the arrow keys show the figures of a time"
            data-start=(table.start_ms) data-slot=(table.slot_ms) data-slots=(table.rows.len()) {
            @for plot in &PLOTS {
                @let counts = plot.figures.iter().any(|(figure, _)| figure.is_sum());
                @let title = if counts { format!("{} in {each}", plot.title) } else { plot.title.into() };
                (plot.draw(table, &title, &of_what))
            }
            p.readout { span.when { "sums and maxima of this " (span.name()) } }
        }
    }
}

fn table_link(queue: Option<&[u8]>, span: Span) -> String {
    let mut fields: Vec<(&str, &[u8])> = queue.map(|name| ("name", name)).into_iter().collect();
    fields.push(("span", span.name().as_bytes()));
    link("figures", &fields)
}

/// The page with the table.
pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let queue = fields.bytes("name").map(Name::from);
    let asked = Asked::of("figures", &fields);
    live::serve(app, headers, None, move |app| render(app, queue.clone(), asked.clone())).await
}

async fn render(app: Arc<App>, queue: Option<Name>, asked: Asked) -> Page {
    let name = queue.as_ref().map_or("All queues".into(), |name| title(name));
    // Who may not read the queue gets no figures either.
    let read = match &queue {
        Some(queue) => app.watch.read_one(queue).await.map(|read| read.is_some()),
        None => Ok(true),
    };
    let status = match &read {
        Ok(false) => StatusCode::NOT_FOUND,
        read => layout::status_of(read),
    };
    let figures = match read {
        Ok(true) => figures(&app, queue.as_deref(), asked.span).await,
        Ok(false) => Err("There is no such queue.".into()),
        Err(trouble) => Err(trouble.to_string()),
    };
    let up = queue.as_ref().map_or("./".into(), |name| layout::queue_link(name));
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" }
            @if queue.is_some() { " / " a rel="up" href=(up) { (name) } }
        }
        h1 { (name) ": the last " (asked.span.name()) }
        nav.spans aria-label="Span of the table" {
            @for (span, link) in &asked.links {
                a href=(link) aria-current=[(*span == asked.span).then_some("page")] { (span.name()) }
            }
        }
        @match &figures {
            Ok(table) => (rows(table)),
            Err(why) => p.empty { (why) },
        }
    };
    Page { status, ..Page::still(name, main) }
}

/// The latest first, without times in which dq-board didn't look.
fn rows(table: &Table) -> Markup {
    let now = now_ms();
    let starts = (0u64..).map(|slot| table.start_ms + slot * table.slot_ms);
    let known: Vec<_> =
        starts.zip(&table.rows).filter(|(_, row)| row.iter().any(Option::is_some)).collect();
    html! {
        p.note { "Each row is " (words::span(table.slot_ms)) ", the latest first. Ready jobs and the oldest one's age are the most that were seen." }
        @if known.is_empty() { p.empty { "Nothing is known yet." } } @else {
            table.figures {
                thead { tr {
                    th scope="col" { "from" }
                    @for figure in Figure::ALL { th.num scope="col" { (figure.name()) } }
                } }
                tbody {
                    @for (start, row) in known.iter().rev() {
                        tr data-key=(start) {
                            th scope="row" { (words::moment(*start, now)) }
                            @for (figure, one) in Figure::ALL.iter().zip(row.iter()) {
                                td.num.zero[one.is_none()] data-label=(figure.name()) { (plot::value(*figure, *one)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
