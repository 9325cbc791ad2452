//! The core beside an obvious, slow reference queue, under random operations and times that jump.
//!
//! `PROPTEST_CASES=20000 cargo test --release --test model` looks longer.

// A test may panic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::wildcard_enum_match_arm
)]

#[path = "model/compare.rs"]
mod compare;
#[path = "model/copies.rs"]
mod copies;
#[path = "model/draw.rs"]
mod draw;
#[path = "model/hostile.rs"]
mod hostile;
#[path = "model/job.rs"]
mod job;
#[path = "model/operation.rs"]
mod operation;
#[path = "model/reference.rs"]
mod reference;
#[path = "model/subject.rs"]
mod subject;
#[path = "model/told.rs"]
mod told;

use dq::queue::Queue;
use proptest::prelude::*;

use compare::{alive_and_dead, assert_same, check_sums, compare};
use copies::{apply, effect_of, load, save, Effect};
use draw::{clock, turns};
use operation::Turn;
use reference::Reference;
use subject::{at, run_reference, Outcome, Subject};
use told::{Command, LAST};

/// The seeds differ from queue to queue, as they do between servers: they must show in nothing.
const SEED: (u64, u64) = (1, 2);
const OTHER_SEED: (u64, u64) = (0xdead_beef, 77);

fn cases(by_default: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: by_default, ..config },
    }
}

/// A queue and its reference under one clock.
struct Pair {
    subject: Subject,
    reference: Reference,
    clock: u64,
}

impl Pair {
    fn new(clock: u64) -> Pair {
        Pair { subject: Subject::new(Queue::new(SEED)), reference: Reference::default(), clock }
    }

    /// Plays a turn on both; what was done and what came of it.
    fn play(&mut self, turn: &Turn) -> Vec<(Command, Outcome)> {
        self.play_and(turn, |_, _| ())
    }

    /// After each command of a turn, does something with the queue.
    fn play_and(&mut self, turn: &Turn, mut then: impl FnMut(&Queue, &Outcome)) -> Vec<(Command, Outcome)> {
        self.clock = turn.jump.from(self.clock);
        let commands = turn.operation.commands(self.clock, &self.reference);
        let outcomes = commands.into_iter().map(|command| {
            let outcome = self.subject.run(self.clock, &command);
            let expected = run_reference(&mut self.reference, self.clock, &command, &outcome);
            assert_eq!(outcome, expected, "of {command:?} at {}", self.clock);
            then(&self.subject.queue, &outcome);
            (command, outcome)
        });
        let outcomes = outcomes.collect();
        compare(&self.subject.queue, &self.reference);
        outcomes
    }

    /// As [`Pair::play`], as a replica hears of it.
    fn effects_of(&mut self, turn: &Turn) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.play_and(turn, |queue, outcome| effects.extend(effect_of(outcome, queue)));
        effects
    }
}

/// The clock of the replica, at some moments: so far ahead (or behind) that of its primary.
fn skews(turns: usize) -> impl Strategy<Value = Vec<Option<i64>>> {
    let skew = prop_oneof![
        5 => Just(None),
        2 => (-9..9i64).prop_map(Some),
        1 => any::<i32>().prop_map(|ms| Some(ms.into())),
    ];
    prop::collection::vec(skew, turns)
}

const TURNS: usize = 60;

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn the_queue_does_what_the_reference_does(clock in clock(), turns in turns(TURNS)) {
        let mut pair = Pair::new(clock);
        for turn in &turns {
            pair.play(turn);
        }
        check_sums(&mut pair.subject.queue);
    }

    #[test]
    fn a_replica_holds_what_its_primary_holds(
        clock in clock(),
        turns in turns(TURNS),
        skews in skews(TURNS),
        later in 0..5_000u64,
    ) {
        let mut primary = Pair::new(clock);
        let mut replica = Queue::new(OTHER_SEED);
        for (turn, skew) in turns.iter().zip(skews) {
            for effect in primary.effects_of(turn) {
                apply(&effect, &mut replica);
            }
            assert_same(&mut primary.subject.queue, &mut replica);
            if let Some(skew) = skew {
                replica.advance(at(primary.clock.saturating_add_signed(skew).min(LAST)));
                replica.bury_the_overdue(skew.unsigned_abs() as usize % 4);
            }
            check_sums(&mut replica);
        }
        // Now the replica is promoted. Its clock may have been ahead.
        let clocks = [primary.clock, primary.reference.now, replica.advance(at(0)).unix_ms()];
        let now = (clocks.into_iter().max().unwrap() + later).min(LAST);
        assert_both_hand_out_the_same(primary.subject, Subject::new(replica), now);
    }

    #[test]
    fn a_queue_that_is_loaded_goes_on_as_the_one_that_was_saved(
        clock in clock(),
        before in turns(TURNS),
        after in turns(TURNS),
    ) {
        let mut pair = Pair::new(clock);
        for turn in &before {
            pair.play(turn);
        }
        let mut loaded = load(&save(&pair.subject.queue), OTHER_SEED);
        prop_assert_eq!(loaded.record(), pair.subject.queue.record());
        assert_same(&mut pair.subject.queue, &mut loaded);
        let mut loaded = pair.subject.with_queue(loaded);
        loaded.queue.advance(at(pair.reference.now));
        compare(&loaded.queue, &pair.reference);
        for turn in &after {
            for (command, outcome) in pair.play(turn) {
                loaded.follow(pair.clock, &command, &outcome);
            }
            compare(&loaded.queue, &pair.reference);
        }
    }

    #[test]
    fn a_copy_goes_on_as_its_original(clock in clock(), before in turns(TURNS), after in turns(TURNS)) {
        let mut pair = Pair::new(clock);
        before.iter().for_each(|turn| drop(pair.play(turn)));
        let (mut copy, untouched) = (pair.subject.clone(), save(&pair.subject.queue));
        let second_copy = copy.queue.clone();
        for turn in &after {
            for (command, outcome) in pair.play(turn) {
                prop_assert_eq!(copy.run(pair.clock, &command), outcome);
            }
        }
        compare(&copy.queue, &pair.reference);
        prop_assert_eq!(save(&second_copy), untouched);
    }
}

proptest! {
    // These are short; and what is rare among numbers has to meet.
    #![proptest_config(cases(10_000))]

    #[test]
    fn hostile_records_are_refused_or_make_a_queue_that_adds_up(steps in hostile::steps()) {
        let mut queue = Queue::new(SEED);
        for step in &steps {
            hostile::play(&mut queue, step);
        }
        // And whatever it has come to, a file of it can be read.
        let mut loaded = load(&save(&queue), OTHER_SEED);
        assert_same(&mut queue, &mut loaded);
    }
}

fn assert_both_hand_out_the_same(mut one: Subject, mut other: Subject, now: u64) {
    for queue in [&mut one.queue, &mut other.queue] {
        queue.advance(at(now));
        queue.pause(at(0));
    }
    assert_eq!(one.queue.counts(), other.queue.counts());
    assert_eq!(one.queue.next_change(), other.queue.next_change());
    assert_eq!(one.queue.next_id(at(now)), other.queue.next_id(at(now)));
    assert_eq!(alive_and_dead(&one.queue, at(now)), alive_and_dead(&other.queue, at(now)));
    let pop = Command::Pop { ttr: None, floor: 0 };
    // Jobs with a short TTR come again at the end of time: as many as there are will do.
    for _ in 0..=one.queue.len() {
        assert_eq!(one.run(now, &pop), other.run(now, &pop));
    }
    assert_same(&mut one.queue, &mut other.queue);
}
