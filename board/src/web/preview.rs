//! Before something is done to a selection: to how many jobs, and which. What is done then is done
//! to those that are still as this page says.

use std::time::Instant;

use axum::body::Bytes;
use axum::extract::RawQuery;
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::choice::{Choice, Progress};
use super::page::Page;
use super::selection::{
    last_death, offer, place, queue_of, still_dead, ticked, value_of, Offer, TICKED_MAX,
};
use super::{fields, forms, layout, list, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{title, Fields};
use crate::server::jobs::{reach, Begin, Place, SEEK_WITHIN};
use crate::server::queue::{Info, State as JobState};
use crate::server::walk::{Mark, Order, Walk};
use crate::server::Result;
use crate::watch::now_ms;

/// How many of the ticked jobs are listed.
const LISTED: usize = 50;

/// What will be done to all that fit.
pub async fn preview_all(app: Shared, query: RawQuery) -> Response {
    preview(app, fields(query), Which::All).await
}

/// What will be done to the ticked ones.
pub async fn preview_ticked(app: Shared, body: Bytes) -> Response {
    preview(app, Fields::parse(&body), Which::Ticked).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Ticked,
}

async fn preview(Extension(app): Shared, fields: Fields, which: Which) -> Response {
    let (Some(queue), Some(offer)) =
        (fields.bytes("queue"), offer(fields.get("do").and_then(Verb::named)))
    else {
        return Redirect::to("./").into_response();
    };
    let view = Preview { app: &app, queue: &queue, fields: &fields, offer };
    let shown = match app.may(offer.verb) {
        false => Ok(html! { p.banner { "You may not do that here." } }),
        true => match which {
            Which::All => view.all().await,
            Which::Ticked => view.ticked().await,
        },
    };
    let choice = Choice::of(JobState::Dead, &fields);
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" } " / " a href=(layout::queue_link(&queue)) { (title(&queue)) }
            " / " a rel="up" href=(choice.link(&queue)) { "dead jobs" }
        }
        div.head { h1 { (offer.button) } }
        (shown.unwrap_or_else(|trouble| layout::trouble(&trouble)))
    };
    layout::answer(&*app, &Page::still(offer.button.into(), main), fields.number("outcome"))
}

struct Preview<'a> {
    app: &'a App,
    queue: &'a [u8],
    fields: &'a Fields,
    offer: &'static Offer,
}

impl Preview<'_> {
    async fn ticked(&self) -> Result<Markup> {
        let choice = Choice::of(JobState::Dead, self.fields);
        let back = choice.link(self.queue);
        let ticked = ticked(self.fields).unwrap_or_default();
        if ticked.is_empty() || ticked.len() > TICKED_MAX {
            let words = match ticked.is_empty() {
                true => "No job was ticked. ",
                false => "That is more than can be ticked: use a filter, and all that fit it. ",
            };
            return Ok(html! { p.lead #extent { (words) a href=(back) { "Back" } } });
        }
        let (info, node) = queue_of(self.app, self.queue).await?;
        let place = place(self.app, self.queue, &info, node);
        let jobs = still_dead(&place, &ticked).await?;
        let gone = ticked.len().saturating_sub(jobs.len()) as u64;
        let fields = html! {
            input type="hidden" name="selected" value="ticked";
            (choice.hidden())
            @for job in &jobs { input type="hidden" name="job" value=(value_of(job)); }
        };
        let listed = jobs.get(..LISTED).unwrap_or(&jobs);
        Ok(html! {
            (self.confirm(jobs.len() as u64, "", "ticked dead", fields, &back))
            @if gone > 0 { p.note { (words::jobs(gone)) " that you ticked: not dead any more, or dead again since. Left alone." } }
            (list::to_look_at(self.queue, JobState::Dead, listed, now_ms()))
        })
    }

    async fn all(&self) -> Result<Markup> {
        let choice = Choice::of_dead(self.fields);
        let back = Choice::of(JobState::Dead, self.fields).link(self.queue);
        let (info, node) = queue_of(self.app, self.queue).await?;
        let place = place(self.app, self.queue, &info, node);
        let until = match self.fields.number("until") {
            Some(until) => until,
            None => last_death(&place).await?.unwrap_or(0),
        };
        let from = Progress::of(self.fields);
        let mark = from.mark.unwrap_or(Mark::Begin(Begin::First));
        let tally = tally(&place, &choice, until, mark).await?;
        let (looked, found) = (from.looked + tally.looked, from.found + tally.fit);
        let next = Progress { mark: tally.next, looked, found, ..Progress::default() };
        let until = until.to_string();
        let fields = html! {
            input type="hidden" name="selected" value="all";
            input type="hidden" name="until" value=(until);
            (choice.hidden())
        };
        let at_least = if next.mark.is_some() { "At least " } else { "" };
        let what = choice.filter_words();
        Ok(html! {
            (self.confirm(found, at_least, "dead", fields, &back))
            @if !what.is_empty() { p.note { "These are the dead jobs" (what) "." } }
            p #progress.note role="status" { (progress(&next, &info)) " Jobs that die from now on are left alone." }
            @if next.mark.is_some() {
                @let mut all: Vec<(&str, &[u8])> = vec![("queue", self.queue), ("do", self.offer.verb.name().as_bytes()), ("until", until.as_bytes())];
                @let () = all.extend(choice.fields());
                p { a #go-on data-goes-on href=(next.link("selected", &all)) { "count on →" } }
            }
        })
    }

    fn confirm(
        &self,
        many: u64,
        at_least: &str,
        which: &str,
        fields: Markup,
        back: &str,
    ) -> Markup {
        let jobs = if many == 1 { "job" } else { "jobs" };
        let is_danger = self.offer.verb == Verb::Del;
        html! {
            p.lead { (at_least) strong #extent { (words::number(many)) } " " (which) " " (jobs) " of "
                strong { (title(self.queue)) } " " (self.offer.will) }
            form #confirm.panel action="act" method="post" {
                (forms::hidden(self.app, self.offer.verb, self.queue, None))
                (fields)
                @if many > 0 || !at_least.is_empty() {
                    button.danger[is_danger] autofocus[!is_danger] {
                        (self.offer.button) " " @if at_least.is_empty() { (words::number(many)) } @else { "all that fit" }
                    }
                }
                a href=(back) { "Back" }
            }
        }
    }
}

fn progress(next: &Progress, info: &Info) -> String {
    let looked = words::number(next.looked);
    match next.mark {
        Some(_) => {
            let many = words::number(info.counts.dead.max(next.looked));
            format!("{looked} of {many} dead jobs looked at so far.")
        }
        None => format!("{looked} dead jobs looked at."),
    }
}

/// How many jobs fit, among those that died up to a time.
struct Tally {
    fit: u64,
    looked: u64,
    /// `None` when all were looked at.
    next: Option<Mark>,
}

async fn tally(place: &Place<'_>, choice: &Choice, until: u64, from: Mark) -> Result<Tally> {
    let mut walk = Walk::new(place, JobState::Dead, Order::Oldest, from, reach(place.info));
    let (mut fit, mut looked, began) = (0, 0, Instant::now());
    while walk.mark.is_some() && began.elapsed() < SEEK_WITHIN {
        let batch = walk.batch().await?;
        let old = batch.iter().take_while(|job| job.since <= Some(until));
        let (mut seen, many) = (0, batch.len());
        old.for_each(|job| {
            seen += 1;
            fit += u64::from(choice.filter.fits(job));
        });
        looked += seen as u64;
        if seen < many {
            walk.mark = None;
        }
    }
    Ok(Tally { fit, looked, next: walk.mark })
}
