//! Where there are several servers: the page of all of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use axum::Extension;
use maud::{html, Markup};

use super::layout::Frame;
use super::live;
use super::page::Page;
use super::switch::{home, path_of};
use super::{words, Visit};
use crate::server::queue::State;
use crate::watch::{now_ms, Known, Watch};

/// What the page of all servers is rendered from.
struct Front {
    visit: Arc<Visit>,
}

impl Frame for Front {
    fn visit(&self) -> &Visit {
        &self.visit
    }

    fn place(&self) -> Markup {
        html! { (home("./")) span.server.all { (words::number(self.visit.board.servers.len() as u64)) " servers" } }
    }

    fn notices(&self) -> Markup {
        html! {}
    }
}

pub async fn serve(Extension(visit): Extension<Arc<Visit>>, headers: HeaderMap) -> Response {
    live::serve(Arc::new(Front { visit }), headers, None, |front| async move { render(&front) })
        .await
}

fn render(front: &Front) -> Page {
    let servers = &front.visit.board.servers;
    let has_held = servers.iter().any(|watch| watch.known().sums.counts.held > 0);
    let main = html! {
        h1.unseen { "Servers" }
        table.queues {
            thead { tr {
                th.name scope="col" { "server" }
                th.num scope="col" { "queues" }
                th.num scope="col" title="Queues in which a job has been ready for a minute or longer, and that aren't paused" { "stuck" }
                @for state in states(has_held) { th.num scope="col" { (state.name()) } }
                th.num scope="col" { "oldest ready" }
                th.num scope="col" { "out/s" }
                th scope="col" { "version" }
            } }
            tbody { @for watch in servers.iter() { (row(watch, has_held)) } }
        }
    };
    Page::new("Servers".into(), main)
}

fn states(has_held: bool) -> impl Iterator<Item = State> {
    State::ALL.into_iter().filter(move |state| has_held || *state != State::Held)
}

fn row(watch: &Watch, has_held: bool) -> Markup {
    let known = watch.known();
    let sums = &known.sums;
    let queues = sums.queues as u64 + known.left_out();
    html! {
        tr data-key=(watch.name) {
            th.name scope="row" {
                a href=(path_of(&watch.name)) { (watch.name) }
                (marks(watch, &known))
                div.soft.address { (watch.deployment.title()) }
            }
            (count("queues", "queues", queues))
            (count("stuck", "dead", sums.stuck as u64))
            @for state in states(has_held) { (count(state.name(), state.name(), sums.counts.of(state))) }
            td.num.zero[sums.oldest_ready_ms == 0] data-label="oldest ready" {
                (if sums.oldest_ready_ms == 0 { "–".into() } else { words::span(sums.oldest_ready_ms) })
            }
            td.num data-label="out/s" { (words::rate(sums.rates.popped)) }
            td.version data-label="version" { (versions(&known)) }
        }
    }
}

fn count(label: &str, like: &str, many: u64) -> Markup {
    html! {
        td.num.{ "is-" (like) }.zero[many == 0] data-label=(label) title=[(many >= 100_000).then(|| words::number(many))] {
            (words::short(many))
        }
    }
}

/// What is wrong with a server.
fn marks(watch: &Watch, known: &Known) -> Markup {
    html! {
        @if let Some(outage) = watch.outage() {
            " " span.mark.idle title=(outage.trouble) {
                @if watch.lacks_dq() { "no module DQ since " } @else { "no answer since " }
                (words::brief(outage.since_ms, now_ms()))
            }
        } @else if !watch.is_up() {
            " " span.soft { "connecting…" }
        }
        @if known.servers.iter().any(|server| server.evicts) {
            " " span.mark.full title="When its memory is full it may throw away whole queues: set maxmemory-policy to noeviction" { "evicts" }
        }
    }
}

/// Nodes that run the same are told once.
fn versions(known: &Known) -> Markup {
    let told: BTreeSet<String> = known
        .servers
        .iter()
        .map(|server| match &server.dq_version {
            Some(version) => format!("{}, dq {version}", server.version),
            None => format!("{}, no dq", server.version),
        })
        .collect();
    html! {
        @for version in &told { div { (version) } }
        @if known.servers.len() > 1 { span.soft { (words::number(known.servers.len() as u64)) " nodes" } }
    }
}
