//! The core beside an obvious, slow reference queue, under random operations and times that jump; and its log, wherever
//! it is heard.
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
mod draw;
mod file;
mod groups;
mod hostile;
mod job;
mod legacy;
mod limits;
mod log;
mod operation;
mod pair;
mod reference;
mod schedule;
mod sight;
mod subject;
mod told;

use dq::queue::Queue;
use proptest::prelude::*;

use compare::{assert_same, check_sums, compare, compare_all_but_totals};
use draw::{clock, skew, turns};
use file::{load, rewritten, save};
use log::{Entry, Follower};
use pair::Pair;
use subject::at;
use told::LAST;

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

/// When somebody looks at a replica, between two entries of the log: by a clock that is so far ahead of that of
/// its primary, or behind it; or nobody does.
fn looks() -> impl Strategy<Value = Vec<Option<i64>>> {
    prop::collection::vec(prop_oneof![2 => Just(None), 1 => skew().prop_map(Some)], TURNS)
}

/// Follows a log while others look.
fn follow<'l>(follower: &mut Follower, entries: impl IntoIterator<Item = &'l Entry>, looks: &[Option<i64>]) {
    for (entry, look) in entries.into_iter().zip(looks.iter().cycle()) {
        follower.follow(entry);
        if let Some(skew) = look {
            let time = follower.queue().heading().clock.unix_ms().saturating_add_signed(*skew).min(LAST);
            follower.look(time);
            check_sums(follower.queue(), at(time));
        }
    }
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
        check_sums(&pair.subject.queue, at(pair.reference.horizon));
    }

    #[test]
    fn a_replica_holds_what_its_primary_holds(
        clock in clock(),
        turns in turns(TURNS),
        looks in looks(),
        later in 0..5_000u64,
    ) {
        let mut primary = Pair::new(clock);
        let mut replica = Follower::new(Queue::new(OTHER_SEED));
        for (turn, look) in turns.iter().zip(&looks) {
            follow(&mut replica, &primary.play(turn), &[*look]);
            assert_same(&primary.subject.queue, replica.queue());
        }
        // Now the replica is promoted.
        let now = (primary.clock + later).min(LAST);
        replica.queue().advance(at(now));
        primary.advance(now);
        compare_all_but_totals(replica.queue(), &primary.reference);
    }

    #[test]
    fn a_log_that_is_torn_anywhere_makes_what_there_was_then(
        clock in clock(),
        turns in turns(TURNS),
        looks in looks(),
        whole in 0..150usize,
    ) {
        let mut primary = Pair::new(clock);
        let (mut log, mut then) = (Vec::new(), None);
        for turn in &turns {
            let before = log.len();
            let queue = primary.subject.queue.clone();
            log.extend(primary.play(turn));
            if (before..log.len()).contains(&whole) {
                // Of a turn that said several things, a part.
                let mut part = Follower::new(queue);
                log[before..whole].iter().for_each(|entry| part.follow(entry));
                then = Some(part.queue().clone());
            }
        }
        let then = then.unwrap_or_else(|| primary.subject.queue.clone());
        let (whole, rest) = log.split_at(whole.min(log.len()));
        let mut loaded = Follower::new(Queue::new(OTHER_SEED));
        follow(&mut loaded, whole, &looks);
        assert_same(&then, loaded.queue());
        // And what is written of it there goes on with the rest.
        let mut from_file = Follower::new(load(&save(loaded.queue()), SEED));
        follow(&mut from_file, rest, &looks);
        assert_same(&primary.subject.queue, from_file.queue());
    }

    #[test]
    fn a_queue_that_is_loaded_goes_on_as_the_one_that_was_saved(
        clock in clock(),
        before in turns(TURNS),
        after in turns(TURNS),
        looks in looks(),
    ) {
        let mut pair = Pair::new(clock);
        before.iter().for_each(|turn| drop(pair.play(turn)));
        let file = save(&pair.subject.queue);
        let loaded = [load(&file, OTHER_SEED), rewritten(&pair.subject.queue, OTHER_SEED)];
        let mut loaded = loaded.map(|mut queue| {
            prop_assert_eq!(queue.record(), pair.subject.queue.record());
            prop_assert_eq!(&save(&queue), &file);
            queue.advance(at(pair.reference.horizon));
            compare(&queue, &pair.reference);
            Ok(Follower::new(queue))
        });
        for turn in &after {
            let entries = pair.play(turn);
            for follower in &mut loaded {
                let follower = follower.as_mut().map_err(|error| error.clone())?;
                follow(follower, &entries, &looks);
                follower.queue().advance(at(pair.reference.horizon));
                compare_all_but_totals(follower.queue(), &pair.reference);
                assert_same(&pair.subject.queue, follower.queue());
            }
        }
    }

    #[test]
    fn a_copy_goes_on_as_its_original(clock in clock(), before in turns(TURNS), after in turns(TURNS)) {
        let mut pair = Pair::new(clock);
        before.iter().for_each(|turn| drop(pair.play(turn)));
        let untouched = save(&pair.subject.queue);
        let second_copy = pair.subject.queue.clone();
        let mut copy = Follower::new(pair.subject.queue.clone());
        for turn in &after {
            pair.play(turn).iter().for_each(|entry| copy.follow(entry));
            copy.queue().advance(at(pair.reference.horizon));
        }
        compare_all_but_totals(copy.queue(), &pair.reference);
        assert_same(&pair.subject.queue, copy.queue());
        prop_assert_eq!(save(&second_copy), untouched);
    }
}

proptest! {
    // These are short; and what is rare among numbers has to meet.
    #![proptest_config(cases(10_000))]

    #[test]
    fn hostile_records_are_refused_or_make_a_queue_that_adds_up(steps in hostile::steps()) {
        let mut hostile = hostile::Hostile::new(Queue::new(SEED));
        for step in &steps {
            hostile.play(step);
        }
        // And whatever it has come to, a file of it can be read.
        let loaded = load(&save(&hostile.queue), OTHER_SEED);
        assert_same(&hostile.queue, &loaded);
    }
}
