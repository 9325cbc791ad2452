//! The core beside its slow reference (`tests/model`), in courses of things that coverage guides.
//! Each four bytes of an input are a turn, drawn by the model's own strategies from that seed: so
//! turns are added, left out, copied and put elsewhere.

#![no_main]
// As in the tests, of which this consists; they use some more of it.
#![allow(dead_code)]

#[path = "../../../tests/model/claims.rs"]
mod claims;
#[path = "../../../tests/model/compare.rs"]
mod compare;
#[path = "../../../tests/model/done.rs"]
mod done;
#[path = "../../../tests/model/draw.rs"]
mod draw;
#[path = "../../../tests/model/edges.rs"]
mod edges;
#[path = "../../../tests/model/file.rs"]
mod file;
#[path = "../../../tests/model/groups.rs"]
mod groups;
#[path = "../../../tests/model/job.rs"]
mod job;
#[path = "../../../tests/model/limits.rs"]
mod limits;
#[path = "../../../tests/model/log.rs"]
mod log;
#[path = "../../../tests/model/operation.rs"]
mod operation;
#[path = "../../../tests/model/pair.rs"]
mod pair;
#[path = "../../../tests/model/promises.rs"]
mod promises;
#[path = "../../../tests/model/reference.rs"]
mod reference;
#[path = "../../../tests/model/run_state.rs"]
mod run_state;
#[path = "../../../tests/model/schedule.rs"]
mod schedule;
#[path = "../../../tests/model/sight.rs"]
mod sight;
#[path = "../../../tests/model/subject.rs"]
mod subject;
#[path = "../../../tests/model/told.rs"]
mod told;
#[path = "../../../tests/model/watch.rs"]
mod watch;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use promises::{SEED, TURNS};

/// What the strategy makes of that seed.
fn drawn<T>(strategy: impl Strategy<Value = T>, seed: &[u8]) -> Option<T> {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(seed).for_each(|(byte, seed)| *byte = *seed);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut seeds = input.chunks(4);
    let course = (draw::clock(), 0..5_000u64, 0..150usize);
    let Some((clock, later, whole)) = drawn(course, seeds.next().unwrap_or_default()) else {
        return;
    };
    let turns = seeds.take(TURNS).filter_map(|seed| drawn((draw::turn(), draw::look()), seed));
    let (turns, looks): (Vec<_>, Vec<_>) = turns.unzip();
    promises::replica_is_its_primary(clock, &turns, &looks, later);
    promises::torn_log_is_what_there_was(clock, &turns, &looks, whole);
});
