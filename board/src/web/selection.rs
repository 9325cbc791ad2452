//! Dead jobs that a reader ticked, or all that fit a filter: to be kicked, deleted or downloaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use maud::{html, Markup};

use super::choice::Choice;
use super::{words, App};
use crate::args::Verb;
use crate::bytes::{link, unhex, Fields, Hex};
use crate::server::deaths::Reasons;
use crate::server::job::Job;
use crate::server::jobs::Place;
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::walk::{Mark, Order, Walk};
use crate::server::{Result, Trouble};

/// How many jobs can be ticked.
pub const TICKED_MAX: usize = 1_000;
/// How many of them are read at a time, with their bodies.
pub const TOGETHER: usize = 16;
/// What of a body is kept: enough for a list.
const BODY_MAX: usize = 4 << 10;
/// What can be done to a selection.
pub struct Offer {
    pub verb: Verb,
    pub button: &'static str,
    pub command: &'static str,
    pub will: &'static str,
    pub done: &'static str,
}

const OFFERS: [Offer; 2] = [
    Offer {
        verb: Verb::Kick,
        button: "Kick",
        command: "DQ.KICKJOB",
        will: "will be kicked: made ready now, their attempts counted from 0 again.",
        done: "Kicked",
    },
    Offer {
        verb: Verb::Del,
        button: "Delete",
        command: "DQ.DEL",
        will: "will be deleted, for good. Jobs that wait for them can't go on.",
        done: "Deleted",
    },
];

pub fn offer(verb: Option<Verb>) -> Option<&'static Offer> {
    OFFERS.iter().find(|offer| Some(offer.verb) == verb)
}

// ---- the form --------------------------------------------------------------------------------------

/// A job in a form: when it died, and its id. One that was kicked and died again is another.
pub fn value_of(job: &Job) -> String {
    format!("{}.{}", job.since.unwrap_or(0), Hex(&job.id))
}

/// Around a table of dead jobs, each of which has a box to tick.
pub fn form(app: &App, queue: &[u8], info: &Info, choice: &Choice, table: Markup) -> Markup {
    let reasons = app.watch.deaths.known(queue);
    let many = many_that_fit(info, choice, reasons.as_deref());
    let all = match many {
        Some(many) => format!("All {}", words::number(many)),
        None => "All that fit".into(),
    };
    let offers = || OFFERS.iter().filter(|offer| app.may(offer.verb));
    html! {
        form #selection action="selected" method="post" {
            input type="hidden" name="queue.hex" value=(Hex(queue));
            (choice.hidden())
            div.selection {
                div.bar role="group" aria-label="What to do with the ticked jobs" {
                    label.by-script { input #tick-all type="checkbox"; " this page" }
                    span #ticked { "Ticked" }
                    @for offer in offers() {
                        button name="do" value=(offer.verb.name()) aria-label={ (offer.button) " the ticked jobs…" } { (offer.button) "…" }
                    }
                    button formaction="jobs.ndjson" aria-label="Download the ticked jobs" title=(DOWNLOAD) { "Download" }
                }
                div.bar role="group" aria-label={ "What to do with " (all.to_lowercase()) } {
                    span #all { (all) }
                    (offers_of_all(app, queue, choice, &all.to_lowercase()))
                    a.button.all-download href=(link_of_all("jobs.ndjson", queue, choice, None)) download
                        aria-label={ "Download " (all.to_lowercase()) } title=(DOWNLOAD) { "Download" }
                }
            }
            (table)
        }
    }
}

fn link_of_all(path: &str, queue: &[u8], choice: &Choice, verb: Option<Verb>) -> String {
    let mut fields: Vec<(&str, &[u8])> = vec![("queue", queue)];
    fields.extend(verb.map(|verb| ("do", verb.name().as_bytes())));
    fields.extend(choice.fields());
    link(path, &fields)
}

/// To what can be done with all that fit.
pub fn offers_of_all(app: &App, queue: &[u8], choice: &Choice, which: &str) -> Markup {
    html! { @for offer in OFFERS.iter().filter(|offer| app.may(offer.verb)) {
        a.button.{ "all-" (offer.verb.name()) } href=(link_of_all("selected", queue, choice, Some(offer.verb)))
            aria-label={ (offer.button) " " (which) "…" } { (offer.button) "…" }
    } }
}

const DOWNLOAD: &str = "One line of JSON for each job";

// ---- what is selected ------------------------------------------------------------------------------

/// When a job died, and its id.
pub type Tick = (u64, Vec<u8>);

/// Jobs that were ticked, each once, oldest first.
pub fn ticked(fields: &Fields) -> Option<Vec<Tick>> {
    let ticked: Option<BTreeSet<Tick>> = fields
        .all("job")
        .map(|value| {
            let (died, id) = std::str::from_utf8(value).ok()?.split_once('.')?;
            Some((died.parse().ok()?, unhex(id.as_bytes())?))
        })
        .collect();
    ticked.map(|ticked| ticked.into_iter().collect())
}

/// Of jobs that were ticked, those that are dead since then, with the beginnings of their bodies.
pub async fn still_dead(place: &Place<'_>, ticked: &[Tick]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for part in ticked.chunks(TOGETHER) {
        jobs.extend(still_dead_whole(place, part).await?.into_iter().map(|mut job| {
            job.body.truncate(BODY_MAX);
            job.body.shrink_to_fit();
            job
        }));
    }
    Ok(jobs)
}

/// The same of few jobs, with all of their bodies.
pub async fn still_dead_whole(place: &Place<'_>, few: &[Tick]) -> Result<Vec<Job>> {
    let ids: Vec<Vec<u8>> = few.iter().map(|(_, id)| id.clone()).collect();
    let is_same = |job: &Job| {
        let is_it = |(died, id): &Tick| job.since == Some(*died) && job.id == *id;
        job.state == JobState::Dead && few.iter().any(is_it)
    };
    Ok(place.get(&ids).await?.into_iter().filter(is_same).collect())
}

/// When the job died that died last.
pub async fn last_death(place: &Place<'_>) -> Result<Option<u64>> {
    let first = Mark::first(JobState::Dead);
    let newest = Walk::new(place, JobState::Dead, Order::Newest, first, 10).batch().await?;
    Ok(newest.first().and_then(|job| job.since))
}

pub async fn queue_of(app: &App, queue: &[u8]) -> Result<(Info, Arc<Node>)> {
    let read = app.watch.read_one(queue).await?;
    read.ok_or_else(|| Trouble::Refused("There is no such queue.".into()))
}

pub fn place<'a>(app: &'a App, queue: &'a [u8], info: &'a Info, node: Arc<Node>) -> Place<'a> {
    Place { deployment: &app.watch.deployment, node: Some(node), queue, info }
}

/// How many dead jobs fit, where that is known.
fn many_that_fit(info: &Info, choice: &Choice, reasons: Option<&Reasons>) -> Option<u64> {
    if choice.state != JobState::Dead || choice.filter.find.is_some() {
        return None;
    }
    match &choice.filter.why {
        None => Some(info.counts.dead),
        Some(why) => {
            let reasons = reasons.filter(|reasons| reasons.is_whole)?;
            reasons.reasons.iter().find(|reason| reason.pattern == *why).map(|reason| reason.jobs)
        }
    }
}
