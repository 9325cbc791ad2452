//! All readers of a job's fate agree: what its lines say of it at any time is its state then.

use proptest::prelude::*;

use super::*;
use crate::queue::value::ids::Lease;
use crate::queue::value::policy::{Attempts, Backoff};
use crate::queue::value::state::{Progress, State};
use crate::queue::value::time::Millis;

/// The state that its lines give a job.
fn state_by_lines(placement: &Placement, now: Time) -> State {
    let Placement { main_line, time, kind, window, .. } = *placement;
    let is_over = window.closes < Time::MAX && window.closes <= now;
    match main_line {
        MainLine::Dead => State::Dead,
        MainLine::Done => State::Done,
        MainLine::Held if is_over => State::Dead,
        MainLine::Held => State::Held,
        MainLine::Dying if time <= now => State::Dead,
        MainLine::Lane(_) | MainLine::Grouped(_) if is_over => State::Dead,
        MainLine::Lane(_) | MainLine::Grouped(_) if time <= now => State::Ready,
        MainLine::Lane(_) | MainLine::Grouped(_) | MainLine::Dying => match kind {
            EntryKind::Waiting => State::Delayed,
            EntryKind::Leased => State::Reserved,
            EntryKind::LeasedThenWaiting if now < window.opens => State::Reserved,
            EntryKind::LeasedThenWaiting => State::Delayed,
        },
    }
}

fn at(ms: u64) -> Time {
    Time::new(ms).unwrap()
}

fn span(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

prop_compose! {
    /// Small numbers meet often.
    fn policies()(attempts in 0..3u32, base in 0..3u64, late in 0..3u64, keep in 0..3u64) -> Policy {
        let backoff = Backoff { base: span(base), max: span(4) };
        Policy {
            attempts: Attempts::new(attempts),
            backoff,
            late: span(late),
            keep: span(keep),
            ..Policy::plain(span(5))
        }
    }
}

prop_compose! {
    fn progresses()(stage in 0..5u8, attempt in 0..4u32, expires_at in prop::option::of(0..16u64)) -> Progress {
        let stage = Stage::of(stage).unwrap();
        let is_leased = stage == Stage::Leased;
        Progress {
            stage,
            attempt: attempt.max(u32::from(is_leased)),
            lease: is_leased.then(|| Lease::new(7)),
            // Those that are over don't expire.
            expires_at: expires_at.filter(|_| !matches!(stage, Stage::Dead | Stage::Done)).map(at),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn lines_and_fate_agree_at_all_times(
        policy in policies(), progress in progresses(), time in 0..12u64,
        next_run in prop::option::of(0..16u64),
    ) {
        // A schedule has a LATE of its own.
        let policy = if next_run.is_some() { Policy { late: Millis::ZERO, ..policy } } else { policy };
        let fate = Fate::of(&policy, at(time), &progress, next_run.map(at));
        let placement = Placement::of(&policy, &fate);
        for now in (0..40).map(at) {
            prop_assert_eq!(
                state_by_lines(&placement, now), fate.state(now),
                "at {}: {:?} and {:?}", now.unix_ms(), placement, fate
            );
            let has_died = fate.death.is_some_and(|(time, _)| time <= now);
            let is_dead = has_died || progress.stage == Stage::Dead;
            prop_assert_eq!(is_dead, fate.state(now) == State::Dead);
            if fate.state(now) == State::Ready {
                prop_assert!(fate.due <= now && fate.lease_end.is_none_or(|end| end <= now));
            }
        }
        // A job is in a side line only for what its main line can't say.
        prop_assert_eq!(placement.expiry.is_some(), placement.window.closes < Time::MAX);
        prop_assert_eq!(placement.lease_end.is_some(), placement.kind == EntryKind::LeasedThenWaiting);
    }

    #[test]
    fn a_job_that_was_never_delivered_takes_the_short_way(policy in policies(), time in 0..12u64) {
        let policy = Policy { late: Millis::ZERO, ..policy };
        let fate = Fate::of(&policy, at(time), &Progress::default(), None);
        prop_assert_eq!(Placement::of(&policy, &fate), Placement::waiting(&policy, at(time)));
    }
}
