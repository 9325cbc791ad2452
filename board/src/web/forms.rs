//! The forms of --writable: that they are ours, what became of them, and how they look.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use maud::{html, Markup};
use ring::hmac;
use subtle::ConstantTimeEq;

use super::actions::Ending;
use super::{deps, glossary, layout, App, Reader};
use crate::args::Verb;
use crate::bytes::{excerpt, link, Hex};
use crate::server::groups::Group;
use crate::server::job::Job;
use crate::server::queue::{Info, State as JobState};

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
    ending: Ending,
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

    pub fn keep(&self, ending: Ending, words: String) -> u64 {
        let mut random = [0; 8];
        // Not a secret: only that a made-up number finds nothing.
        let _ = getrandom::fill(&mut random);
        let number = u64::from_le_bytes(random);
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push_back(Outcome { number, ending, words });
        if outcomes.len() > OUTCOMES_MAX {
            outcomes.pop_front();
        }
        number
    }

    /// What was found later of an outcome that wasn't known.
    pub fn find_out(&self, number: u64, ending: Ending, words: &str) {
        let mut outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(outcome) = outcomes.iter_mut().find(|outcome| outcome.number == number) {
            outcome.ending = ending;
            outcome.words = words.into();
        }
    }

    pub fn outcome(&self, number: Option<u64>) -> Markup {
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = outcomes.iter().find(|outcome| Some(outcome.number) == number);
        html! { @if let Some(Outcome { ending, words, .. }) = outcome {
            p.banner.good[*ending == Ending::Done].warn[*ending == Ending::Unknown] role="status" { (words) }
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
        @if app.may(Verb::Kick) && info.counts.dead > 0 { (kick(queue, state)) }
        @if app.may(Verb::Add) { (add(app, queue)) }
        @if app.may(Verb::Schedule) { a.button href=(link("schedule", &[("queue", queue)])) { "Add a schedule…" } }
        (limits)
        @if app.may(Verb::Purge) && info.jobs > 0 { (choose_purge(queue, info, state)) }
    } } }
}

/// The same where the page shows some jobs of the queue: none of these actions means those.
pub fn of_whole_queue(app: &App, queue: &[u8]) -> Markup {
    html! { @if !app.verbs.is_empty() { div.actions {
        a #whole.button href=(layout::queue_link(queue)) title="What is below is about the jobs of this page. Pause, limits, kick and purge of the whole queue are on its own page" {
            "Actions on the whole queue…"
        }
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

fn kick(queue: &[u8], shown: JobState) -> Markup {
    html! {
        details #kick name="panel" { summary { @if shown == JobState::Dead { "Kick…" } @else { "Kick dead jobs…" } }
            form.panel action="selected" method="get" {
                input type="hidden" name="queue.hex" value=(Hex(queue));
                input type="hidden" name="state" value=(JobState::Dead.name());
                input type="hidden" name="do" value=(Verb::Kick.name());
                label { "How many dead jobs to make ready, oldest first; empty: all"
                    input name="most" type="number" min="1" max="1000000000000";
                }
                span.full { (glossary::KICK) }
                button { "Preview" }
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
                    span { "The job is gone for good."
                        @if job.edges.before > 0 { " " (deps::behind(job)) " Without it they can't go on: they are dead, or due, as their ONDEAD says." } }
                    button.danger { "Delete" }
                }
            }
        }
    } } }
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
        let first = forms.keep(Ending::Done, "Kicked <b>".into());
        assert!(forms.outcome(Some(first)).into_string().contains("Kicked &lt;b&gt;"));
        assert_eq!(forms.outcome(None).into_string(), "");
        for _ in 0..OUTCOMES_MAX {
            forms.keep(Ending::Done, "x".into());
        }
        assert_eq!(forms.outcome(Some(first)).into_string(), "");
    }
}
