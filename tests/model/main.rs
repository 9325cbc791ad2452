//! The core beside an obvious, slow reference queue, under random operations and times that jump;
//! and its log, wherever it is heard.
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

mod claims;
mod compare;
mod divergence;
mod done;
mod draw;
mod edges;
mod file;
mod groups;
mod hostile;
mod job;
mod limits;
mod log;
mod operation;
mod pair;
mod promises;
mod reference;
mod run_state;
mod schedule;
mod sight;
mod subject;
mod told;
mod watch;

use proptest::prelude::*;

use compare::assert_same;
use draw::{clock, looks, turns};
use file::{load, save};
use promises::{OTHER_SEED, SEED, TURNS};

fn cases(by_default: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => config,
        None => ProptestConfig { cases: by_default, ..config },
    }
}

proptest! {
    #![proptest_config(cases(800))]

    #[test]
    fn the_queue_does_what_the_reference_does(clock in clock(), turns in turns(TURNS)) {
        promises::queue_is_its_reference(clock, &turns);
    }

    #[test]
    fn a_replica_holds_what_its_primary_holds(
        clock in clock(),
        turns in turns(TURNS),
        looks in looks(TURNS),
        later in 0..5_000u64,
    ) {
        promises::replica_is_its_primary(clock, &turns, &looks, later);
    }

    #[test]
    fn a_log_that_is_torn_anywhere_makes_what_there_was_then(
        clock in clock(),
        turns in turns(TURNS),
        looks in looks(TURNS),
        whole in 0..150usize,
    ) {
        promises::torn_log_is_what_there_was(clock, &turns, &looks, whole);
    }

    #[test]
    fn a_queue_that_is_loaded_goes_on_as_the_one_that_was_saved(
        clock in clock(),
        before in turns(TURNS),
        after in turns(TURNS),
        looks in looks(TURNS),
    ) {
        promises::loaded_goes_on_as_saved(clock, &before, &after, &looks);
    }

    #[test]
    fn a_copy_goes_on_as_its_original(clock in clock(), before in turns(TURNS), after in turns(TURNS)) {
        promises::copy_goes_on_as_its_original(clock, &before, &after);
    }
}

proptest! {
    // These are short; and what is rare among numbers has to meet.
    #![proptest_config(cases(10_000))]

    #[test]
    fn hostile_records_are_refused_or_make_a_queue_that_adds_up(steps in hostile::steps()) {
        let mut hostile = hostile::Hostile::new(crate::file::new_queue(SEED));
        for step in &steps {
            hostile.play(step);
        }
        // And whatever it has come to, a file of it can be read.
        let loaded = load(&save(&hostile.queue), OTHER_SEED);
        assert_same(&hostile.queue, &loaded);
    }
}
