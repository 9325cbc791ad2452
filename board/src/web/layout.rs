//! What all pages have in common.

use maud::{html, Markup, DOCTYPE};

use super::live::Page;
use super::{words, App};
use crate::bytes::{link, Shown};
use crate::server::queue::Info;
use crate::server::Trouble;
use crate::watch::now_ms;

pub fn page(app: &App, page: &Page, outcome: Option<u64>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (page.title) " · dq" }
                link rel="icon" href="icon.svg" type="image/svg+xml";
                link rel="stylesheet" href="board.css";
                script src="board.js" defer {}
            }
            body {
                a.skip href="#main" { "To the page" }
                header {
                    a.home href="./" { img src="icon.svg" alt="" width="22" height="22"; "dq" }
                    span.server { (app.watch.deployment.title()) }
                    form.search action="./" method="get" role="search" {
                        input #search type="search" name="find" placeholder="Find queues" aria-label="Find queues"
                            aria-keyshortcuts="/" maxlength="200" autocomplete="off";
                    }
                    @if app.verbs.is_empty() {
                        span.tag title="Started without --writable" { "read-only" }
                    } @else {
                        span.tag.hot title={ "Started with --writable: " (verbs(app)) } { "writable" }
                    }
                    button #help type="button" aria-label="Keys" aria-keyshortcuts="?" hidden { "?" }
                }
                main #main tabindex="-1" data-now=(now_ms()) data-live[page.is_live] { (main(app, page, outcome)) }
                p #gone role="status" hidden {
                    "dq-board doesn't answer. What is shown is from " span #gone-since {} "."
                }
                (keys())
            }
        }
    }
}

/// The part that the stream brings up to date.
pub fn main(app: &App, page: &Page, outcome: Option<u64>) -> Markup {
    html! {
        @if let Some(outage) = app.watch.outage() {
            p.banner role="alert" {
                strong { "No answer since " (words::brief(outage.since_ms, now_ms())) ". " }
                (outage.trouble) ". Counts are from before. Trying again."
            }
        }
        @for server in app.watch.known().servers.iter().filter(|server| server.evicts) {
            p.banner.warn {
                strong { "Queues may be evicted. " }
                (server.address) " has an allkeys-* policy: when its memory is full it may throw away whole \
                queues. Set maxmemory-policy to noeviction."
            }
        }
        (app.forms.outcome(outcome))
        (page.main)
    }
}

fn verbs(app: &App) -> String {
    app.verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ")
}

fn keys() -> Markup {
    let keys = [
        ("/", "find queues; on a queue's page: go to a job"),
        ("j  k", "the next, the previous row"),
        ("Enter", "open the row"),
        ("n  p", "the next, the previous page"),
        ("1 … 8", "on a queue's page: its states, its schedules, its groups"),
        ("u", "up: from a job to its queue, from a queue to all queues"),
        ("?", "this list"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl { @for (key, what) in keys {
                dt { @for key in key.split("  ") { kbd { (key) } " " } }
                dd { (what) }
            } }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// Workers that ask now and then need not be waiting at this moment.
const IDLE_MS: u64 = 15_000;

/// Why a page can't show what it is for.
pub fn trouble(trouble: &Trouble) -> Markup {
    html! { p.banner role="alert" { (trouble) } }
}

/// What is out of the ordinary about a queue.
pub fn marks(info: &Info, popped_a_second: Option<f64>, now_ms: u64) -> Markup {
    let is_idle = info.oldest_ready_ms > Some(IDLE_MS)
        && info.waiting_consumers == 0
        && info.counts.reserved == 0
        && !info.is_paused
        && info.limits.blocked_until.is_none()
        && info.sink.stream.is_none()
        && popped_a_second == Some(0.0);
    html! {
        @if info.is_paused {
            span.mark.paused {
                "paused"
                @if let Some(until) = info.paused_until { ", ends " (words::brief(until, now_ms)) }
            }
        }
        @if let Some(until) = info.limits.blocked_until.filter(|_| info.counts.ready > 0) {
            span.mark.blocked title="A limit lets no job go" { "blocked" @if until > now_ms { ", ends " (words::brief(until, now_ms)) } }
        } @else if info.is_limited() || info.limits_groups() {
            span.mark.limited title="It has CONCURRENCY or RATE, or its groups have" { "limited" }
        }
        @if info.is_full() { span.mark.full { "full" } }
        @if info.held_behind_dead > 0 {
            span.mark.behind-dead title="Kick the dead ones: when they are done, these go on" { (words::behind_dead(info.held_behind_dead)) }
        }
        @if let Some(error) = &info.sink.error {
            span.mark.sink-error title={ "Jobs can't leave for its stream: " (Shown(error)) } { "sink error" }
        }
        @if is_idle {
            span.mark.idle title="Jobs are ready, nobody waits for them and nobody has one" { "no workers" }
        }
    }
}

pub fn queue_link(name: &[u8]) -> String {
    link("queue", &[("name", name)])
}

pub fn job_link(queue: &[u8], id: &[u8]) -> String {
    link("job", &[("queue", queue), ("id", id)])
}
