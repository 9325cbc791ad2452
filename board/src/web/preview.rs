//! Before something is done to a selection: to how many jobs, and which. What is done then is done
//! to those that are still as this page says.

use std::time::Instant;

use axum::body::Bytes;
use axum::extract::RawQuery;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::choice::{Choice, Progress};
use super::origin::opened_here;
use super::page::Page;
use super::selection::{
    self, beginning, offer, place, queue_of, still_there, ticked, value_of, Extent, Offer,
    TICKED_MAX,
};
use super::{fields, forms, layout, list, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{title, Fields};
use crate::server::job::Job;
use crate::server::jobs::{reach, Place, SEEK_WITHIN};
use crate::server::queue::{Info, State as JobState};
use crate::server::walk::{Mark, Order, Walk};
use crate::server::Result;
use crate::watch::now_ms;

/// How many of the jobs are listed.
const LISTED: usize = 50;

/// What will be done to all that fit.
pub async fn preview_all(app: Shared, headers: HeaderMap, query: RawQuery) -> Response {
    preview(app, headers, fields(query), Which::All).await
}

/// What will be done to the ticked ones.
pub async fn preview_ticked(app: Shared, headers: HeaderMap, body: Bytes) -> Response {
    preview(app, headers, Fields::parse(&body), Which::Ticked).await
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Ticked,
}

async fn preview(
    Extension(app): Shared,
    headers: HeaderMap,
    fields: Fields,
    which: Which,
) -> Response {
    let choice = Choice::selected(&fields);
    let verb = fields.get("do").unwrap_or_default();
    let (Some(queue), Some(offer)) =
        (fields.bytes("queue"), offer(choice.state, Verb::named(verb)))
    else {
        return Redirect::to("./").into_response();
    };
    if let Err(refusal) = opened_here(&app, &headers, &fields, offer.verb, &queue) {
        return *refusal;
    }
    let view = Preview { app: &app, queue: &queue, fields: &fields, offer, choice: &choice };
    let shown = match which {
        Which::All => view.all().await,
        Which::Ticked => view.ticked().await,
    };
    let status = layout::status_of(&shown);
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" } " / " a href=(layout::queue_link(&queue)) { (title(&queue)) }
            " / " a rel="up" href=(choice.link(&queue)) { (choice.state.name()) " jobs" }
        }
        div.head { h1 { (offer.button) } }
        (shown.unwrap_or_else(|trouble| layout::trouble(&trouble)))
    };
    let page = Page { status, ..Page::confirmation(offer.button.into(), main) };
    layout::answer(&*app, &page, fields.number("outcome"))
}

struct Preview<'a> {
    app: &'a App,
    queue: &'a [u8],
    fields: &'a Fields,
    offer: &'static Offer,
    choice: &'a Choice,
}

impl Preview<'_> {
    async fn ticked(&self) -> Result<Markup> {
        let (choice, state) = (self.choice, self.choice.state);
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
        let jobs = still_there(&place, state, &ticked).await?;
        let gone = ticked.len().saturating_sub(jobs.len()) as u64;
        let fields = html! {
            input type="hidden" name="selected" value="ticked";
            (choice.hidden())
            @for job in &jobs { input type="hidden" name="job" value=(value_of(job)); }
        };
        let listed = jobs.get(..LISTED).unwrap_or(&jobs);
        let which = format!("ticked {}", state.name());
        Ok(html! {
            (self.confirm(jobs.len() as u64, "", &which, fields, &back))
            @if gone > 0 { p.note { (words::jobs(gone)) " that you ticked: not " (state.name()) " any more, or "
                (state.name()) " again since. Left alone." } }
            (list::to_look_at(self.queue, state, listed, now_ms()))
        })
    }

    async fn all(&self) -> Result<Markup> {
        let choice = Choice::acted_on(self.fields);
        let (back, state) = (self.choice.link(self.queue), choice.state);
        let (info, node) = queue_of(self.app, self.queue).await?;
        let place = place(self.app, self.queue, &info, node);
        let until = match self.fields.number("until") {
            Some(until) => until,
            None => selection::last(self.app, &place, state).await?,
        };
        let most = self.fields.number("most").filter(|most| *most > 0);
        let from = Progress::of(self.fields);
        let left = most.map_or(u64::MAX, |most| most.saturating_sub(from.found));
        let extent = Extent { until, most: left };
        let mark = from.mark.clone().unwrap_or(Mark::first(state));
        let tally = tally(&place, &choice, &extent, mark, from.kept).await?;
        let (looked, found) = (from.looked + tally.looked, from.found + tally.fit);
        let kept = from.kept + tally.listed.len() as u64;
        let next = Progress { mark: tally.next, looked, found, kept, ..Progress::default() };
        let until = tally.until.to_string();
        let most = most.map(|most| most.to_string());
        let fields = html! {
            input type="hidden" name="selected" value="all";
            input type="hidden" name="until" value=(until);
            @if let Some(most) = &most { input type="hidden" name="most" value=(most); }
            (choice.hidden())
        };
        let at_least = if next.mark.is_some() { "At least " } else { "" };
        let what = choice.filter_words();
        Ok(html! {
            (self.confirm(found, at_least, state.name(), fields, &back))
            @if !what.is_empty() { p.note { "These are the " (state.name()) " jobs" (what) "." } }
            p #progress.note role="status" { (progress(&next, &info, state)) " " (later(state)) }
            @if next.mark.is_some() {
                @let mut all: Vec<(&str, &[u8])> = vec![("queue", self.queue), ("do", self.offer.verb.name().as_bytes()), ("until", until.as_bytes())];
                @let () = all.extend(most.iter().map(|most| ("most", most.as_bytes())));
                @let () = all.extend(choice.fields());
                p { a #go-on data-goes-on href=(next.link("selected", &all)) { "count on →" } }
            }
            @if found > kept { p.note { "The first " (words::number(kept)) " of them:" } }
            (list::to_look_at(self.queue, state, &tally.listed, now_ms()))
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
                    button.danger[is_danger] {
                        (self.offer.button) " " @if at_least.is_empty() { (words::number(many)) } @else { "all that fit" }
                    }
                }
                a href=(back) { "Back" }
            }
        }
    }
}

fn progress(next: &Progress, info: &Info, state: JobState) -> String {
    match next.mark {
        Some(_) => {
            let many = words::jobs_in(state, info.counts.of(state).max(next.looked));
            format!("{} of {many} looked at so far.", words::number(next.looked))
        }
        None => format!("{} looked at.", words::jobs_in(state, next.looked)),
    }
}

/// What isn't meant.
fn later(state: JobState) -> &'static str {
    match state {
        JobState::Dead => "Jobs that die from now on are left alone.",
        _ => "Jobs that come from now on are left alone.",
    }
}

/// How many jobs fit, and the first ones of them.
struct Tally {
    fit: u64,
    looked: u64,
    /// Up to when, where as many as were asked for are found before.
    until: u64,
    listed: Vec<Job>,
    /// `None` when all were looked at.
    next: Option<Mark>,
}

async fn tally(
    place: &Place<'_>,
    choice: &Choice,
    extent: &Extent,
    from: Mark,
    kept: u64,
) -> Result<Tally> {
    let mut walk = Walk::new(place, choice.state, Order::Oldest, from, reach(place.info));
    let mut tally =
        Tally { fit: 0, looked: 0, until: extent.until, listed: Vec::new(), next: None };
    let room = LISTED.saturating_sub(usize::try_from(kept).unwrap_or(LISTED));
    let began = Instant::now();
    while walk.mark.is_some() && began.elapsed() < SEEK_WITHIN {
        let mut batch = walk.batch().await?;
        if extent.cut(choice.state, &mut batch) {
            walk.mark = None;
        }
        for job in batch {
            tally.looked += 1;
            if !choice.filter.fits(&job) {
                continue;
            }
            tally.fit += 1;
            let is_last = tally.fit >= extent.most;
            if is_last && choice.state == JobState::Dead {
                tally.until = job.came();
            }
            if tally.listed.len() < room {
                tally.listed.push(beginning(job));
            }
            if is_last {
                walk.mark = None;
                break;
            }
        }
    }
    tally.next = walk.mark;
    Ok(tally)
}
