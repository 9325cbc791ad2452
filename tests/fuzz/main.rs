//! Fuzzing, the short run: what is in `corpus/`, and some thousand changes of it, the same each
//! time. `make fuzz` goes on from there, guided by what of the module an input reaches (`fuzz/`).
//! README.md tells how.
//!
//! `DQ_FUZZ_CHANGES=1000000 cargo test --release --test fuzz` looks longer.

// A test may panic. What is `unsafe` here stands in for a server: the module is what calls it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm,
    clippy::undocumented_unsafe_blocks,
    clippy::missing_safety_doc
)]

mod look;
mod mutate;
mod payload;
mod script;
mod server;
mod session;

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::sync::Once;

use fastrand::Rng;
use server::Server;

const SEED: u64 = 2026;

fn changes(by_default: usize) -> usize {
    std::env::var("DQ_FUZZ_CHANGES").map_or(by_default, |number| number.parse().expect("a number"))
}

fn folder(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fuzz", "corpus", name].iter().collect()
}

/// The inputs of a folder, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let mut files: Vec<_> =
        fs::read_dir(folder(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Tries each input, and so many changes of them. A panic on the way out of the module ends the
/// process, so what is being tried is told first.
fn try_all(
    inputs: &[Vec<u8>],
    changes: usize,
    change: impl Fn(&[u8], &mut Rng) -> Vec<u8>,
    run: impl Fn(&[u8]),
) {
    static TELLS: Once = Once::new();
    TELLS.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            eprintln!(
                "the input:\n{}",
                INPUT.with_borrow(|input| input.escape_ascii().to_string())
            );
            usual(panic);
        }));
    });
    let run = |input: Vec<u8>| {
        INPUT.set(input);
        INPUT.with_borrow(|input| run(input));
    };
    inputs.iter().cloned().for_each(run);
    let mut random = Rng::with_seed(SEED);
    for _ in 0..changes {
        let mut input = inputs[random.usize(0..inputs.len())].clone();
        for _ in 0..random.usize(1..4) {
            input = change(&input, &mut random);
        }
        run(input);
    }
}

fn try_sessions(folder: &str, by_default: usize) {
    let inputs = corpus(folder);
    let words = mutate::words_of(inputs.iter().map(Vec::as_slice));
    let change = |input: &[u8], random: &mut Rng| mutate::session(input, &words, random);
    try_all(&inputs, changes(by_default), change, |input| session::play(&script::parse(input)));
}

#[test]
fn commands_do_no_harm_and_are_repeated_by_replicas() {
    try_sessions("commands", 3_000);
}

#[test]
fn logs_do_no_harm() {
    try_sessions("log", 3_000);
}

#[test]
fn payloads_are_refused_or_make_a_queue_that_works() {
    try_all(&corpus("restore"), changes(20_000), mutate::payload, payload::restore);
}

/// What is in `corpus/restore` and `corpus/log` comes from `corpus/commands`:
/// `cargo test --test fuzz -- --ignored corpus_is_written`
#[test]
#[ignore = "writes the corpus"]
fn corpus_is_written() {
    let files = fs::read_dir(folder("commands")).unwrap().map(|entry| entry.unwrap().path());
    for file in files {
        let name = file.file_stem().unwrap().to_str().unwrap().to_string();
        let lines = script::parse(&fs::read(&file).unwrap());
        fs::write(folder("log").join(&name), script::print(&session::log_of(&lines))).unwrap();
        let server = Server::begin();
        let mut session = session::Session::new(&server);
        session.play(&lines);
        for ((_, key), _) in server.digests() {
            let name = format!("{name}-{}", String::from_utf8_lossy(&key));
            fs::write(folder("restore").join(name), payload::input_of(&server, &key)).unwrap();
        }
    }
}
