//! The forms of --writable: that they are ours, what became of them, and how they look.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use axum::extract::RawQuery;
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};
use ring::hmac;
use subtle::ConstantTimeEq;

use super::{fields, glossary, layout, words, App, Reader, Shared};
use crate::args::Verb;
use crate::bytes::{excerpt, link, title, Hex};
use crate::server::groups::Group;
use crate::server::job::Job;
use crate::server::jobs::Place;
use crate::server::queue::{Info, State as JobState};
use crate::server::{Result, Trouble};
use crate::watch::now_ms;

/// Outcomes that a page may still ask for.
const OUTCOMES_MAX: usize = 200;

pub struct Forms {
    /// Of this process. Makes the token of each reader.
    key: hmac::Key,
    outcomes: Mutex<VecDeque<Outcome>>,
}

/// What became of an action.
#[derive(Clone)]
struct Outcome {
    number: u64,
    is_good: bool,
    words: String,
}

impl Forms {
    pub fn new() -> std::result::Result<Forms, String> {
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| error.to_string())?;
        Ok(Forms { key: hmac::Key::new(hmac::HMAC_SHA256, &random), outcomes: Mutex::default() })
    }

    /// In every form of this reader, and known to none that can't read the reader's pages.
    pub fn token_of(&self, reader: &Reader) -> String {
        Hex(hmac::sign(&self.key, reader.name.as_bytes()).as_ref()).to_string()
    }

    /// Whether a form with this token is one of this reader's pages.
    pub fn made(&self, token: &str, reader: &Reader) -> bool {
        token.as_bytes().ct_eq(self.token_of(reader).as_bytes()).into()
    }

    pub fn keep(&self, is_good: bool, words: String) -> u64 {
        let mut random = [0; 8];
        // Not a secret: only that a made-up number finds nothing.
        let _ = getrandom::fill(&mut random);
        let number = u64::from_le_bytes(random);
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push_back(Outcome { number, is_good, words });
        if outcomes.len() > OUTCOMES_MAX {
            outcomes.pop_front();
        }
        number
    }

    pub fn outcome(&self, number: Option<u64>) -> Markup {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = outcomes.iter().find(|outcome| Some(outcome.number) == number);
        html! { @if let Some(outcome) = outcome {
            p.banner.good[outcome.is_good] role="status" { (outcome.words) }
        } }
    }
}

/// What a form has in common with all: which queue, which verb, that it is ours.
pub fn hidden(app: &App, verb: Verb, queue: &[u8], id: Option<&[u8]>) -> Markup {
    html! {
        input type="hidden" name="token" value=(app.token());
        input type="hidden" name="verb" value=(verb.name());
        input type="hidden" name="queue.hex" value=(Hex(queue));
        @if let Some(id) = id { input type="hidden" name="id.hex" value=(Hex(id)); }
    }
}

fn units(name: &str) -> Markup {
    html! { select name={ (name) "-unit" } aria-label="unit" {
        @for unit in ["s", "min", "h", "d"] { option { (unit) } }
    } }
}

/// Beside a queue's name.
pub fn of_queue(app: &App, queue: &[u8], info: &Info, state: JobState, limits: Markup) -> Markup {
    html! { @if !app.verbs.is_empty() { div.actions {
        @if app.may(Verb::Pause) { (pause(app, queue, info)) }
        @if app.may(Verb::Kick) && info.counts.dead > 0 { (kick(app, queue, info)) }
        @if app.may(Verb::Add) { (add(app, queue)) }
        @if app.may(Verb::Schedule) { a.button href=(link("schedule", &[("queue", queue)])) { "Add a schedule…" } }
        (limits)
        @if app.may(Verb::Purge) && info.jobs > 0 { (choose_purge(queue, info, state)) }
    } } }
}

fn pause(app: &App, queue: &[u8], info: &Info) -> Markup {
    html! {
        @if info.is_paused {
            form #resume action="act" method="post" {
                (hidden(app, Verb::Pause, queue, None))
                button name="resume" value="1" { "Resume" }
            }
        } @else {
            details #pause name="panel" { summary { "Pause…" }
                form.panel action="act" method="post" {
                    (hidden(app, Verb::Pause, queue, None))
                    (for_how_long())
                    button { "Pause" }
                }
            }
        }
    }
}

pub fn for_how_long() -> Markup {
    html! {
        label { "For how long; empty: until it is resumed"
            span { input name="for" type="number" min="1" max="1000000000"; " " (units("for")) }
        }
    }
}

pub fn has_pause(app: &App) -> bool {
    app.may(Verb::Pause)
}

/// Back to the page of groups that the form was on.
fn hidden_of_groups(app: &App, queue: &[u8], cursor: u64) -> Markup {
    html! {
        (hidden(app, Verb::Pause, queue, None))
        input type="hidden" name="tab" value="groups";
        input type="hidden" name="cursor" value=(cursor);
    }
}

/// Above a queue's groups: among very many, one is found by its name.
pub fn of_groups(app: &App, queue: &[u8], cursor: u64) -> Markup {
    html! { @if app.may(Verb::Pause) { div.actions {
        details #pausegroup name="panel" { summary { "Pause or resume a group by its name…" }
            form.panel action="act" method="post" {
                (hidden_of_groups(app, queue, cursor))
                label { "Its name, as the pages show it"
                    input name="group" maxlength="2048" autocomplete="off" required;
                }
                (for_how_long())
                button { "Pause" }
                button name="resume" value="1" { "Resume" }
            }
        }
    } } }
}

/// In a group's row.
pub fn of_group(app: &App, queue: &[u8], group: &Group, cursor: u64) -> Markup {
    let name = excerpt(&group.name, 100);
    html! {
        @if group.is_paused {
            form action="act" method="post" {
                (hidden_of_groups(app, queue, cursor))
                input type="hidden" name="group.hex" value=(Hex(&group.name));
                button name="resume" value="1" aria-label={ "Resume the group " (name) } { "Resume" }
            }
        } @else {
            details name="panel" { summary aria-label={ "Pause the group " (name) } { "Pause…" }
                form.panel action="act" method="post" {
                    (hidden_of_groups(app, queue, cursor))
                    input type="hidden" name="group.hex" value=(Hex(&group.name));
                    (for_how_long())
                    button { "Pause" }
                }
            }
        }
    }
}

/// Beside a job: nothing says whether its group is paused.
fn of_its_group(app: &App, queue: &[u8], job: &Job, group: &[u8]) -> Markup {
    html! {
        details #group name="panel" { summary { "Its group…" }
            (pause_of_group(app, queue, Some(&job.id), group))
        }
    }
}

/// Above the jobs of a group.
pub fn of_this_group(app: &App, queue: &[u8], group: &[u8]) -> Markup {
    html! { @if app.may(Verb::Pause) { div.actions {
        details #group name="panel" { summary { "Pause or resume this group…" }
            (pause_of_group(app, queue, None, group))
        }
    } } }
}

/// Nothing tells by its name whether one is paused: so both are offered.
fn pause_of_group(app: &App, queue: &[u8], id: Option<&[u8]>, group: &[u8]) -> Markup {
    html! {
            form.panel action="act" method="post" {
                (hidden(app, Verb::Pause, queue, id))
                @if id.is_none() { input type="hidden" name="back" value="group"; }
                input type="hidden" name="group.hex" value=(Hex(group));
                span.full { "All jobs of " strong { (excerpt(group, 200)) } ": while it is paused none is handed out." }
                (for_how_long())
                button { "Pause" }
                button name="resume" value="1" { "Resume" }
            }
    }
}

fn kick(app: &App, queue: &[u8], info: &Info) -> Markup {
    html! {
        details #kick name="panel" { summary { "Kick…" }
            form.panel action="act" method="post" {
                (hidden(app, Verb::Kick, queue, None))
                label { "How many dead jobs to make ready, oldest first"
                    input name="count" type="number" min="1" required value=(info.counts.dead);
                }
                span.full { (glossary::KICK) }
                button { "Kick" }
            }
        }
    }
}

fn add(app: &App, queue: &[u8]) -> Markup {
    html! {
        details #add name="panel" { summary { "Add a job…" }
            form.panel action="act" method="post" {
                (hidden(app, Verb::Add, queue, None))
                label.full { "Body" textarea name="body" spellcheck="false" {} }
                label { "Id; empty: one is made" input name="id" maxlength="512" autocomplete="off"; }
                label { "Delay" span { input name="delay" type="number" min="0" max="1000000000"; " " (units("delay")) } }
                label { "Priority" input name="priority" type="number" min="0" max="255" placeholder="128"; }
                label { "Attempts" input name="attempts" type="number" min="0" placeholder="the queue's"; }
                button { "Add" }
            }
        }
    }
}

fn choose_purge(queue: &[u8], info: &Info, shown: JobState) -> Markup {
    html! {
        details #purge name="panel" { summary { "Purge…" }
            form.panel action="purge" method="get" {
                input type="hidden" name="queue.hex" value=(Hex(queue));
                label { "Jobs that are" select name="state" {
                    @for state in info.counts.states() { option selected[state == shown] { (state.name()) } }
                } }
                label { "ready, dead, done or held for at least; empty: all"
                    span { input name="older" type="number" min="1" max="1000000000"; " " (units("older")) }
                }
                button { "Preview" }
            }
        }
    }
}

/// The form of a job that comes back.
pub fn schedule_link(queue: &[u8], id: &[u8]) -> String {
    link("schedule", &[("queue", queue), ("id", id)])
}

/// What a kick does to it.
pub fn run_now(job: &Job) -> &'static str {
    match job.state {
        JobState::Dead => "It is ready at once, and its schedule begins again",
        _ => "One run more, at once. The next run stays at its time; with RUNS this one counts",
    }
}

/// Beside a job's id.
pub fn of_job(app: &App, queue: &[u8], job: &Job) -> Markup {
    let id = Some(job.id.as_slice());
    let can_kick = matches!(job.state, JobState::Dead | JobState::Delayed | JobState::Held);
    html! { @if !app.verbs.is_empty() { div.actions {
        @if app.may(Verb::Pause) && job.edges.is_on_hold {
            form #unhold action="act" method="post" {
                (hidden(app, Verb::Pause, queue, id))
                button name="resume" value="job" title="It is due when it waits for no other job" { "Resume" }
            }
        }
        @if app.may(Verb::Kick) && can_kick {
            form #kickjob action="act" method="post" {
                (hidden(app, Verb::Kick, queue, id))
                @if job.schedule.is_some() { button title=(run_now(job)) { "Run now" } }
                @else if job.state == JobState::Dead { button title=(glossary::KICK) { "Kick" } }
                @else { button title="It no longer waits: the next worker gets it in its turn" { "Make ready now" } }
            }
        }
        @if app.may(Verb::Schedule) && job.schedule.is_some() {
            a.button href=(schedule_link(queue, &job.id)) { "Change its schedule…" }
        }
        @if let Some(lease) = job.lease.filter(|_| app.may(Verb::Release) && job.state == JobState::Reserved) {
            details #release name="panel" { summary { "Release…" }
                form.panel action="act" method="post" {
                    (hidden(app, Verb::Release, queue, id))
                    input type="hidden" name="lease" value=(lease);
                    span { "If its worker is dead: the job is tried again without waiting for the lease to end. \
                        If the worker lives, the job is done twice." }
                    button.danger { "Release" }
                }
            }
        }
        @if let Some(group) = job.group.as_deref().filter(|_| app.may(Verb::Pause)) {
            (of_its_group(app, queue, job, group))
        }
        @if app.may(Verb::Del) {
            details #del name="panel" { summary { "Delete…" }
                form.panel action="act" method="post" {
                    (hidden(app, Verb::Del, queue, id))
                    span { "The job is gone for good." }
                    button.danger { "Delete" }
                }
            }
        }
    } } }
}

/// How many jobs a purge is about.
enum Extent {
    Exactly(u64),
    /// So many of the first ones that were looked at.
    AtLeast(u64),
}

/// What a purge will remove, and a field for typing that it shall.
pub async fn preview_purge(Extension(app): Shared, query: RawQuery) -> Response {
    let fields = fields(query);
    let (Some(queue), Some(state)) =
        (fields.bytes("queue"), fields.get("state").and_then(JobState::named))
    else {
        return Redirect::to("./").into_response();
    };
    let unit = match fields.text("older-unit") {
        "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => 1_000,
    };
    let has_age = !matches!(state, JobState::Delayed | JobState::Reserved);
    let older =
        fields.number("older").filter(|_| has_age).and_then(|older| older.checked_mul(unit));
    let shown = match app.may(Verb::Purge) {
        false => Ok(html! { p.banner { "You may not purge here." } }),
        true => extent(&app, &queue, state, older)
            .await
            .map(|extent| confirm_purge(&app, &queue, state, older, &extent)),
    };
    layout::before(&app, &queue, "Purge", "Purge", shown)
}

async fn extent(app: &App, queue: &[u8], state: JobState, older: Option<u64>) -> Result<Extent> {
    let Some((info, node)) = app.watch.read_one(queue).await? else {
        return Err(Trouble::Refused("There is no such queue.".into()));
    };
    let many = info.counts.of(state);
    let Some(older) = older else { return Ok(Extent::Exactly(many)) };
    let before = now_ms().saturating_sub(older);
    let place = Place { deployment: &app.watch.deployment, node: Some(node), queue, info: &info };
    let is_old = |job: &Job| job.old_since().is_some_and(|since| since <= before);
    let (old, is_whole) = place.count(state, is_old).await?;
    Ok(if is_whole { Extent::Exactly(old) } else { Extent::AtLeast(old) })
}

fn confirm_purge(
    app: &App,
    queue: &[u8],
    state: JobState,
    older: Option<u64>,
    extent: &Extent,
) -> Markup {
    let (at_least, many, most) = match extent {
        Extent::Exactly(many) => ("", *many, *many),
        Extent::AtLeast(many) => ("at least ", *many, u64::MAX),
    };
    let age = older.map(|ms| format!(" for {} or longer", words::span(ms))).unwrap_or_default();
    html! {
        p.lead {
            "This removes " (at_least) strong #extent { (words::jobs(many)) } " of " strong { (title(queue)) }
            " in state " strong { (state.name()) } (age) ", for good."
        }
        @if most > 0 {
            form.panel action="act" method="post" {
                (hidden(app, Verb::Purge, queue, None))
                input type="hidden" name="state" value=(state.name());
                input type="hidden" name="count" value=(most);
                input type="hidden" name="older" value=(older.unwrap_or(0));
                label { "To confirm, type the queue's name: " (title(queue))
                    input #confirm name="confirm" autocomplete="off" required;
                }
                button.danger { "Purge" }
                a href=(link("queue", &[("name", queue), ("state", state.name().as_bytes())])) { "Back" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_without_the_token_is_refused() {
        let forms = Forms::new().unwrap();
        let reader = |name: &str| Reader { name: name.into(), address: [10, 0, 0, 1].into() };
        let (ann, token) = (reader("ann"), forms.token_of(&reader("ann")));
        assert!(forms.made(&token, &ann));
        assert!(!forms.made("", &ann));
        assert!(!forms.made(&token.replace(char::is_alphabetic, "0"), &ann));
        assert!(!forms.made(&token, &reader("bob")), "another reader's");
    }

    #[test]
    fn outcomes_are_kept_for_a_while() {
        let forms = Forms::new().unwrap();
        let first = forms.keep(true, "Kicked <b>".into());
        assert!(forms.outcome(Some(first)).into_string().contains("Kicked &lt;b&gt;"));
        assert_eq!(forms.outcome(None).into_string(), "");
        for _ in 0..OUTCOMES_MAX {
            forms.keep(true, "x".into());
        }
        assert_eq!(forms.outcome(Some(first)).into_string(), "");
    }
}
