//! Sessions out of bytes, for a fuzzer that goes by what of the core an input reaches: the bytes are what proptest would
//! take from its random numbers.

use dq::queue::Queue;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::compare::{assert_same, check_sums};
use crate::draw::{clock, turns};
use crate::file::{load, save};
use crate::hostile::{self, Hostile};
use crate::log::Follower;
use crate::pair::Pair;
use crate::subject::at;
use crate::{OTHER_SEED, SEED, TURNS};

/// Behind the bytes come others, always the same. (Of nothing but zeros, some of what is drawn is never right.)
const OTHERS: usize = 1 << 15;

fn drawn<S: Strategy>(strategy: S, bytes: &[u8]) -> Option<S::Value> {
    let mut others = fastrand::Rng::with_seed(0);
    let bytes: Vec<u8> = bytes.iter().copied().chain((0..OTHERS).map(|_| others.u8(..))).collect();
    let random = TestRng::from_seed(RngAlgorithm::PassThrough, &bytes);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    strategy.new_tree(&mut runner).ok().map(|tree| tree.current())
}

/// The queue does what the reference does, and a replica what the queue does; a file goes on as either.
pub fn model(bytes: &[u8]) {
    let Some((clock, turns)) = drawn((clock(), turns(TURNS)), bytes) else {
        return;
    };
    let mut pair = Pair::new(clock);
    let mut replica = Follower::new(Queue::new(OTHER_SEED));
    for turn in &turns {
        pair.play(turn).iter().for_each(|entry| replica.follow(entry));
    }
    check_sums(&pair.subject.queue, at(pair.reference.horizon));
    assert_same(&pair.subject.queue, replica.queue());
    assert_same(&pair.subject.queue, &load(&save(&pair.subject.queue), OTHER_SEED));
}

/// Records that nobody of good will would send are refused, or make a queue that adds up.
pub fn records(bytes: &[u8]) {
    let Some(steps) = drawn(hostile::steps(), bytes) else {
        return;
    };
    let mut hostile = Hostile::new(Queue::new(SEED));
    steps.iter().for_each(|step| hostile.play(step));
    assert_same(&hostile.queue, &load(&save(&hostile.queue), OTHER_SEED));
}
