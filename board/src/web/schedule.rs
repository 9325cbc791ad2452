//! One job that comes back, as a form: added, or changed. What is typed is shown first, with the
//! next runs; then it is saved.

use axum::body::Bytes;
use axum::extract::RawQuery;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use axum::Extension;
use chrono::NaiveDateTime;
use maud::{html, Markup};

use super::origin::posted;
use super::page::Page;
use super::planned::{self, Typed};
use super::{fields, forms, layout, spans, words, App, Shared};
use crate::args::Verb;
use crate::bytes::{title, Fields, Hex, Shown};
use crate::server::job::Job;
use crate::server::jobs;
use crate::server::plan::{Plan, Rule};
use crate::server::Result;

/// The largest body that a form shows as text.
const BODY_MAX: usize = 64 << 10;
/// How a browser's field has a time; it is UTC here.
const TIME: &str = "%Y-%m-%dT%H:%M:%S%.3f";

/// What a form says, or why it can't be meant.
pub fn read(fields: &Fields) -> std::result::Result<Plan, &'static str> {
    let number = |name: &str| match fields.text(name).trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| "A number must be whole, and not negative."),
    };
    let span = |name: &str| spans::read(fields, name);
    let id = fields.spelled("id").filter(|id| !id.is_empty()).ok_or("An id is needed.")?;
    let expression = fields.spelled("cron").filter(|cron| !cron.is_empty());
    let rule = match (span("every")?.filter(|ms| *ms > 0), expression) {
        (Some(ms), None) => Rule::Every(ms),
        (None, Some(expression)) => {
            let zone = fields.spelled("zone").filter(|zone| !zone.is_empty());
            Rule::Cron { expression, zone: zone.unwrap_or_else(|| b"UTC".to_vec()) }
        }
        _ => return Err("Say when it comes back: either a period or a cron expression."),
    };
    Ok(Plan {
        id,
        body: body(fields),
        rule,
        delay_ms: span("delay")?,
        makes_up: fields.text("misfire") == "ALL",
        jitter_ms: span("jitter")?.unwrap_or(0),
        runs: number("runs")?.unwrap_or(0),
        until: match fields.text("until").trim() {
            "" => None,
            text => Some(time(text).ok_or("Until must be a time, such as 2026-12-31T23:59.")?),
        },
        ttr_ms: span("ttr")?,
        priority: number("priority")?,
        attempts: number("attempts")?,
        backoff: planned::backoff(span("backoff")?, span("backoff-max")?)?,
        late_ms: span("late")?,
        group: fields.spelled("group").filter(|group| !group.is_empty()),
    })
}

/// `None`: it stays as it is. A browser sends the ends of lines as CR LF, whatever they were.
fn body(fields: &Fields) -> Option<Vec<u8>> {
    match fields.get("body") {
        Some(_) => Some(fields.text("body").replace("\r\n", "\n").into_bytes()),
        None => fields.bytes("body"),
    }
}

fn time(text: &str) -> Option<u64> {
    let read = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .iter()
        .find_map(|format| NaiveDateTime::parse_from_str(text, format).ok())?;
    u64::try_from(read.and_utc().timestamp_millis()).ok()
}

fn time_field(ms: u64) -> Option<String> {
    let time = chrono::DateTime::from_timestamp_millis(i64::try_from(ms).ok()?)?;
    Some(time.format(TIME).to_string())
}

/// Whether a body comes back from a form as it was.
fn is_editable(body: &[u8]) -> bool {
    body.len() <= BODY_MAX
        && std::str::from_utf8(body).is_ok_and(|text| !text.contains(['\r', '\0']))
}

/// What the form has in its fields: what a job is, or what was typed.
struct Form<'a> {
    queue: Option<&'a [u8]>,
    plan: Option<&'a Plan>,
    /// The job that is changed.
    job: Option<&'a Job>,
}

pub async fn serve(Extension(app): Shared, query: RawQuery) -> Response {
    let fields = fields(query);
    let (queue, id) = (fields.bytes("queue"), fields.bytes("id"));
    if !app.may(Verb::Schedule) {
        let verb = Verb::Schedule.name().as_bytes();
        app.board.actions.refuse(&app, verb, &fields, "no right to do that");
        return page(&app, queue.as_deref(), id.as_deref(), (StatusCode::FORBIDDEN, refused()));
    }
    let shown = match (&queue, &id) {
        (Some(queue), Some(id)) => match find(&app, queue, id).await {
            Ok(Some(job)) => {
                let plan = Plan::of(&job);
                let shown = Form { queue: Some(queue), plan: plan.as_ref(), job: Some(&job) };
                (StatusCode::OK, form(&shown, &app))
            }
            Ok(None) => (
                StatusCode::NOT_FOUND,
                html! { p.empty { "There is no such job with a schedule." } },
            ),
            Err(trouble) => (layout::status_of_trouble(&trouble), layout::trouble(&trouble)),
        },
        (queue, _) => {
            let shown = Form { queue: queue.as_deref(), plan: None, job: None };
            (StatusCode::OK, form(&shown, &app))
        }
    };
    page(&app, queue.as_deref(), id.as_deref(), shown)
}

/// What was typed, and what would come of it.
pub async fn preview(Extension(app): Shared, headers: HeaderMap, body: Bytes) -> Response {
    let fields = Fields::parse(&body);
    if let Err(refusal) = posted(&app, &headers, &fields, Verb::Schedule.name().as_bytes()) {
        return *refusal;
    }
    let Some(queue) = fields.spelled("queue") else { return Redirect::to("./").into_response() };
    let is_change = fields.text("change") == "1";
    let id = fields.spelled("id").unwrap_or_default();
    let job = match is_change {
        true => find(&app, &queue, &id).await,
        false => Ok(None),
    };
    let job = match job {
        Ok(job) => job,
        Err(trouble) => {
            let shown = (layout::status_of_trouble(&trouble), layout::trouble(&trouble));
            return page(&app, Some(&queue), Some(&id), shown);
        }
    };
    let shown = match read(&fields) {
        _ if is_change && job.is_none() => {
            (StatusCode::NOT_FOUND, html! { p.empty { "The job is gone." } })
        }
        Err(why) => {
            let old = job.as_ref().and_then(Plan::of);
            let shown = Form { queue: Some(&queue), plan: old.as_ref(), job: job.as_ref() };
            let main = html! { p.banner role="alert" { (why) } (form(&shown, &app)) };
            (StatusCode::BAD_REQUEST, main)
        }
        Ok(plan) => {
            let typed = Typed { queue: &queue, plan: &plan, job: job.as_ref() };
            let confirm = confirm(&app, &queue, &fields, &plan, is_change);
            let preview = planned::preview(&app, &typed, confirm).await;
            let status = layout::status_of(&preview);
            let main = html! {
                (preview.unwrap_or_else(|trouble| layout::trouble(&trouble)))
                h2 { "Something else" }
                (form(&Form { queue: Some(&queue), plan: Some(&plan), job: job.as_ref() }, &app))
            };
            (status, main)
        }
    };
    let id = is_change.then_some(id);
    page(&app, Some(&queue), id.as_deref(), shown)
}

fn refused() -> Markup {
    html! { p.banner { "You may not add or change schedules here." } }
}

fn page(
    app: &App,
    queue: Option<&[u8]>,
    id: Option<&[u8]>,
    (status, body): (StatusCode, Markup),
) -> Response {
    let heading = if id.is_some() { "Change a schedule" } else { "Add a schedule" };
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" } " / "
            @if let Some(queue) = queue.filter(|queue| !queue.is_empty()) {
                a href=(layout::queue_link(queue)) { (title(queue)) } " / "
            }
            @if let (Some(queue), Some(id)) = (queue, id) { a rel="up" href=(layout::job_link(queue, id)) { (title(id)) } }
            @else { a rel="up" href="schedules" { "schedules" } }
        }
        div.head { h1 { (heading) } }
        (body)
    };
    let page = Page { status, ..Page::confirmation(heading.into(), main) };
    layout::answer(app, &page, None)
}

/// A job with a schedule.
async fn find(app: &App, queue: &[u8], id: &[u8]) -> Result<Option<Job>> {
    let command = Job::command(queue, id);
    let reply = jobs::ask_one(&app.watch.deployment, app.watch.node_of(queue), command).await;
    Ok(reply.and_then(Job::read)?.filter(|job| job.schedule.is_some()))
}

/// The same form once more, to be saved. The body in hex: a hidden field, too, would lose a bare CR.
fn confirm(app: &App, queue: &[u8], fields: &Fields, plan: &Plan, is_change: bool) -> Markup {
    let same = [
        "every",
        "every-unit",
        "delay",
        "delay-unit",
        "misfire",
        "jitter",
        "jitter-unit",
        "runs",
        "until",
        "ttr",
        "ttr-unit",
        "priority",
        "attempts",
        "backoff",
        "backoff-unit",
        "backoff-max",
        "backoff-max-unit",
        "late",
        "late-unit",
    ];
    let (expression, zone) = match &plan.rule {
        Rule::Cron { expression, zone } => (expression.as_slice(), zone.as_slice()),
        Rule::Every(_) => (&[] as &[u8], &[] as &[u8]),
    };
    let group = plan.group.as_deref().unwrap_or_default();
    html! {
        form.panel #confirm action="act" method="post" {
            (forms::hidden(app, Verb::Schedule, queue, Some(&plan.id)))
            @if is_change { input type="hidden" name="change" value="1"; }
            @for name in same { input type="hidden" name=(name) value=(fields.text(name)); }
            @for (name, value) in [("cron", expression), ("zone", zone), ("group", group)] {
                input type="hidden" name={ (name) ".hex" } value=(Hex(value));
            }
            @if let Some(body) = &plan.body { input type="hidden" name="body.hex" value=(Hex(body)); }
            button { @if is_change { "Save" } @else { "Add" } }
            a href="schedules" { "Back" }
        }
    }
}

fn form(shown: &Form, app: &App) -> Markup {
    let queue = shown.queue.unwrap_or_default();
    html! {
        form.panel.plan action="schedule" method="post" {
            (forms::hidden(app, Verb::Schedule, queue, shown.job.map(|job| job.id.as_slice())))
            p.full { "Nothing is saved before you have seen the next runs." }
            @if shown.job.is_some() { input type="hidden" name="change" value="1"; }
            @else { (names(shown)) }
            (rule_fields(shown.plan))
            (body_field(shown))
            (policy_fields(shown.plan))
            button { "Preview" }
        }
    }
}

fn names(shown: &Form) -> Markup {
    let text = |bytes: &[u8]| Some(Shown(bytes).to_string()).filter(|text| !text.is_empty());
    html! {
        fieldset { legend { "The job" }
            label { "Queue" input name="queue" maxlength="2048" autocomplete="off" spellcheck="false" required value=[shown.queue.and_then(text)]; }
            label { "Id" input name="id" maxlength="2048" autocomplete="off" spellcheck="false" required value=[shown.plan.and_then(|plan| text(&plan.id))]; }
        }
    }
}

fn rule_fields(plan: Option<&Plan>) -> Markup {
    let every = plan.and_then(|plan| match plan.rule {
        Rule::Every(ms) => Some(ms),
        Rule::Cron { .. } => None,
    });
    let (cron, zone) = match plan.map(|plan| &plan.rule) {
        Some(Rule::Cron { expression, zone }) => (Some(Shown(expression)), Some(Shown(zone))),
        _ => (None, None),
    };
    let makes_up = plan.is_some_and(|plan| plan.makes_up);
    let until = plan.and_then(|plan| time_field(plan.until?));
    html! {
        fieldset { legend { "When it comes back" }
            label { "Each" (spans::field("every", "Each", every)) }
            label { "or by a cron expression" input name="cron" maxlength="1024" autocomplete="off" spellcheck="false" placeholder="30 2 * * *" value=[cron]; }
            label { "in the time zone" input name="zone" maxlength="200" autocomplete="off" spellcheck="false" placeholder="UTC" value=[zone]; }
            label title="Empty: the first time of its rule. Of a job that is there this counts only when its rule changes" {
                "First not before, from now" (spans::field("delay", "First not before, from now", plan.and_then(|plan| plan.delay_ms))) }
            label { "Runs that are missed" select name="misfire" {
                option value="ONE" selected[!makes_up] { "come as one" }
                option value="ALL" selected[makes_up] { "are made up for, each" }
            } }
            label { "Each run up to so much later" (spans::field("jitter", "Each run up to so much later", plan.map(|plan| plan.jitter_ms).filter(|ms| *ms > 0))) }
            label { "Ends after so many runs" input name="runs" type="number" min="0" placeholder="no end" value=[plan.map(|plan| plan.runs).filter(|runs| *runs > 0)]; }
            label { "Ends at, UTC" input name="until" type="datetime-local" step="0.001" value=[until]; }
        }
    }
}

fn body_field(shown: &Form) -> Markup {
    let typed = shown.plan.and_then(|plan| plan.body.as_deref());
    let body = typed.or(shown.job.map(|job| job.body.as_slice())).unwrap_or_default();
    html! {
        @if is_editable(body) {
            label.full { "Body"
                // What begins with the end of a line would lose it.
                textarea name="body" spellcheck="false" { "\n" (String::from_utf8_lossy(body)) }
            }
        } @else {
            p.full { "Its body stays as it is: " (words::size(body.len() as u64))
                @if body.len() > BODY_MAX { ", too long for a form." } @else { ", which isn't text that a form could hold." } }
        }
    }
}

fn policy_fields(plan: Option<&Plan>) -> Markup {
    let backoff = plan.and_then(|plan| plan.backoff);
    let group = plan.and_then(|plan| plan.group.as_deref()).map(|group| Shown(group).to_string());
    html! {
        fieldset { legend { "Each run; an empty field is the queue's default" }
            label { "Time to run" (spans::field("ttr", "Time to run", plan.and_then(|plan| plan.ttr_ms))) }
            label { "Priority" input name="priority" type="number" min="0" max="255" placeholder="128" value=[plan.and_then(|plan| plan.priority)]; }
            label { "Attempts; 0: no limit" input name="attempts" type="number" min="0" max="4294967295" value=[plan.and_then(|plan| plan.attempts)]; }
            label { "Backoff" (spans::field("backoff", "Backoff", backoff.map(|backoff| backoff.base))) }
            label { "… doubling up to" (spans::field("backoff-max", "Backoff at most", backoff.map(|backoff| backoff.max))) }
            label { "Passed over when late by; 0: never" (spans::field("late", "Passed over when late by", plan.and_then(|plan| plan.late_ms))) }
            label title="A group can be paused by itself" { "Group" input name="group" maxlength="2048" autocomplete="off" spellcheck="false" placeholder="none" value=[group]; }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_form(form: &str) -> std::result::Result<Plan, &'static str> {
        read(&Fields::parse(form.as_bytes()))
    }

    #[test]
    fn a_rule_is_a_period_or_an_expression() {
        let rule = |form: &str| read_form(form).map(|plan| plan.rule);
        assert_eq!(rule("id=a&every=5&every-unit=min"), Ok(Rule::Every(300_000)));
        let cron = Rule::Cron { expression: b"0 3 * * *".to_vec(), zone: b"UTC".to_vec() };
        assert_eq!(rule("id=a&every=&every-unit=s&cron=0+3+*+*+*&zone="), Ok(cron));
        for form in ["id=a", "id=a&every=5&every-unit=s&cron=@daily", "id=a&every=0&every-unit=s"] {
            assert!(rule(form).is_err_and(|why| why.contains("either")), "{form}");
        }
        assert!(rule("id=&cron=@daily").is_err());
        assert!(rule("id=a&cron=@daily&runs=-1").is_err());
        assert!(rule("id=a&cron=@daily&until=tomorrow").is_err());
    }

    #[test]
    fn a_time_comes_back_from_its_field() {
        for ms in [0, 1_795_300_000_123, 253_402_300_799_999] {
            assert_eq!(time(&time_field(ms).unwrap()), Some(ms));
        }
        assert_eq!(time("2026-12-31T23:59"), time("2026-12-31T23:59:00.000"));
        assert_eq!(time("1960-01-01T00:00"), None);
    }

    #[test]
    fn only_text_is_edited() {
        assert!(is_editable(b"") && is_editable("\nGrüße\t{}".as_bytes()));
        assert!(!is_editable(b"\xff") && !is_editable(b"a\r\nb") && !is_editable(b"a\0"));
        assert!(!is_editable(&[b'x'; BODY_MAX + 1]));
    }
}
