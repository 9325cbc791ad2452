//! A server, or each node of a cluster: what it runs, its memory, what it keeps on disk, replicas,
//! and what DQ says of itself there.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use axum::Extension;
use futures_util::future::join_all;
use maud::{html, Markup};

use super::live;
use super::page::Page;
use super::{layout, words, App, Shared};
use crate::server::about::{About, Replica};
use crate::server::Result;
use crate::watch::now_ms;

/// Nodes of a cluster that are shown. They are asked every two seconds while a page is open.
const NODES_MAX: usize = 30;
/// Replicas of a node.
const REPLICAS_MAX: usize = 20;
/// From so much of maxmemory on, little is left.
const NEARLY_FULL_PERCENT: u64 = 90;
/// Fields of `INFO dq` that the board says in words, or where they belong.
const TOLD: [&str; 8] = [
    "version",
    "eviction_risk",
    "timer_runs",
    "timer_budget_exceeded",
    "timer_last_us",
    "timer_max_us",
    "diverged",
    "bugs",
];

pub async fn serve(Extension(app): Shared, headers: HeaderMap) -> Response {
    live::serve(app, headers, None, render).await
}

async fn render(app: Arc<App>) -> Page {
    let nodes = app.watch.deployment.nodes();
    let read = nodes
        .iter()
        .take(NODES_MAX)
        .map(|node| async { (node.address.clone(), About::read(node).await) });
    let read = join_all(read).await;
    let main = html! {
        nav.path aria-label="Path" { a rel="up" href="./" { "queues" } }
        div.head { h1 { (app.watch.deployment.title()) } a href="actions" { "Actions on this board" } }
        @if read.is_empty() { p.empty { "No server has been found yet." } }
        @for (address, about) in &read { (node(address, about)) }
        @if nodes.len() > NODES_MAX {
            p.note { "Besides, there are " (words::many((nodes.len() - NODES_MAX) as u64, "node")) "." }
        }
    };
    let trouble = read.iter().find_map(|(_, about)| about.as_ref().err());
    // A page of several nodes is worth something while one of them answers.
    let has_answer = read.iter().any(|(_, about)| about.is_ok());
    let status = trouble.filter(|_| !has_answer).map_or(StatusCode::OK, layout::status_of_trouble);
    Page { status, ..Page::new("Server".into(), main) }
}

fn node(address: &str, about: &Result<About>) -> Markup {
    html! {
        article.node data-key=(address) {
            h2.address { (address) }
            @match about {
                Err(trouble) => (layout::trouble(trouble)),
                Ok(about) => {
                    (warnings(about))
                    div.cards {
                        (runs(about))
                        (memory(about))
                        (persistence(about))
                        (replication(about))
                        (timer(about))
                        (configs(about))
                        (totals(about))
                    }
                },
            }
        }
    }
}

/// Whether nothing of it is on disk.
fn keeps_nothing(about: &About) -> bool {
    !about.is("aof_enabled") && about.save.as_ref().is_ok_and(String::is_empty)
}

/// What an operator has to do something about.
fn warnings(about: &About) -> Markup {
    let (used, max) = (about.number("used_memory").unwrap_or(0), about.number("maxmemory"));
    let is_nearly_full = max.is_some_and(|max| max > 0 && used >= max / 100 * NEARLY_FULL_PERCENT);
    let has_failed = |field: &str| about.text(field) == "err";
    html! {
        @if keeps_nothing(about) {
            p.banner.warn { strong { "Nothing is kept on disk. " }
                "When this server ends, its queues are lost, unless a replica has them: set appendonly or save." }
        }
        @if is_nearly_full {
            p.banner.warn { strong { "Memory is nearly full. " } "When it is, DQ.ADD is refused, or keys are evicted: see the policy." }
        }
        @if has_failed("rdb_last_bgsave_status") {
            p.banner { strong { "The last snapshot failed. " } "The server's log says why. By default it refuses writes until one succeeds." }
        }
        @if has_failed("aof_last_write_status") || has_failed("aof_last_bgrewrite_status") {
            p.banner { strong { "The append-only file can't be written. " } "The server's log says why: often its disk is full." }
        }
        @if about.text("master_link_status") == "down" {
            p.banner { strong { "This replica has lost its primary. " } "What it shows is from before." }
        }
        @if about.number("dq_diverged") > Some(0) {
            p.banner { strong { "A queue differed from its log. " } "docs/format.md says what to do." }
        }
        @if about.number("dq_bugs") > Some(0) {
            p.banner { strong { "Something happened in DQ that can't. " } "Please report it, with the server's log." }
        }
    }
}

fn card(title: &str, facts: Markup) -> Markup {
    html! { section { h2 { (title) } dl.facts { (facts) } } }
}

fn fact(name: &str, value: impl maud::Render) -> Markup {
    html! { dt { (name) } dd { (value) } }
}

fn runs(about: &About) -> Markup {
    let version = match (about.text("valkey_version"), about.text("redis_version")) {
        ("", redis) => format!("Redis {redis}"),
        (valkey, _) => format!("Valkey {valkey}"),
    };
    let dq = Some(about.text("dq_version")).filter(|version| !version.is_empty());
    let ms = |seconds: u64| seconds.saturating_mul(1_000);
    card(
        "Server",
        html! {
            (fact("version", version))
            (fact("DQ", dq.unwrap_or("isn't loaded")))
            (fact("mode", about.text("redis_mode")))
            (fact("running for", about.number("uptime_in_seconds").map_or("–".into(), |s| words::span(ms(s)))))
            (fact("clients", html! {
                (number(about, "connected_clients"))
                @if let Some(max) = about.number("maxclients") { span.soft { " of " (words::number(max)) } }
            }))
            dt title="Clients that wait in a blocking command, such as DQ.POP BLOCK" { "waiting clients" }
            dd { (number(about, "blocked_clients")) }
        },
    )
}

fn number(about: &About, field: &str) -> String {
    about.number(field).map_or("–".into(), words::number)
}

fn memory(about: &About) -> Markup {
    let size = |field: &str| about.number(field).map_or("–".into(), words::size);
    let max = about.number("maxmemory").filter(|max| *max > 0);
    let policy = about.text("maxmemory_policy");
    card(
        "Memory",
        html! {
            (fact("used", size("used_memory")))
            (fact("at most", max.map_or("no limit".into(), words::size)))
            (fact("peak", size("used_memory_peak")))
            (fact("of the system", size("used_memory_rss")))
            (fact("when full", policy))
            dt.full { small.soft { (policy_says(policy, max.is_some(), about.is("dq_eviction_risk"))) } }
        },
    )
}

fn policy_says(policy: &str, has_limit: bool, is_risk: bool) -> &'static str {
    match (policy, has_limit) {
        ("noeviction", true) => "Then DQ.ADD is refused, and no queue is lost.",
        ("noeviction", false) => "Without a limit the system ends the server when its memory is full: set maxmemory.",
        _ if is_risk => "Then the server may throw away whole queues: set maxmemory-policy to noeviction.",
        _ => "Then the server throws away keys that expire, and queues only if they are given an expiry.",
    }
}

fn persistence(about: &About) -> Markup {
    let now = now_ms();
    let snapshots = match &about.save {
        Ok(save) if save.is_empty() => "off".to_string(),
        Ok(save) => format!("on: {save}"),
        Err(_) => "no permission".into(),
    };
    let has_aof = about.is("aof_enabled");
    let is_on = if has_aof { "on" } else { "off" };
    let status = |field: &str| match about.text(field) {
        "ok" => "ok".to_string(),
        "" => "–".into(),
        "err" => "failed".into(),
        other => other.into(),
    };
    card(
        "On disk",
        html! {
            (fact("append-only file", is_on))
            @if has_aof {
                (fact("last write", status("aof_last_write_status")))
                (fact("last rewrite", if about.is("aof_rewrite_in_progress") { "under way".into() } else { status("aof_last_bgrewrite_status") }))
            }
            dt title="CONFIG GET save: seconds and changes" { "snapshots" } dd { (snapshots) }
            (fact("last snapshot", html! {
                @if about.is("rdb_bgsave_in_progress") { "under way" } @else { (status("rdb_last_bgsave_status")) }
                @if let Some(at) = about.number("rdb_last_save_time").filter(|at| *at > 0) {
                    ", " (words::brief(at.saturating_mul(1_000), now))
                }
            }))
            (fact("changes since", number(about, "rdb_changes_since_last_save")))
        },
    )
}

fn replication(about: &About) -> Markup {
    let is_primary = about.text("role") == "master";
    let offset = about.number("master_repl_offset").unwrap_or(0);
    let mut replicas: Vec<Replica> = about.replicas().take(REPLICAS_MAX + 1).collect();
    let has_more = replicas.len() > REPLICAS_MAX;
    replicas.truncate(REPLICAS_MAX);
    card(
        "Replication",
        html! {
            (fact("role", if is_primary { "primary" } else { "replica" }))
            @if is_primary {
                @if replicas.is_empty() { (fact("replicas", "none")) }
                @for replica in &replicas { (fact(&replica.address, replica_says(replica, offset))) }
                @if has_more { dt.full { small.soft { "There are more." } } }
            } @else {
                (fact("primary", format!("{}:{}", about.text("master_host"), about.text("master_port"))))
                (fact("link", about.text("master_link_status")))
                @if let Some(seconds) = about.number("master_last_io_seconds_ago") {
                    (fact("last word", format!("{} ago", words::span(seconds.saturating_mul(1_000)))))
                }
            }
        },
    )
}

fn replica_says(replica: &Replica, offset: u64) -> String {
    let behind = words::size(offset.saturating_sub(replica.offset));
    match (replica.state.as_str(), replica.lag_s) {
        ("online", Some(lag)) if lag > 1 => format!("{behind} behind, silent for {lag} s"),
        ("online", _) => format!("{behind} behind"),
        (state, _) => state.into(),
    }
}

fn timer(about: &About) -> Markup {
    let us = |field: &str| {
        about.number(field).map_or("–".into(), |us| match us {
            us if us < 1_000 => format!("{us} µs"),
            us => words::span(us / 1_000),
        })
    };
    card(
        "DQ's timer",
        html! {
            (fact("runs", number(about, "dq_timer_runs")))
            dt title="Runs that had more to do than dq.tick-budget-us lets them: the rest went on in the next" { "runs cut short" }
            dd { (number(about, "dq_timer_budget_exceeded")) }
            (fact("last run took", us("dq_timer_last_us")))
            (fact("longest run took", us("dq_timer_max_us")))
            (fact("queue differed from its log", number(about, "dq_diverged")))
            (fact("bugs", number(about, "dq_bugs")))
        },
    )
}

fn configs(about: &About) -> Markup {
    card(
        "DQ's settings",
        html! {
            @match &about.configs {
                Ok(configs) if configs.is_empty() => (fact("none", "")),
                Ok(configs) => @for (name, value) in configs { (fact(name, value)) },
                Err(trouble) if trouble.is("NOPERM") => {
                    (fact("dq.*", "no permission"))
                    dt.full { small.soft { "They are shown with the right +config|get." } }
                },
                Err(trouble) => (fact("dq.*", trouble.to_string())),
            }
        },
    )
}

/// What DQ says of itself there, as it says it: since the server started.
fn totals(about: &About) -> Markup {
    let told = about.beginning("dq_").filter(|(name, _)| !TOLD.contains(name));
    card(
        "INFO dq",
        html! {
            @for (name, value) in told {
                (fact(&name.replace('_', " "), value.parse().map_or_else(|_| value.to_string(), words::number)))
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_says_what_it_does_to_queues() {
        assert!(policy_says("noeviction", true, false).contains("no queue is lost"));
        assert!(policy_says("noeviction", false, false).contains("set maxmemory"));
        assert!(policy_says("allkeys-lru", true, true).contains("throw away whole queues"));
        assert!(
            policy_says("volatile-lru", true, false).contains("only if they are given an expiry")
        );
    }

    #[test]
    fn a_replica_says_how_far_it_is_behind() {
        let replica = |state: &str, lag_s, offset| {
            let state = state.into();
            replica_says(&Replica { state, lag_s, offset, ..Replica::default() }, 5_000)
        };
        assert_eq!(replica("online", Some(0), 5_000), "0 bytes behind");
        assert_eq!(replica("online", Some(9), 4_990), "10 bytes behind, silent for 9 s");
        assert_eq!(replica("wait_bgsave", None, 0), "wait_bgsave");
    }
}
