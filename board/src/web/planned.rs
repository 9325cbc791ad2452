//! What comes of a schedule that was typed: when it will run, and what changes.

use croner::parser::{CronParser, Seconds, Year};
use maud::{html, Markup};

use super::{clock, words, App};
use crate::bytes::{excerpt, title};
use crate::server::alter::Backoff;
use crate::server::job::Job;
use crate::server::plan::{Plan, Rule};
use crate::server::queue::State as JobState;
use crate::server::runs;
use crate::server::Result;
use crate::watch::now_ms;

/// Runs that a preview tells.
const AHEAD: usize = 5;

/// What was typed, and the job that it changes.
pub struct Typed<'a> {
    pub queue: &'a [u8],
    pub plan: &'a Plan,
    pub job: Option<&'a Job>,
}

/// Half of it is no backoff.
pub fn backoff(
    base: Option<u64>,
    max: Option<u64>,
) -> std::result::Result<Option<Backoff>, &'static str> {
    match (base, max) {
        (None, None) => Ok(None),
        (Some(base), None) => Ok(Some(Backoff { base, max: base })),
        (base, Some(max)) if base.unwrap_or(0) <= max => {
            Ok(Some(Backoff { base: base.unwrap_or(0), max }))
        }
        _ => Err("Backoff can't begin with more than its most."),
    }
}

pub async fn preview(app: &App, typed: &Typed<'_>, confirm: Markup) -> Result<Markup> {
    let keeps_time = typed.old().is_some_and(|old| old.rule.is(&typed.plan.rule));
    let runs = next(app, typed, keeps_time).await?;
    let is_dead = typed.job.is_some_and(|job| job.state == JobState::Dead);
    Ok(html! {
        p.lead { strong { (title(&typed.plan.id)) } " in " strong { (title(typed.queue)) } " comes back "
            strong #rule { (rule(&typed.plan.rule)) } "." }
        @if runs.is_empty() && !is_dead { (no_run(typed)) } @else { (next_runs(typed, &runs, is_dead)) }
        @if let Some(old) = typed.old() { (changes(typed, &old, keeps_time)) }
        @if !runs.is_empty() || typed.job.is_some() { (confirm) }
    })
}

impl Typed<'_> {
    fn old(&self) -> Option<Plan> {
        Plan::of(self.job?)
    }
}

/// The runs that will come.
async fn next(app: &App, typed: &Typed<'_>, keeps_time: bool) -> Result<Vec<u64>> {
    let (plan, deployment, now) = (typed.plan, &app.watch.deployment, now_ms());
    if let Some(job) = typed.job.filter(|_| keeps_time) {
        let mut after = job.clone();
        if let Some(schedule) = after.schedule.as_deref_mut() {
            (schedule.runs, schedule.until) = (plan.runs, plan.until);
        }
        let is_past = |time: &u64| plan.until.is_some_and(|until| *time > until);
        let runs = runs::of(deployment, &[&after], AHEAD).await;
        let next = runs.into_iter().next().unwrap_or_default().next;
        // What is ready runs once more in any case.
        return Ok(next
            .into_iter()
            .filter(|time| job.state == JobState::Ready || !is_past(time))
            .collect());
    }
    let most = usize::try_from(plan.runs).ok().filter(|runs| *runs > 0).unwrap_or(AHEAD).min(AHEAD);
    let from = match (&plan.rule, plan.delay_ms) {
        // The delay is the first time itself.
        (Rule::Every(ms), Some(delay)) => now.saturating_add(delay).saturating_sub(*ms),
        (Rule::Cron { .. }, Some(delay)) => now.saturating_add(delay).saturating_sub(1),
        (_, None) => now,
    };
    let times = runs::of_rule(deployment, &plan.rule, from, AHEAD).await?;
    let until = plan.until.unwrap_or(u64::MAX);
    Ok(times.into_iter().filter(|time| *time <= until).take(most).collect())
}

fn rule(rule: &Rule) -> String {
    match rule {
        Rule::Every(ms) => format!("each {}", words::span(*ms)),
        Rule::Cron { expression, zone } => {
            let words = cron_in_words(expression);
            let words =
                words.map(|words| format!(" ({})", words::uncapped(&words))).unwrap_or_default();
            format!("by {}{words}, {}", excerpt(expression, 100), excerpt(zone, 60))
        }
    }
}

fn no_run(typed: &Typed<'_>) -> Markup {
    html! { p.banner #none {
        @if typed.job.is_some() {
            "No run is left: it has had its runs, or its end is before its next time. Saved so, the schedule is over, and a \
            job that waits for its time is deleted."
        } @else { "It would never run: its end is before its first time." }
    } }
}

fn next_runs(typed: &Typed<'_>, runs: &[u64], is_dead: bool) -> Markup {
    let now = now_ms();
    let zone = match &typed.plan.rule {
        Rule::Cron { zone, .. } => Some(zone.as_slice()),
        Rule::Every(_) => None,
    };
    let limit = usize::try_from(typed.plan.runs).unwrap_or(usize::MAX);
    html! {
        @if is_dead { p.banner.warn { "The job is dead: it stays so until it is kicked." } }
        @else {
            p.note { "The next runs"
                @if typed.plan.jitter_ms > 0 { ", each up to " (words::span(typed.plan.jitter_ms)) " later" } ":" }
            ol.runs #runs { @for time in runs { li { (clock::moment(*time, zone, now)) } } }
            @if runs.len() < AHEAD && (typed.plan.until.is_some() || runs.len() <= limit) && limit > 0 { p.note { "Then it ends." } }
        }
    }
}

/// What is another than it was, and what that does.
fn changes(typed: &Typed<'_>, old: &Plan, keeps_time: bool) -> Markup {
    let (was, will) = (told(old), told(typed.plan));
    let rows = was.iter().zip(&will).filter(|((_, was), (_, will))| was != will);
    let rows: Vec<_> = rows.map(|((name, was), (_, will))| (*name, was, will)).collect();
    let has_other_body =
        typed.job.zip(typed.plan.body.as_ref()).is_some_and(|(job, body)| job.body != *body);
    html! {
        @if rows.is_empty() && !has_other_body { p.note #same { "Nothing is another than it is now." } }
        @else {
            h2 { "What changes" }
            dl.facts.changes {
                @for (name, was, will) in rows { dt { (name) } dd { (was) " → " strong { (will) } } }
                @if has_other_body { dt { "body" } dd { strong { (excerpt(typed.plan.body.as_deref().unwrap_or_default(), 120)) } } }
            }
        }
        @if !keeps_time { p.note { "It is another schedule: its counts of runs begin anew." } }
        @if let Some(words) = typed.job.and_then(not_yet) { p.note { (words) } }
        p.note { "A program that adds this schedule with ENSURE when it starts sets it back to what the program says." }
    }
}

/// A plan field by field, in words.
fn told(plan: &Plan) -> Vec<(&'static str, String)> {
    let default = |value: Option<String>| value.unwrap_or_else(|| "the queue's default".into());
    let count = |many: u64| if many == 0 { "no limit".into() } else { words::number(many) };
    let backoff = |backoff: Backoff| match backoff.base {
        0 => "none".into(),
        base => format!("{}, doubling to {}", words::span(base), words::span(backoff.max)),
    };
    vec![
        ("comes back", rule(&plan.rule)),
        (
            "missed runs",
            if plan.makes_up { "are made up for".into() } else { "come as one".into() },
        ),
        ("jitter", words::span_or(plan.jitter_ms, "none")),
        ("runs", count(plan.runs)),
        ("ends at", plan.until.map_or("never".into(), words::utc)),
        ("time to run", default(plan.ttr_ms.map(words::span))),
        ("priority", default(plan.priority.map(|priority| priority.to_string()))),
        ("attempts", default(plan.attempts.map(count))),
        ("backoff", default(plan.backoff.map(backoff))),
        ("passed over when late by", default(plan.late_ms.map(|ms| words::span_or(ms, "never")))),
        ("group", plan.group.as_deref().map_or("none".into(), |group| excerpt(group, 100))),
    ]
}

/// A cron expression in English; `None` where that says nothing.
pub fn cron_in_words(expression: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(expression).ok()?.trim();
    if text.starts_with('@') {
        return None;
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    Some(parser.parse(text).ok()?.describe().trim_end_matches('.').to_string())
}

/// What a change does not do at once.
fn not_yet(job: &Job) -> Option<&'static str> {
    match job.state {
        JobState::Reserved => {
            Some("A run is under way: it goes on as it began, and this is for the next one.")
        }
        JobState::Dead => Some("The job is dead: it stays so until it is kicked."),
        JobState::Ready => {
            Some("A run is ready and waits for a worker: it has the new body and policy.")
        }
        JobState::Delayed | JobState::Done | JobState::Held => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cron_is_told_in_english() {
        for (cron, words) in [
            ("30 2 * * *", "At 02:30"),
            ("0 12 L * *", "At 12:00, on the last day of the month"),
            ("*/10 * * * * *", "At every 10 seconds"),
        ] {
            assert_eq!(cron_in_words(cron.as_bytes()).as_deref(), Some(words));
        }
        assert_eq!(cron_in_words(b"@daily"), None);
        assert_eq!(cron_in_words(b"\xff"), None);
    }
}
