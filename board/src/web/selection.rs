//! Jobs of a state that a reader ticked, or all that fit a filter: to be kicked, deleted or, dead
//! ones, downloaded.

use std::collections::BTreeSet;
use std::sync::Arc;

use maud::{html, Markup};

use super::choice::Choice;
use super::{list, words, App};
use crate::args::Verb;
use crate::bytes::{link, unhex, Fields, Hex};
use crate::server::deaths::Reasons;
use crate::server::job::Job;
use crate::server::jobs::Place;
use crate::server::node::Node;
use crate::server::queue::{Info, State as JobState};
use crate::server::walk::{Mark, Order, Walk};
use crate::server::{now_ms, Result, Trouble};

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
    /// “Kicked 3 dead jobs”, and what follows of that.
    pub done: &'static str,
    pub then: &'static str,
}

const KICK_DEAD: Offer = Offer {
    verb: Verb::Kick,
    button: "Kick",
    command: "DQ.KICKJOB",
    will: "will be kicked: made ready now, their attempts counted from 0 again.",
    done: "Kicked",
    then: ": ready now",
};
const KICK_DELAYED: Offer = Offer {
    button: "Make ready",
    will: "will be made ready now: they no longer wait for their time.",
    done: "Made ready",
    then: "",
    ..KICK_DEAD
};
const KICK_HELD: Offer = Offer {
    will: "will be made ready now: they no longer wait for other jobs, or until they are resumed.",
    ..KICK_DELAYED
};
const DELETE: Offer = Offer {
    verb: Verb::Del,
    button: "Delete",
    command: "DQ.DEL",
    will: "will be deleted, for good. Jobs that wait for them can't go on.",
    done: "Deleted",
    then: "",
};

/// What can be done to jobs of a state.
fn offers(state: JobState) -> &'static [Offer] {
    const OF_DEAD: &[Offer] = &[KICK_DEAD, DELETE];
    const OF_DELAYED: &[Offer] = &[KICK_DELAYED, DELETE];
    const OF_HELD: &[Offer] = &[KICK_HELD, DELETE];
    const OF_OTHERS: &[Offer] = &[DELETE];
    match state {
        JobState::Dead => OF_DEAD,
        JobState::Delayed => OF_DELAYED,
        JobState::Held => OF_HELD,
        JobState::Ready | JobState::Done => OF_OTHERS,
        // A worker has them.
        JobState::Reserved => &[],
    }
}

pub fn offer(state: JobState, verb: Option<Verb>) -> Option<&'static Offer> {
    offers(state).iter().find(|offer| Some(offer.verb) == verb)
}

/// Whether this reader can do something with jobs of a state, so that they have boxes to tick.
fn is_offered(app: &App, state: JobState) -> bool {
    state == JobState::Dead || offers(state).iter().any(|offer| app.may(offer.verb))
}

// ---- the form --------------------------------------------------------------------------------------

/// A job in a form: since when it has been in its state, and its id. One that was kicked and died
/// again is another.
pub fn value_of(job: &Job) -> String {
    format!("{}.{}", job.came(), Hex(&job.id))
}

/// A table of jobs of a state: where something can be done with these, each has a box to tick.
pub fn table(app: &App, queue: &[u8], info: &Info, choice: &Choice, jobs: &[Job]) -> Markup {
    match is_offered(app, choice.state) {
        true => form(app, queue, info, choice, list::of_state(queue, choice.state, jobs, now_ms())),
        false => list::to_look_at(queue, choice.state, jobs, now_ms()),
    }
}

fn form(app: &App, queue: &[u8], info: &Info, choice: &Choice, table: Markup) -> Markup {
    let reasons = app.watch.deaths.known(queue);
    let many = many_that_fit(info, choice, reasons.as_deref());
    let all = match many {
        Some(many) => format!("All {}", words::number(many)),
        None => "All that fit".into(),
    };
    let offers = || offers(choice.state).iter().filter(|offer| app.may(offer.verb));
    let is_dead = choice.state == JobState::Dead;
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
                    @if is_dead { button formaction="jobs.ndjson" aria-label="Download the ticked jobs" title=(DOWNLOAD) { "Download" } }
                }
                div.bar role="group" aria-label={ "What to do with " (all.to_lowercase()) } {
                    span #all { (all) }
                    (offers_of_all(app, queue, choice, &all.to_lowercase()))
                    @if is_dead {
                        a.button.all-download href=(link_of_all("jobs.ndjson", queue, choice, None)) download
                            aria-label={ "Download " (all.to_lowercase()) } title=(DOWNLOAD) { "Download" }
                    }
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
    html! { @for offer in offers(choice.state).iter().filter(|offer| app.may(offer.verb)) {
        a.button.{ "all-" (offer.verb.name()) } href=(link_of_all("selected", queue, choice, Some(offer.verb)))
            aria-label={ (offer.button) " " (which) "…" } { (offer.button) "…" }
    } }
}

const DOWNLOAD: &str = "One line of JSON for each job";

// ---- what is selected ------------------------------------------------------------------------------

/// Since when a job has been in its state, and its id.
pub type Tick = (u64, Vec<u8>);

/// Jobs that were ticked, each once, those first that have been there for longest.
pub fn ticked(fields: &Fields) -> Option<Vec<Tick>> {
    let ticked: Option<BTreeSet<Tick>> = fields
        .all("job")
        .map(|value| {
            let (came, id) = std::str::from_utf8(value).ok()?.split_once('.')?;
            Some((came.parse().ok()?, unhex(id.as_bytes())?))
        })
        .collect();
    ticked.map(|ticked| ticked.into_iter().collect())
}

/// Of jobs that were ticked, those that have been in the state since then, with the beginnings of
/// their bodies.
pub async fn still_there(place: &Place<'_>, state: JobState, ticked: &[Tick]) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    for part in ticked.chunks(TOGETHER) {
        jobs.extend(still_there_whole(place, state, part).await?.into_iter().map(beginning));
    }
    Ok(jobs)
}

/// A job with as much of its body as a list shows.
pub fn beginning(mut job: Job) -> Job {
    job.body.truncate(BODY_MAX);
    job.body.shrink_to_fit();
    job
}

/// The same of few jobs, with all of their bodies.
pub async fn still_there_whole(
    place: &Place<'_>,
    state: JobState,
    few: &[Tick],
) -> Result<Vec<Job>> {
    let ids: Vec<Vec<u8>> = few.iter().map(|(_, id)| id.clone()).collect();
    let is_same = |job: &Job| {
        let is_it = |(came, id): &Tick| job.came() == *came && job.id == *id;
        job.state == state && few.iter().any(is_it)
    };
    Ok(place.get(&ids).await?.into_iter().filter(is_same).collect())
}

/// Which of all that fit are meant.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    /// Those that were in their state at this time.
    pub until: u64,
    /// And of these the first so many, in the order of the state.
    pub most: u64,
}

impl Extent {
    /// Leaves out of a batch what came later. Whether none behind it is meant, either: dead jobs stand
    /// in the order of their deaths.
    pub fn cut(&self, state: JobState, batch: &mut Vec<Job>) -> bool {
        let many = batch.len();
        batch.retain(|job| job.came() <= self.until);
        state == JobState::Dead && batch.len() < many
    }
}

/// When the job came into its state that came last: what comes later isn't among all that fit. Only
/// dead jobs stand in that order; of the others it is now, by the server's clock.
pub async fn last(app: &App, place: &Place<'_>, state: JobState) -> Result<u64> {
    if state != JobState::Dead {
        let ahead = place.node.as_ref().map_or(0, |node| app.watch.known().clock_ahead_ms(node));
        return Ok(now_ms().saturating_add_signed(ahead));
    }
    let first = Mark::first(JobState::Dead);
    let newest = Walk::new(place, JobState::Dead, Order::Newest, first, 10).batch().await?;
    Ok(newest.first().map_or(0, Job::came))
}

pub async fn queue_of(app: &App, queue: &[u8]) -> Result<(Info, Arc<Node>)> {
    let read = app.watch.read_one(queue).await?;
    read.ok_or(Trouble::NoSuch("There is no such queue."))
}

pub fn place<'a>(app: &'a App, queue: &'a [u8], info: &'a Info, node: Arc<Node>) -> Place<'a> {
    Place { deployment: &app.watch.deployment, node: Some(node), queue, info }
}

/// How many jobs fit, where that is known.
fn many_that_fit(info: &Info, choice: &Choice, reasons: Option<&Reasons>) -> Option<u64> {
    if choice.filter.find.is_some() {
        return None;
    }
    match &choice.filter.why {
        None => Some(info.counts.of(choice.state)),
        Some(why) => {
            let reasons = reasons.filter(|reasons| reasons.is_whole)?;
            reasons.reasons.iter().find(|reason| reason.pattern == *why).map(|reason| reason.jobs)
        }
    }
}
