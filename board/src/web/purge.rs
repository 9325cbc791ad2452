//! Before jobs of a state are purged: how many, which, and a field for typing that they shall go.

use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::origin::opened_here;
use super::{fields, forms, layout, list, selection, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{link, title, Fields};
use crate::server::job::Job;
use crate::server::jobs::Place;
use crate::server::queue::State as JobState;
use crate::server::Result;
use crate::watch::now_ms;

/// How many of the jobs are listed.
const LISTED: usize = 20;

/// How many jobs a purge is about.
enum Extent {
    Exactly(u64),
    /// So many of the first ones that were looked at.
    AtLeast(u64),
}

/// Which jobs a form is about.
struct Asked {
    state: JobState,
    /// Only those that have been in it for so long, in milliseconds.
    older: Option<u64>,
    /// When the page was made.
    seen: u64,
}

impl Asked {
    fn of(fields: &Fields) -> Option<Asked> {
        let state = fields.get("state").and_then(JobState::named)?;
        let unit = match fields.text("older-unit") {
            "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => 1_000,
        };
        let older = fields.number("older").filter(|older| *older > 0 && state.has_age());
        let older = older.and_then(|older| older.checked_mul(unit));
        Some(Asked { state, older, seen: now_ms() })
    }

    fn has(&self, job: &Job) -> bool {
        let Some(older) = self.older else { return true };
        job.old_since().is_some_and(|since| since <= self.seen.saturating_sub(older))
    }
}

/// What a purge will remove.
pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let (Some(queue), Some(asked)) = (fields.bytes("queue"), Asked::of(&fields)) else {
        return Redirect::to("./").into_response();
    };
    if let Err(refusal) = opened_here(&app, &headers, &fields, Verb::Purge, &queue) {
        return *refusal;
    }
    let shown = look(&app, &queue, &asked).await;
    layout::before(&app, &queue, "Purge", "Purge", shown)
}

async fn look(app: &App, queue: &[u8], asked: &Asked) -> Result<Markup> {
    let (info, node) = selection::queue_of(app, queue).await?;
    let place = selection::place(app, queue, &info, node);
    let many = info.counts.of(asked.state);
    let extent = match asked.older {
        None => Extent::Exactly(many),
        Some(_) => match place.count(asked.state, |job| asked.has(job)).await? {
            (old, true) => Extent::Exactly(old),
            (old, false) => Extent::AtLeast(old),
        },
    };
    let first = first(&place, asked).await?;
    Ok(confirm(app, queue, asked, &extent, &first))
}

/// The first ones that would go.
async fn first(place: &Place<'_>, asked: &Asked) -> Result<Vec<Job>> {
    let many = LISTED.min(crate::server::jobs::page_size(place.info));
    let jobs = place.first(asked.state, many).await?;
    Ok(jobs.into_iter().filter(|job| asked.has(job)).collect())
}

fn confirm(app: &App, queue: &[u8], asked: &Asked, extent: &Extent, first: &[Job]) -> Markup {
    let (at_least, many, most) = match extent {
        Extent::Exactly(many) => ("", *many, *many),
        Extent::AtLeast(many) => ("at least ", *many, u64::MAX),
    };
    let Asked { state, older, seen } = asked;
    let age = older.map(|ms| format!(" for {} or longer", words::span(ms))).unwrap_or_default();
    html! {
        p.lead {
            "This removes " (at_least) strong #extent { (words::jobs(many)) } " of " strong { (title(queue)) }
            " in state " strong { (state.name()) } (age) ", for good."
        }
        @if most > 0 {
            form.panel action="act" method="post" {
                (forms::hidden(app, Verb::Purge, queue, None))
                input type="hidden" name="state" value=(state.name());
                input type="hidden" name="count" value=(most);
                input type="hidden" name="older" value=(older.unwrap_or(0));
                input type="hidden" name="seen" value=(seen);
                label { "To confirm, type the queue's name: " (title(queue))
                    input #confirm name="confirm" autocomplete="off" required;
                }
                button.danger { "Purge" }
                a href=(link("queue", &[("name", queue), ("state", state.name().as_bytes())])) { "Back" }
            }
            @if !first.is_empty() {
                @if (first.len() as u64) < many { p.note { "Some of them:" } }
                (list::to_look_at(queue, *state, first, now_ms()))
            }
        }
    }
}
