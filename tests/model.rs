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

#[path = "model/copies.rs"]
mod copies;
#[path = "model/hostile.rs"]
mod hostile;
#[path = "model/operation.rs"]
mod operation;
#[path = "model/reference.rs"]
mod reference;
#[path = "model/subject.rs"]
mod subject;

use dq::queue::Queue;
use proptest::prelude::*;

use copies::{apply, assert_same, effect_of, load, save, Effect};
use operation::{clock, turns, Command, Turn};
use reference::{Reference, LAST};
use subject::{at, check_sums, compare, run, run_reference, Outcome};

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
    queue: Queue,
    reference: Reference,
    clock: u64,
}

impl Pair {
    fn new(clock: u64) -> Pair {
        Pair { queue: Queue::new(SEED), reference: Reference::default(), clock }
    }

    /// Plays a turn on both; what was done and what came of it.
    fn play(&mut self, turn: &Turn) -> Vec<(Command, Outcome)> {
        self.clock = turn.jump.from(self.clock);
        let commands = turn.operation.commands(self.clock, &self.reference);
        let outcomes = commands.into_iter().map(|command| {
            let outcome = run(&mut self.queue, self.clock, &command);
            let expected = run_reference(&mut self.reference, self.clock, &command, &outcome);
            assert_eq!(outcome, expected, "of {command:?} at {}", self.clock);
            (command, outcome)
        });
        let outcomes = outcomes.collect();
        compare(&self.queue, &self.reference);
        outcomes
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
    #![proptest_config(cases(2_000))]

    #[test]
    fn the_queue_does_what_the_reference_does(clock in clock(), turns in turns(TURNS)) {
        let mut pair = Pair::new(clock);
        for turn in &turns {
            pair.play(turn);
        }
        check_sums(&mut pair.queue);
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
            for effect in effects_of(&mut primary, turn) {
                apply(&effect, &mut replica);
            }
            assert_same(&primary.queue, &replica);
            if let Some(skew) = skew {
                replica.advance(at(primary.clock.saturating_add_signed(skew).min(LAST)));
            }
            check_sums(&mut replica);
        }
        // Now the replica is promoted. Its clock may have been ahead.
        let clocks = [primary.clock, primary.reference.now, replica.advance(at(0)).unix_ms()];
        let now = (clocks.into_iter().max().unwrap() + later).min(LAST);
        assert_both_hand_out_the_same(&mut primary.queue, &mut replica, now);
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
        let file = save(&pair.queue);
        let mut loaded = load(&file, OTHER_SEED);
        assert_same(&pair.queue, &loaded);
        prop_assert_eq!(save(&loaded), file);
        loaded.advance(at(pair.reference.now));
        compare(&loaded, &pair.reference);
        for turn in &after {
            for (command, outcome) in pair.play(turn) {
                prop_assert_eq!(run(&mut loaded, pair.clock, &command), outcome);
            }
            compare(&loaded, &pair.reference);
        }
    }

    #[test]
    fn a_copy_goes_on_as_its_original(clock in clock(), before in turns(TURNS), after in turns(TURNS)) {
        let mut pair = Pair::new(clock);
        before.iter().for_each(|turn| drop(pair.play(turn)));
        let (mut copy, untouched) = (pair.queue.clone(), save(&pair.queue));
        let second_copy = copy.clone();
        for turn in &after {
            for (command, outcome) in pair.play(turn) {
                prop_assert_eq!(run(&mut copy, pair.clock, &command), outcome);
            }
        }
        compare(&copy, &pair.reference);
        prop_assert_eq!(save(&second_copy), untouched);
    }
}

proptest! {
    // These are short; and what is rare among numbers has to meet.
    #![proptest_config(cases(20_000))]

    #[test]
    fn hostile_records_are_refused_or_make_a_queue_that_adds_up(steps in hostile::steps()) {
        let mut queue = Queue::new(SEED);
        for step in &steps {
            hostile::play(&mut queue, step);
        }
        // And whatever it has come to, a file of it can be read.
        assert_same(&queue, &load(&save(&queue), OTHER_SEED));
    }
}

/// Plays a turn on the primary, command by command, as its replica hears of it.
fn effects_of(primary: &mut Pair, turn: &Turn) -> Vec<Effect> {
    let outcomes = primary.play(turn);
    outcomes.iter().filter_map(|(_, outcome)| effect_of(outcome, &primary.queue)).collect()
}

fn assert_both_hand_out_the_same(one: &mut Queue, other: &mut Queue, now: u64) {
    one.advance(at(now));
    other.advance(at(now));
    assert_eq!(one.counts(), other.counts());
    assert_eq!(one.next_change(), other.next_change());
    assert_eq!(one.next_id(at(now)), other.next_id(at(now)));
    let pop = Command::Pop { ttr: None, floor: 0 };
    // Jobs with a short TTR come again at the end of time: as many as there are will do.
    for _ in 0..=one.len() {
        assert_eq!(run(one, now, &pop), run(other, now, &pop));
    }
    assert_same(one, other);
}
