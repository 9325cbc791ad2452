//! Limits and defaults of a queue: a form with what they are, and a page that says what a change
//! would do before it is done.

use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use maud::{html, Markup};

use super::effects::{self, Doomed, Effect};
use super::origin::opened_here;
use super::{fields, forms, layout, selection, spans, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{title, Fields, Hex, Shown};
use crate::server::alter::{Backoff, Change, Exit};
use crate::server::job::Job;
use crate::server::jobs::Place;
use crate::server::queue::{Info, Rate, State as JobState};
use crate::server::Result;
use crate::watch::now_ms;

/// What can't be meant, in words.
type Told<T> = std::result::Result<T, &'static str>;

/// The settings that a form has fields of.
pub fn read(fields: &Fields) -> Told<Change> {
    let number = |name: &str| number(fields, name);
    let span = |name: &str| match fields.get(name) {
        None => Ok(None),
        Some(_) => spans::read(fields, name).map(|ms| Some(ms.unwrap_or(0))),
    };
    Ok(Change {
        concurrency: number("concurrency")?,
        rate: rate(fields, "")?,
        group_concurrency: number("group-concurrency")?,
        group_rate: rate(fields, "group-")?,
        max_jobs: number("max-jobs")?,
        dead_keep_ms: span("dead-keep")?,
        ttr_ms: match span("ttr")? {
            Some(0) => return Err("Time to run must be at least 1 ms."),
            ttr => ttr,
        },
        attempts: number("attempts")?,
        backoff_ms: match (span("backoff")?, span("backoff-max")?) {
            (None, _) => None,
            (Some(base), max) if max.unwrap_or(0) == 0 => Some(Backoff { base, max: base }),
            (Some(base), Some(max)) if base > max => {
                return Err("Backoff can't begin with more than its most.")
            }
            (Some(base), max) => Some(Backoff { base, max: max.unwrap_or(base) }),
        },
        keep_ms: span("keep")?,
        late_ms: span("late")?,
        sink: match fields.has_bytes("sink") {
            true => Some(Exit {
                stream: fields.spelled("sink").filter(|name| !name.is_empty()),
                maxlen: number("maxlen")?.unwrap_or(0),
            }),
            false => None,
        },
    })
}

/// An empty field is 0: there is no limit then.
fn number(fields: &Fields, name: &str) -> Told<Option<u64>> {
    match fields.get(name).map(|_| fields.text(name).trim()) {
        None => Ok(None),
        Some("") => Ok(Some(0)),
        Some(text) => text.parse().map(Some).map_err(|_| "A limit must be a whole number."),
    }
}

fn rate(fields: &Fields, group: &str) -> Told<Option<Rate>> {
    let name = |part: &str| format!("{group}{part}");
    let Some(jobs) = number(fields, &name("rate"))? else { return Ok(None) };
    if jobs == 0 {
        return Ok(Some(Rate::default()));
    }
    let per_ms = spans::read(fields, &name("per"))?.filter(|ms| *ms > 0);
    let per_ms = per_ms.ok_or("A rate needs the time in which so many jobs may leave.")?;
    let burst = number(fields, &name("burst"))?.unwrap_or(1).max(1);
    Ok(Some(Rate { jobs, per_ms, burst }))
}

/// The same change as fields that [`read`] reads.
fn hidden_fields(change: &Change) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut put = |name: &str, value: String| all.push((name.to_string(), value));
    for (name, number) in [
        ("concurrency", change.concurrency),
        ("group-concurrency", change.group_concurrency),
        ("max-jobs", change.max_jobs),
        ("attempts", change.attempts),
    ] {
        number.into_iter().for_each(|number| put(name, number.to_string()));
    }
    let backoff = |part: fn(&Backoff) -> u64| change.backoff_ms.as_ref().map(part);
    for (name, ms) in [
        ("ttr", change.ttr_ms),
        ("keep", change.keep_ms),
        ("late", change.late_ms),
        ("dead-keep", change.dead_keep_ms),
        ("backoff", backoff(|backoff| backoff.base)),
        ("backoff-max", backoff(|backoff| backoff.max)),
        ("per", change.rate.as_ref().map(|rate| rate.per_ms)),
        ("group-per", change.group_rate.as_ref().map(|rate| rate.per_ms)),
    ] {
        if let Some(ms) = ms {
            put(name, ms.to_string());
            put(&format!("{name}-unit"), "ms".into());
        }
    }
    for (group, rate) in [("", &change.rate), ("group-", &change.group_rate)] {
        if let Some(rate) = rate {
            put(&format!("{group}rate"), rate.jobs.to_string());
            put(&format!("{group}burst"), rate.burst.to_string());
        }
    }
    if let Some(exit) = &change.sink {
        put("sink.hex", Hex(exit.stream.as_deref().unwrap_or_default()).to_string());
        put("maxlen", exit.maxlen.to_string());
    }
    all
}

/// `jobs at a time 5, time to run 30 s`.
pub fn in_words(change: &Change) -> String {
    let effects = effects::of(&Info::default(), change, None);
    let told: Vec<String> =
        effects.iter().map(|effect| format!("{} {}", effect.name, effect.will)).collect();
    told.join(", ")
}

/// Beside a queue's name.
pub fn panel(app: &App, queue: &[u8], info: &Info) -> Markup {
    html! { @if app.may(Verb::Alter) {
        details #limits name="panel" { summary { "Limits…" }
            (form(queue, info, &Change::default()))
        }
    } }
}

/// The fields have what is set now, or what a reader has typed.
fn form(queue: &[u8], info: &Info, typed: &Change) -> Markup {
    let now = &info.settings;
    let some = |number: u64| Some(number).filter(|number| *number > 0);
    let backoff = typed.backoff_ms.unwrap_or(Backoff::of(info));
    let exit = typed.sink.clone().unwrap_or(Exit::of(info));
    let stream = exit.stream.as_deref().map(|stream| Shown(stream).to_string());
    let count = |name: &str, label: &str, value: u64| {
        html! { label { (label) input name=(name) type="number" min="0" max="4294967295" placeholder="no limit" value=[some(value)]; } }
    };
    html! {
        form.panel.limits action="limits" method="get" {
            input type="hidden" name="queue.hex" value=(Hex(queue));
            p.full { "Nothing is set before you have seen what it does. An empty field is no limit." }
            fieldset { legend { "Limits" }
                (count("concurrency", "Jobs at a time", typed.concurrency.unwrap_or(now.concurrency)))
                (rate_fields("", "Rate", typed.rate.as_ref().unwrap_or(&now.rate)))
                (count("max-jobs", "Most jobs in the queue", typed.max_jobs.unwrap_or(now.max_jobs)))
                label { "Dead jobs are removed after"
                    (spans::field("dead-keep", "Dead jobs are removed after", some(typed.dead_keep_ms.unwrap_or(now.dead_keep_ms)))) }
            }
            fieldset { legend { "Limits of each group" }
                (count("group-concurrency", "Jobs of a group at a time", typed.group_concurrency.unwrap_or(now.group_concurrency)))
                (rate_fields("group-", "Rate of a group", typed.group_rate.as_ref().unwrap_or(&now.group_rate)))
            }
            fieldset { legend { "Defaults of jobs that are added later" }
                label { "Time to run" (spans::field("ttr", "Time to run", Some(typed.ttr_ms.unwrap_or(now.ttr_ms)))) }
                (count("attempts", "Attempts", typed.attempts.unwrap_or(now.attempts)))
                label { "Backoff after the first failed attempt" (spans::field("backoff", "Backoff after the first failed attempt", some(backoff.base))) }
                label { "… doubling up to" (spans::field("backoff-max", "Backoff at most", some(backoff.max))) }
                label { "Finished jobs stay for" (spans::field("keep", "Finished jobs stay for", some(typed.keep_ms.unwrap_or(now.keep_ms)))) }
                label { "Dead when late by" (spans::field("late", "Dead when late by", some(typed.late_ms.unwrap_or(now.late_ms)))) }
            }
            fieldset { legend { "Sink" }
                label { "Jobs leave for this stream; empty: workers take them"
                    input name="sink" maxlength="2048" autocomplete="off" spellcheck="false" value=[stream]; }
                label { "Its most entries" input name="maxlen" type="number" min="0" placeholder="no limit" value=[some(exit.maxlen)]; }
            }
            button { "Preview" }
        }
    }
}

fn rate_fields(group: &str, label: &str, rate: &Rate) -> Markup {
    let some = |number: u64| Some(number).filter(|number| *number > 0);
    html! {
        div.rate role="group" aria-label=(label) {
            label { (label) input name={ (group) "rate" } type="number" min="0" max="4294967295" placeholder="no limit" value=[some(rate.jobs)]; }
            label { "jobs in" (spans::field(&format!("{group}per"), &format!("{label}: in"), some(rate.per_ms))) }
            label { "at once" input name={ (group) "burst" } type="number" min="1" max="4294967295" placeholder="1" value=[some(rate.burst)]; }
        }
    }
}

/// What a change would do, and a button that does it.
pub async fn serve(Extension(app): Shared, headers: HeaderMap, query: RawQuery) -> Response {
    let fields = fields(query);
    let Some(queue) = fields.bytes("queue") else { return Redirect::to("./").into_response() };
    if let Err(refusal) = opened_here(&app, &headers, &fields, Verb::Alter, &queue) {
        return *refusal;
    }
    let typed = read(&fields);
    let shown = preview(&app, &queue, typed.as_ref().map_err(|why| *why)).await;
    let page = layout::before(&app, &queue, "Limits", "Limits and defaults", shown);
    match typed {
        Ok(_) => page,
        Err(_) => (StatusCode::BAD_REQUEST, page).into_response(),
    }
}

async fn preview(app: &App, queue: &[u8], typed: Told<&Change>) -> Result<Markup> {
    let (info, node) = selection::queue_of(app, queue).await?;
    let typed = match typed {
        Ok(typed) => typed,
        Err(why) => {
            return Ok(html! {
                p.banner role="alert" { (why) }
                (form(queue, &info, &Change::default()))
            })
        }
    };
    let change = typed.clone().unlike(&info);
    let place = Place { deployment: &app.watch.deployment, node: Some(node), queue, info: &info };
    let doomed = match change.dead_keep_ms.filter(|ms| *ms > 0 && info.counts.dead > 0) {
        Some(ms) => Some(dead_for(&place, ms).await?),
        None => None,
    };
    Ok(html! {
        @if !change.is_empty() { (confirm(app, queue, &info, &change, doomed)) }
        @else if !typed.is_empty() { p.lead #same { "All of this is set already: nothing would change." } }
        @if !typed.is_empty() { h2 { "Something else" } }
        (form(queue, &info, typed))
    })
}

/// How many jobs have been dead for so long.
async fn dead_for(place: &Place<'_>, ms: u64) -> Result<(u64, bool)> {
    let before = now_ms().saturating_sub(ms);
    place.count(JobState::Dead, |job: &Job| job.since.is_some_and(|since| since <= before)).await
}

fn confirm(app: &App, queue: &[u8], info: &Info, change: &Change, doomed: Doomed) -> Markup {
    let effects = effects::of(info, change, doomed);
    let is_grave = effects.iter().any(|effect| effect.is_grave);
    html! {
        p.lead { "This sets " (if effects.len() == 1 { "one setting" } else { "these settings" }) " of "
            strong { (title(queue)) } ". What isn't named here stays as it is." }
        @if let Some(besides) = effects::besides(info) { p.banner.warn { (besides) } }
        table.list.effects {
            thead { tr {
                th.id scope="col" { "setting" } th scope="col" { "now" } th scope="col" { "then" }
                th.text scope="col" { "what it does" }
            } }
            tbody { @for effect in &effects { (row(effect)) } }
        }
        @if change.has_defaults() {
            p.note { "Defaults are for jobs that are added later without a value of their own. The "
                (words::jobs(info.jobs)) " in the queue keep what they have." }
        }
        form.panel #confirm action="act" method="post" {
            (forms::hidden(app, Verb::Alter, queue, None))
            @for (name, value) in hidden_fields(change) { input type="hidden" name=(name) value=(value); }
            button.danger[is_grave] { "Set" }
            a href=(layout::queue_link(queue)) { "Back" }
        }
    }
}

fn row(effect: &Effect) -> Markup {
    html! { tr data-key=(effect.option) {
        th.id scope="row" { (effect.name) " " small.soft { (effect.option) } }
        td data-label="now" { (effect.was) }
        td data-label="then" { strong { (effect.will) } }
        td.text { (effect.words) }
    } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::link;

    fn read_form(form: &str) -> Told<Change> {
        read(&Fields::parse(form.as_bytes()))
    }

    #[test]
    fn a_form_has_only_what_it_names() {
        assert_eq!(read_form("queue.hex=61"), Ok(Change::default()));
        let none = read_form("concurrency=&rate=&max-jobs=0").unwrap();
        assert_eq!((none.concurrency, none.max_jobs, none.ttr_ms), (Some(0), Some(0), None));
        assert_eq!(none.rate, Some(Rate::default()));
    }

    #[test]
    fn a_form_that_can_t_be_meant_is_refused() {
        for form in [
            "concurrency=-1",
            "concurrency=x",
            "rate=5",
            "rate=5&per=0&per-unit=s",
            "rate=5&per=1&per-unit=week",
            "ttr=&ttr-unit=s",
            "backoff=2&backoff-unit=s&backoff-max=1&backoff-max-unit=s",
            "sink=out&maxlen=x",
        ] {
            assert!(read_form(form).is_err(), "{form}");
        }
    }

    #[test]
    fn what_is_confirmed_is_what_was_previewed() {
        let change = Change {
            concurrency: Some(5),
            rate: Some(Rate { jobs: 10, per_ms: 1_500, burst: 3 }),
            group_concurrency: Some(0),
            group_rate: Some(Rate::default()),
            max_jobs: Some(7),
            dead_keep_ms: Some(86_400_000),
            ttr_ms: Some(1),
            attempts: Some(0),
            backoff_ms: Some(Backoff { base: 5, max: 9 }),
            keep_ms: Some(0),
            late_ms: Some(8),
            sink: Some(Exit { stream: Some(b"\xff<b>&\0".to_vec()), maxlen: 4 }),
        };
        let end = Change { sink: Some(Exit::default()), ..Change::default() };
        for change in [change, end] {
            let fields = hidden_fields(&change);
            let pairs: Vec<(&str, &[u8])> =
                fields.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            assert_eq!(read_form(link("", &pairs).trim_start_matches('?')), Ok(change));
        }
    }
}
