//! Records that nobody of good will would write (`tests/model/hostile.rs`), with the right types and any
//! values: what is taken can be dumped, loaded and rewritten again. Each four bytes of an input are a
//! step, drawn by the strategies of the test from that seed.

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
#[path = "../../../tests/model/hostile.rs"]
mod hostile;
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

use dq::queue::Queue;
use promises::SEED;

/// No course of the test has more.
const STEPS: usize = 40;

/// What the strategy makes of that seed.
fn drawn<T>(strategy: impl Strategy<Value = T>, seed: &[u8]) -> Option<T> {
    let mut bytes = [0; 32];
    bytes.iter_mut().zip(seed).for_each(|(byte, seed)| *byte = *seed);
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let mut hostile = hostile::Hostile::new(Queue::new(SEED));
    for seed in input.chunks(4).take(STEPS) {
        if let Some(step) = drawn(hostile::logged_step(), seed) {
            hostile.play(&step);
        }
    }
});
