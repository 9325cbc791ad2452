//! Faults in a log, planted: how they are told.

use std::collections::BTreeMap;

use dq::queue::{Circumstances, JobView, Millis, Queue, Time};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::cases;
use crate::draw::{clock, turns};
use crate::log::{Compared, Entry, Follower, LoggedCircumstances};
use crate::operation::Turn;
use crate::pair::Pair;
use crate::told::{Command, Outcome, LAST};
use crate::{OTHER_SEED, TURNS};

/// What is wrong with one entry, where it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Skipped,
    HeardTwice,
    /// A millisecond later than it says.
    Late,
    /// Of an ADD.
    OtherBody,
    OtherPriority,
    OtherTtl,
}

const FAULTS: [Fault; 6] = [
    Fault::Skipped,
    Fault::HeardTwice,
    Fault::Late,
    Fault::OtherBody,
    Fault::OtherPriority,
    Fault::OtherTtl,
];

impl Fault {
    /// What is heard instead of the entry; none when it can't be faulty in this way.
    fn heard(self, entry: &Entry, before: Circumstances) -> Option<Vec<Entry>> {
        let mut other = entry.clone();
        match (self, &mut other.command) {
            (Fault::Skipped, _) => return Some(Vec::new()),
            (Fault::HeardTwice, _) => {
                // The check is that of before the first of the two.
                other.told = None;
                return Some(vec![entry.clone(), other]);
            }
            (Fault::Late, _) => {
                let told = entry.told.map_or(before, |told| told.circumstances);
                let now = told.now.saturating_add(Millis::new(1).unwrap());
                let check = entry.told.map(|told| told.check);
                other.told = Some(LoggedCircumstances {
                    circumstances: Circumstances { now, ..told },
                    check: check?,
                });
            }
            (Fault::OtherBody, Command::Add(add)) => add.body.reverse(),
            (Fault::OtherPriority, Command::Add(add)) => {
                add.options.priority = Some(add.options.priority.unwrap_or(128) ^ 1);
            }
            (Fault::OtherTtl, Command::Add(add)) => {
                add.options.ttl = Some((add.options.ttl.unwrap_or(0) + 1_000).min(LAST));
            }
            (Fault::OtherBody | Fault::OtherPriority | Fault::OtherTtl, _) => return None,
        }
        Some(vec![other])
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Noticed {
    AtOnce,
    /// At a later entry that told.
    Later,
    Never,
    /// By the next entry that told, nothing was different any more.
    Healed,
    /// None did.
    Unsaid,
}

fn log_of(clock: u64, turns: &[Turn]) -> Vec<Entry> {
    let mut pair = Pair::new(clock);
    turns.iter().flat_map(|turn| pair.play(turn)).collect()
}

/// But for when jobs were created, which the check takes in only when they are removed.
fn are_same(one: &Queue, other: &Queue) -> bool {
    let uncreated = |job| JobView { created: Time::ZERO, ..job };
    one.record().without_totals() == other.record().without_totals()
        && one.jobs().map(uncreated).eq(other.jobs().map(uncreated))
}

/// Whether a follower that lacks a job may add it here instead: in the same millisecond, and as one
/// of as many, which is all that the check takes in.
fn makes_up(entry: &Entry) -> bool {
    matches!(&entry.outcome, Outcome::Alike(ids) if ids.iter().any(Option::is_none))
}

/// Plays the rest of a log with a fault in its first entry, beside one without. Who follows has
/// heard what was before. None where the fault can't be made, or be made up for.
fn noticed(follower: &Follower, rest: &[Entry], fault: Fault) -> Option<Noticed> {
    let (mut faulty, mut faithful) = (follower.clone(), follower.clone());
    let (first, rest) = rest.split_first()?;
    let before = faulty.queue().circumstances();
    for entry in fault.heard(first, before)? {
        faulty.hear(&entry);
    }
    faithful.follow(first);
    let mut told = 0;
    for entry in rest {
        let (compared, _) = faulty.hear(entry);
        faithful.follow(entry);
        if compared == Compared::Unsaid {
            if makes_up(entry) {
                return None;
            }
            continue;
        }
        told += 1;
        if compared == Compared::Diverged {
            return Some(if told == 1 { Noticed::AtOnce } else { Noticed::Later });
        }
        if are_same(faulty.queue(), faithful.queue()) {
            return Some(Noticed::Healed);
        }
    }
    Some(if told == 0 { Noticed::Unsaid } else { Noticed::Never })
}

/// What they set isn't mixed into the check, only what comes of it.
fn is_mixed(command: &Command) -> bool {
    !matches!(command, Command::Pause { .. } | Command::Resume { .. } | Command::Alter(_))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_log_entry_that_is_left_out_is_noticed_at_the_next_one_with_a_check(
        clock in clock(),
        turns in turns(TURNS),
        places in prop::collection::vec(any::<prop::sample::Index>(), 3),
    ) {
        let log = log_of(clock, &turns);
        for place in places.iter().filter(|_| !log.is_empty()).map(|place| place.index(log.len())) {
            let mut follower = Follower::new(crate::file::new_queue(OTHER_SEED));
            log[..place].iter().for_each(|entry| follower.follow(entry));
            let noticed = noticed(&follower, &log[place..], Fault::Skipped);
            let is_good = !matches!(noticed, Some(Noticed::Later | Noticed::Never));
            prop_assert!(is_good || !is_mixed(&log[place].command), "{:?} of {:?}", noticed, log[place]);
        }
    }
}

/// `cargo test --release --test model how_often -- --nocapture` shows the table.
#[test]
fn how_often_faults_are_noticed() {
    let mut runner = TestRunner::deterministic();
    let mut draw = |turns_and_clock: &BoxedStrategy<(u64, Vec<Turn>)>| {
        turns_and_clock.new_tree(&mut runner).unwrap().current()
    };
    let strategy = (clock(), turns(TURNS)).boxed();
    let mut table: BTreeMap<(Fault, &str), [usize; 5]> = BTreeMap::new();
    for _ in 0..150 {
        let (clock, turns) = draw(&strategy);
        let log = log_of(clock, &turns);
        let mut follower = Follower::new(crate::file::new_queue(OTHER_SEED));
        for (place, entry) in log.iter().enumerate() {
            // Of many alike, a few will do.
            for fault in FAULTS.into_iter().filter(|_| place % (log.len() / 50 + 1) == 0) {
                if let Some(noticed) = noticed(&follower, &log[place..], fault) {
                    table.entry((fault, entry.command.name())).or_default()[noticed as usize] += 1;
                }
            }
            follower.follow(entry);
        }
    }
    println!("{:14} {:10} at once, later, never, healed, unsaid", "fault", "of");
    for ((fault, name), row) in &table {
        println!("{:14} {name:10} {row:?}", format!("{fault:?}"));
    }
    for ((fault, name), row @ [at_once, later, never, ..]) in &table {
        let is_mixed = !["pause", "resume", "alter"].contains(name);
        let are_few = row.iter().sum::<usize>() < 5;
        if matches!(fault, Fault::Skipped) && is_mixed {
            assert!((*at_once > 0 || are_few) && later + never == 0, "{fault:?} of {name}");
        }
    }
}
