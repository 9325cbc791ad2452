//! The rules of ARCHITECTURE.md that a reader of the sources can check: imports run one way and in
//! no circle, `unsafe` stands on one floor, the core knows no clock, files are short.
//!
//! A rule gets the sources and names the faults in them. So each is also shown a planted fault
//! (`each_rule_sees_a_planted_fault`): one that sees nothing would pass for ever.

// A test may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod rules;
mod sources;

use std::collections::BTreeSet;

use rules::{BELOW, LINES_MAX, RULES};
use sources::{floor_of, read_sources, Source, Sources};

#[test]
fn the_sources_keep_the_rules() {
    let sources = read_sources();
    let floors: BTreeSet<&str> = sources.keys().map(|file| floor_of(file)).collect();
    assert_eq!(floors, BELOW.iter().map(|(floor, _)| *floor).collect(), "every folder is a floor");
    let faults: Vec<String> = RULES.iter().flat_map(|rule| rule(&sources)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn each_rule_sees_a_planted_fault() {
    let long = "\n".repeat(LINES_MAX + 1);
    let planted: [(&str, &str, &str); 28] = [
        ("queue/new.rs", "use crate::server::logfile;", "queue/new.rs:1 imports server::logfile"),
        (
            "queue/new.rs",
            "\nuse super::super::services::log as l;",
            "queue/new.rs:2 imports services::log",
        ),
        (
            "server/new.rs",
            "fn f() { crate::command::add::x::<u8>() }",
            "server/new.rs:1 imports command::add::x",
        ),
        (
            "server/new.rs",
            "use crate::{queue::Time, services::{log, live}};",
            "server/new.rs:1 imports services::log",
        ),
        ("services/new.rs", "use crate::command::Add;", "services/new.rs:1 imports command::Add"),
        (
            "services/keys/sums.rs",
            "use crate::server::logfile;",
            "services/keys/sums.rs:1 imports server::logfile",
        ),
        ("services/new.rs", "", "services/new.rs is in no room"),
        ("services/new.rs", "use redis_module::raw;", "services/new.rs:1 has redis_module"),
        (
            "command/len.rs",
            "use super::{error::Error, peek::Peek};",
            "command/len.rs:1 imports command::peek::Peek",
        ),
        (
            "command/arg_reader.rs",
            "use crate::command::len::Len;",
            "command/arg_reader.rs:1 imports command::len::Len",
        ),
        ("services/new.rs", "fn f() { unsafe { g() } }", "services/new.rs:1 has unsafe"),
        (
            "services/mod.rs",
            "// #![forbid(unsafe_code)]",
            "services/mod.rs doesn't forbid unsafe code",
        ),
        ("queue/new.rs", "use std::time::{Duration, Instant};", "queue/new.rs:1 has Instant"),
        ("queue/new.rs", "static X: &'static str = \"\";", "queue/new.rs:1 has static"),
        ("queue/new.rs", "thread_local! {}", "queue/new.rs:1 has thread_local"),
        ("queue/new.rs", "struct X(std::sync::atomic::AtomicU64);", "queue/new.rs:1 has AtomicU64"),
        (
            "queue/new.rs",
            "type X = std::collections::HashMap<u8, u8>;",
            "queue/new.rs:1 has HashMap",
        ),
        ("queue/new.rs", &long, "queue/new.rs has more than 500 lines"),
        (
            "services/keys/sums.rs",
            "use super::value::QueueValue;",
            "circle: services/keys/sums.rs, services/keys/value.rs",
        ),
        (
            "queue/memory/slab.rs",
            "use super::index::Index;",
            "circle: queue/memory/index.rs, queue/memory/slab.rs",
        ),
        (
            "server/section.rs",
            "use crate::server::info::register;",
            "circle: server/hooks.rs, server/info.rs, server/section.rs",
        ),
        (
            "queue/value/new.rs",
            "use crate::queue::lines::entry::Entry;",
            "queue/value/new.rs:1 imports queue::lines::entry::Entry",
        ),
        (
            "queue/query/new.rs",
            "use crate::queue::operation::work::Claim;",
            "queue/query/new.rs:1 imports queue::operation::work::Claim",
        ),
        (
            "queue/kernel/new.rs",
            "impl Queue { fn f(&self) { self.peek(State::Ready, 1); } }",
            "queue/kernel/new.rs:1 calls peek, of queue/query/jobs.rs",
        ),
        (
            "queue/record/new.rs",
            "fn f(one: &Queue) {\n one.forecast(&forecast); }",
            "queue/record/new.rs:2 calls forecast, of queue/query/forecast.rs",
        ),
        (
            "services/new.rs",
            "trait Of { type QueueValue; } struct QueueValue;",
            "services/keys/value.rs and services/new.rs have a type QueueValue",
        ),
        // Also by what puts a folder's files together.
        (
            "queue/value/time.rs",
            "use crate::queue::Queue;",
            "queue/value/time.rs:1 imports queue::Queue",
        ),
        (
            "queue/operation/new.rs",
            "impl Operation for Split<'_> {}",
            "queue/operation/new.rs:1 implements Split, which no table has",
        ),
    ];
    let sources = read_sources();
    let all_faults = |sources: &Sources| -> BTreeSet<String> {
        RULES.iter().flat_map(|rule| rule(sources)).collect()
    };
    let before = all_faults(&sources);
    for (file, text, fault) in planted {
        let mut sources = sources.clone();
        sources.insert(file.to_string(), Source::read(file, text));
        let new: Vec<String> = all_faults(&sources).difference(&before).cloned().collect();
        assert!(new.iter().any(|new| new == fault), "{file}: {text}\n{new:#?}");
    }
}

/// What looks like a fault and is none.
#[test]
fn comments_strings_and_lifetimes_are_no_faults() {
    let sources = read_sources();
    let text = "//! unsafe, Instant, crate::server\n/* static */ fn f(x: &'static str) -> &str { \"crate::server unsafe\" }";
    let mut planted = sources.clone();
    planted.insert("queue/new.rs".to_string(), Source::read("queue/new.rs", text));
    for rule in RULES {
        assert_eq!(rule(&planted), rule(&sources));
    }
}
