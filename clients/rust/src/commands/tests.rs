//! Builders have the options that the module's grammar says (clients/contract/commands.json), and
//! replies the fields. So a change of the grammar makes one of these tests fail.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::commands::*;
use crate::replies::{Edges, Group, JobFields, Schedule};
use crate::Info;

fn contract() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../contract/commands.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What a command takes besides its options: in its constructor.
fn taken(command: &str) -> (&'static [(&'static str, &'static str)], &'static [&'static str]) {
    match command {
        "add" => (Add::OPTIONS, &["id", "body"]),
        "alter" => (Alter::OPTIONS, &[]),
        "bury" => (Bury::OPTIONS, &["id", "lease"]),
        "del" | "kickjob" | "get" => (&[], &["id"]),
        "deps" => (Depends::OPTIONS, &["id"]),
        "done" => (Done::OPTIONS, &["id", "lease", "add"]),
        "finish" => (&[], &["job"]),
        "forecast" => (Forecast::OPTIONS, &["step", "count"]),
        "groups" => (Groups::OPTIONS, &["cursor"]),
        "info" => (&[], &[]),
        "kick" => (Kick::OPTIONS, &[]),
        "len" => (Len::OPTIONS, &[]),
        "madd" => (AddMany::OPTIONS, &["job"]),
        "mpop" => (FinishAndMpop::OPTIONS, &["finish"]),
        "next" => (Next::OPTIONS, &["expression"]),
        "pause" => (Pause::OPTIONS, &[]),
        "peek" => (Peek::OPTIONS, &[]),
        "pop" => (Pop::OPTIONS, &["finish"]),
        "purge" => (Purge::OPTIONS, &["state"]),
        "release" => (Release::OPTIONS, &["id", "lease"]),
        "renew" => (&[], &["ttr", "block", "job"]),
        "result" => (GetResult::OPTIONS, &["id"]),
        "resume" => (Resume::OPTIONS, &[]),
        "scan" => (Scan::OPTIONS, &["cursor"]),
        "touch" => (Touch::OPTIONS, &["id", "lease"]),
        other => panic!("a new command: {other}"),
    }
}

#[test]
fn a_builder_takes_what_its_command_takes() {
    for (command, told) in contract()["commands"].as_object().unwrap() {
        let (options, constructor) = taken(command);
        for one in told["call"].as_array().unwrap() {
            let name = one["name"].as_str().unwrap();
            let is_option = options.iter().any(|(method, token)| {
                method.trim_end_matches('_') == name && one["token"].as_str() == Some(token)
            });
            assert!(name == "key" || is_option || constructor.contains(&name), "{command} {name}");
        }
    }
    assert_eq!(Add::OPTIONS, NewJob::OPTIONS);
    assert_eq!(Mpop::OPTIONS, FinishAndMpop::OPTIONS);
    assert_eq!(Mpop::OPTIONS, FinishAndPop::OPTIONS);
}

#[test]
fn a_reply_has_the_fields_that_the_server_shows() {
    let kinds = [
        ("job", JobFields::WIRE),
        ("edges", Edges::WIRE),
        ("schedule", Schedule::WIRE),
        ("info", Info::WIRE),
        ("group", Group::WIRE),
    ];
    for (what, known) in kinds {
        let told = contract()["fields"][what].as_object().unwrap().clone();
        let shown: BTreeSet<_> = told.keys().map(String::as_str).collect();
        assert_eq!(shown, known.iter().copied().collect(), "{what}");
    }
}
