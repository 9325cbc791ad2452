//! What all pages have in common.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{html, Markup, DOCTYPE};

use super::page::Page;
use super::{switch, words, App, Visit};
use crate::bytes::{self, link};
use crate::server::queue::State as JobState;
use crate::server::{Result, Trouble};
use crate::watch::{now_ms, Known};

/// Clocks of servers and ours differ by a little anyway.
const CLOCKS_DIFFER_MS: u64 = 5_000;

/// What is around a page: one of a server, or the one of all servers.
pub trait Frame: Send + Sync + 'static {
    fn visit(&self) -> &Visit;
    /// In the header: the way to the first page, and which server this is.
    fn place(&self) -> Markup;
    /// Above the page's own part: what is wrong.
    fn notices(&self) -> Markup;
}

impl Frame for App {
    fn visit(&self) -> &Visit {
        self
    }

    fn place(&self) -> Markup {
        html! {
            (switch::switch(&self.board.servers, &self.watch.name))
            a.server href="server" title="Version, memory, persistence, replicas" { (self.watch.deployment.title()) }
            a.nav href="schedules" title="Jobs that come back, of all queues" { "Schedules" }
            a.nav href="working" title="Jobs that workers have, of all queues" { "Working" }
            a.nav href="actions" title="What readers did here, and who" { "Actions" }
            form.search action="./" method="get" role="search" aria-label="Queues" {
                input #search type="search" name="find" placeholder="Find queues" aria-label="Find queues"
                    aria-keyshortcuts="/" maxlength="200" autocomplete="off";
            }
        }
    }

    fn notices(&self) -> Markup {
        html! {
            @if let Some(outage) = self.watch.outage() {
                p.banner #outage role="alert" {
                    @if let Trouble::NoModule { address } = &outage.trouble {
                        strong { "No module DQ since " (words::brief(outage.since_ms, now_ms())) ". " }
                        (address) " answers, and doesn't know DQ's commands: no queue can be read or worked on. Load the \
                        module (loadmodule in its configuration) and start it again. Trying again."
                    } @else {
                    strong { "No answer since " (words::brief(outage.since_ms, now_ms())) ". " }
                    (outage.trouble) ". Counts are from before. Trying again."
                    }
                }
            }
            @for server in self.watch.known().servers.iter().filter(|server| server.evicts) {
                p.banner.warn {
                    strong { "Queues may be evicted. " }
                    (server.address) " has an allkeys-* policy: when its memory is full it may throw away whole \
                    queues. Set maxmemory-policy to noeviction."
                }
            }
            @for server in self.watch.known().servers.iter().filter(|server| server.clock_ahead_ms.unsigned_abs() > CLOCKS_DIFFER_MS) {
                p.banner.warn {
                    strong { "Clocks differ. " }
                    "That of " (server.address) " is " (words::span(server.clock_ahead_ms.unsigned_abs()))
                    @if server.clock_ahead_ms > 0 { " ahead of" } @else { " behind" }
                    " dq-board's: what pages say of times, and previews by age, are wrong by so much."
                }
            }
        }
    }
}

pub fn answer(frame: &impl Frame, page: &Page, outcome: Option<u64>) -> Response {
    (page.status, Html(whole(frame, page, outcome).into_string())).into_response()
}

/// Before something is done to a queue: what will come of it.
pub fn before(
    app: &App,
    queue: &[u8],
    title: &str,
    heading: &str,
    shown: Result<Markup>,
) -> Response {
    let status = status_of(&shown);
    let main = html! {
        nav.path aria-label="Path" {
            a href="./" { "queues" } " / " a rel="up" href=(queue_link(queue)) { (bytes::title(queue)) }
        }
        div.head { h1 { (heading) } }
        (shown.unwrap_or_else(|why| trouble(&why)))
    };
    answer(app, &Page { status, ..Page::confirmation(title.into(), main) }, None)
}

/// The status of a page by what it shows: a page without what it is for is an error.
pub fn status_of<T>(shown: &Result<T>) -> StatusCode {
    shown.as_ref().map_or_else(status_of_trouble, |_| StatusCode::OK)
}

pub fn status_of_trouble(trouble: &Trouble) -> StatusCode {
    match trouble {
        Trouble::NoSuch(_) => StatusCode::NOT_FOUND,
        Trouble::Unreachable { .. } | Trouble::Unanswered { .. } => StatusCode::GATEWAY_TIMEOUT,
        // What was asked can't be meant; but that a server lacks DQ's commands is no reader's fault.
        trouble if trouble.is("ERR") && !trouble.is_unknown_command() => StatusCode::BAD_REQUEST,
        Trouble::Refused(_) | Trouble::NoModule { .. } | Trouble::Strange(_) => {
            StatusCode::BAD_GATEWAY
        }
    }
}

fn whole(frame: &impl Frame, page: &Page, outcome: Option<u64>) -> Markup {
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
                link rel="stylesheet" href="charts.css";
                script src="board.js" defer {}
                script src="charts.js" defer {}
            }
            body {
                a.skip href="#main" { "To the page" }
                header {
                    (frame.place())
                    (rights(frame.visit()))
                    button #help type="button" aria-label="Keys" aria-keyshortcuts="?" hidden { "?" }
                }
                main #main tabindex="-1" autofocus[page.is_confirmation] data-now=(now_ms()) data-live[page.is_live] { (main(frame, page, outcome)) }
                p #gone role="status" hidden {
                    "dq-board doesn't answer. What is shown is from " span #gone-since {} "."
                }
                (keys())
            }
        }
    }
}

/// The part that the stream brings up to date.
pub fn main(frame: &impl Frame, page: &Page, outcome: Option<u64>) -> Markup {
    html! {
        (frame.notices())
        (frame.visit().forms.outcome(outcome))
        (page.main)
    }
}

/// Who the reader is, and what they may do here.
fn rights(visit: &Visit) -> Markup {
    let verbs = visit.verbs.iter().map(|verb| verb.name()).collect::<Vec<_>>().join(", ");
    let name = visit.reader.name.as_str();
    let who = if name.is_empty() { "You" } else { name };
    let short: String = name.chars().take(30).collect();
    html! {
        @if visit.verbs.is_empty() {
            span.tag title={ (who) " may look, and change nothing" } {
                @if !name.is_empty() { (short) ": " } "read-only"
            }
        } @else {
            span.tag.hot title={ (who) " may " (verbs) } {
                @if !name.is_empty() { (short) ": " } "writable"
            }
        }
    }
}

fn keys() -> Markup {
    let keys = [
        ("/", "find queues; on a queue's page: go to a job"),
        ("j  k", "the next, the previous row"),
        ("Enter", "open the row"),
        ("x  Space", "tick the job of the row; Shift and x: all from the last one to this"),
        ("s", "to what can be done with ticked jobs"),
        ("f", "find a text in a state's jobs"),
        ("n  p", "the next, the previous page"),
        ("1 … 8", "on a queue's page: its states, its schedules, its groups"),
        ("u", "up: from a job to those of its state, from a queue to all queues"),
        ("Esc", "close the open panel"),
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

/// Why a page can't show what it is for.
pub fn trouble(trouble: &Trouble) -> Markup {
    html! { p.banner role="alert" {
        (trouble)
        @if trouble.is("LOADING") { ". The server loads its data: it hands out nothing until that is done." }
        @if trouble.is("NOPERM") { ". dq-board's user lacks a right on the server." }
    } }
}

/// Queues of which a page about all of them knows nothing, as a sentence; nothing where there are none.
pub fn left_out(known: &Known) -> Markup {
    let many = known.left_out();
    html! { @if many > 0 {
        " " (words::many(many, "queue")) @if many == 1 { " isn't" } @else { " aren't" } " among these: see --max-queues."
    } }
}

pub fn queue_link(name: &[u8]) -> String {
    link("queue", &[("name", name)])
}

pub fn state_link(queue: &[u8], state: JobState) -> String {
    link("queue", &[("name", queue), ("state", state.name().as_bytes())])
}

pub fn job_link(queue: &[u8], id: &[u8]) -> String {
    link("job", &[("queue", queue), ("id", id)])
}

/// The jobs of a group.
pub fn group_link(queue: &[u8], group: &[u8]) -> String {
    link("queue", &[("name", queue), ("group", group)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_readers_meet_is_explained() {
        let told = |words: &str| trouble(&Trouble::Refused(words.into())).into_string();
        assert!(told("LOADING Redis is loading the dataset").contains("The server loads its data"));
        assert!(told("NOPERM this user has no permissions").contains("lacks a right"));
        assert!(!told("ERR <b>").contains(". "), "{}", told("ERR <b>"));
    }
}
