//! What the core promises, each for one course of things. `main.rs` draws such courses at random;
//! under `make fuzz`, what the core does with one decides which are tried next.

use crate::compare::{assert_same, check_sums, compare, compare_all_but_totals};
use crate::file::{load, rewritten, save};
use crate::log::{Entry, Follower};
use crate::operation::Turn;
use crate::pair::Pair;
use crate::subject::at;
use crate::told::LAST;

/// The seeds differ from queue to queue, as they do between servers: they must show in nothing.
pub const SEED: (u64, u64) = (1, 2);
pub const OTHER_SEED: (u64, u64) = (0xdead_beef, 77);

/// Of a course, at most.
pub const TURNS: usize = 60;

/// Follows a log while others look.
fn follow<'l>(
    follower: &mut Follower,
    entries: impl IntoIterator<Item = &'l Entry>,
    looks: &[Option<i64>],
) {
    for (entry, look) in entries.into_iter().zip(looks.iter().cycle()) {
        follower.follow(entry);
        if let Some(skew) = look {
            let time =
                follower.queue().log_state().clock.unix_ms().saturating_add_signed(*skew).min(LAST);
            follower.look(time);
            check_sums(follower.queue(), at(time));
        }
    }
}

pub fn queue_is_its_reference(clock: u64, turns: &[Turn]) {
    let mut pair = Pair::new(clock);
    for turn in turns {
        pair.play(turn);
    }
    check_sums(&pair.subject.queue, at(pair.reference.horizon));
}

pub fn replica_is_its_primary(clock: u64, turns: &[Turn], looks: &[Option<i64>], later: u64) {
    let mut primary = Pair::new(clock);
    let mut replica = Follower::new(crate::file::new_queue(OTHER_SEED));
    for (turn, look) in turns.iter().zip(looks) {
        follow(&mut replica, &primary.play(turn), &[*look]);
        assert_same(&primary.subject.queue, replica.queue());
    }
    // Now the replica is promoted.
    let now = (primary.clock + later).min(LAST);
    replica.queue().advance(at(now));
    primary.advance(now);
    compare_all_but_totals(replica.queue(), &primary.reference);
}

pub fn torn_log_is_what_there_was(clock: u64, turns: &[Turn], looks: &[Option<i64>], whole: usize) {
    let mut primary = Pair::new(clock);
    let (mut log, mut then) = (Vec::new(), None);
    for turn in turns {
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
    let mut loaded = Follower::new(crate::file::new_queue(OTHER_SEED));
    follow(&mut loaded, whole, looks);
    assert_same(&then, loaded.queue());
    // And what is written of it there goes on with the rest.
    let mut from_file = Follower::new(load(&save(loaded.queue()), SEED));
    follow(&mut from_file, rest, looks);
    assert_same(&primary.subject.queue, from_file.queue());
}

pub fn loaded_goes_on_as_saved(clock: u64, before: &[Turn], after: &[Turn], looks: &[Option<i64>]) {
    let mut pair = Pair::new(clock);
    before.iter().for_each(|turn| drop(pair.play(turn)));
    let file = save(&pair.subject.queue);
    let loaded = [load(&file, OTHER_SEED), rewritten(&pair.subject.queue, OTHER_SEED)];
    let mut loaded = loaded.map(|mut queue| {
        assert_eq!(queue.record(), pair.subject.queue.record());
        assert_eq!(&save(&queue), &file);
        queue.advance(at(pair.reference.horizon));
        compare(&queue, &pair.reference);
        Follower::new(queue)
    });
    for turn in after {
        let entries = pair.play(turn);
        for follower in &mut loaded {
            follow(follower, &entries, looks);
            follower.queue().advance(at(pair.reference.horizon));
            compare_all_but_totals(follower.queue(), &pair.reference);
            assert_same(&pair.subject.queue, follower.queue());
        }
    }
}

pub fn copy_goes_on_as_its_original(clock: u64, before: &[Turn], after: &[Turn]) {
    let mut pair = Pair::new(clock);
    before.iter().for_each(|turn| drop(pair.play(turn)));
    let untouched = save(&pair.subject.queue);
    let second_copy = pair.subject.queue.clone();
    let mut copy = Follower::new(pair.subject.queue.clone());
    for turn in after {
        pair.play(turn).iter().for_each(|entry| copy.follow(entry));
        copy.queue().advance(at(pair.reference.horizon));
    }
    compare_all_but_totals(copy.queue(), &pair.reference);
    assert_same(&pair.subject.queue, copy.queue());
    assert_eq!(save(&second_copy), untouched);
}
