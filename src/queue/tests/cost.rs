//! What shows in no outcome, but in what it costs: memory that is counted, a timer that comes for
//! nothing, jobs that stand in more lines than they have to.

use super::rounds::schedule_of;
use super::*;
use crate::queue::kernel::details::JobSchedule;
use crate::queue::kernel::details::RareDetails;
use crate::queue::lines::placement::Placement;
use crate::queue::value::fate::Fate;

#[test]
fn memory_of_details_is_counted_to_the_byte() {
    let mut queue = Queue::new((1, 2));
    ["plain", "buried"].iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    assert_eq!(queue.store.details_bytes(), 0);
    let without = queue.memory();
    let claim = Claim { id: id("buried"), lease: None };
    queue.apply(&told(0), &Pop { count: 2, ..Pop::ONE });
    queue.apply(&told(0), &Bury { claim, reason: Some(&[b'x'; 100]) });
    assert_eq!(queue.store.details_bytes(), size_of::<RareDetails>() + 100);
    assert!(queue.memory() >= without + queue.store.details_bytes());
    let schedule = schedule_of(&["every=1000"], Some(Due::In(span(5))));
    add(&mut queue, 0, &Add { schedule, ..plain("scheduled") });
    let scheduled = size_of::<RareDetails>() + size_of::<JobSchedule>();
    assert_eq!(queue.store.details_bytes(), size_of::<RareDetails>() + 100 + scheduled);
    let lease = queue.apply(&told(5), &Pop::ONE).iter().next().unwrap().lease;
    let claim = Claim { id: id("scheduled"), lease: Some(lease) };
    let when = WhenReleased::AfterBackoff;
    queue.apply(&told(5), &Release { when, reason: Some(b"later"), ..Release::plain(claim) });
    assert_eq!(queue.store.details_bytes(), size_of::<RareDetails>() + 100 + scheduled + 5);
    delete(&mut queue, "buried");
    assert_eq!(queue.store.details_bytes(), scheduled + 5);
    ["scheduled", "plain"].iter().for_each(|name| delete(&mut queue, name));
    assert_eq!(queue.store.details_bytes(), 0);
}

#[test]
fn a_lease_behind_which_nothing_waits_stands_in_one_line() {
    let policy =
        Policy { backoff: Backoff { base: span(5), max: span(5) }, ..Policy::plain(span(10)) };
    let progress = Progress { stage: Stage::Leased, attempt: 1, ..Progress::default() };
    let lines = |policy, expires_at| {
        let placement = Placement::of(
            &policy,
            &Fate::of(&policy, at(10), &Progress { expires_at, ..progress }, None),
        );
        (placement.expiry.is_some(), placement.lease_end.is_some())
    };
    assert_eq!(lines(Policy::plain(span(10)), None), (false, false));
    assert_eq!(lines(Policy::plain(span(10)), Some(at(11))), (true, false));
    assert_eq!(lines(policy, None), (false, true));
    assert_eq!(lines(policy, Some(at(16))), (true, true));
    // It dies in the moment in which the lease ends: it doesn't wait.
    assert_eq!(lines(policy, Some(at(10))), (false, false));
    assert_eq!(lines(policy, Some(at(11))), (false, true));
}

/// The buckets of these lines are split and merged: each job has to know where it is.
#[test]
fn many_jobs_that_expire_or_wait_for_their_backoff_leave_in_any_order() {
    let backoff = Some(Backoff { base: span(1_000), max: span(1_000) });
    let mut queue = Queue::new((1, 2));
    let names: Vec<String> = (0..1_500).map(|n| n.to_string()).collect();
    // Not in their order, so that buckets are split in the middle.
    for (n, name) in names.iter().enumerate() {
        let ttl = Some(span(50_000 + (n as u64 * 7_919) % 1_500));
        add(&mut queue, 0, &Add { ttl, backoff, ..plain(name) });
    }
    for n in 0..1_500 {
        let ttr = Some(span(10_000 + (n * 7_919) % 1_500));
        assert_eq!(queue.apply(&told(0), &Pop { ttr, ..Pop::ONE }).len(), 1);
    }
    for n in (0..1_500).step_by(3).chain((1..1_500).step_by(3)).chain((2..1_500).step_by(3).rev()) {
        delete(&mut queue, &names[n]);
    }
    assert_eq!((queue.len(), queue.take_events().bug), (0, None));
    assert_eq!(queue.find_wake_at(), None);
}

#[test]
fn a_second_look_in_the_same_millisecond_leaves_the_timer_alone() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { due: Due::In(span(20)), ..plain("a") });
    queue.advance(at(5));
    assert_eq!(queue.find_wake_at(), Some(at(20)));
    queue.advance(at(5));
    assert_eq!(queue.wake_at(), at(20));
    queue.advance(at(4));
    assert_eq!(queue.wake_at(), Time::ZERO, "where time goes back it has to be found out");
}

/// The next job may leave at 100, but there is none that is ready.
#[test]
fn a_rate_brings_no_timer_for_jobs_that_are_not_ready() {
    let rate = Some(Rate::new(1, span(100), 1));
    let without_jobs = |rate| {
        let mut queue = Queue::new((1, 2));
        queue.apply(&told(0), &Alter { rate, ..Alter::default() });
        add(&mut queue, 0, &plain("first"));
        queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE });
        assert_eq!(queue.find_wake_at(), None);
        queue
    };
    let mut queue = without_jobs(rate);
    add(&mut queue, 0, &Add { due: Due::In(span(500)), ..plain("delayed") });
    assert_eq!(queue.wake_at(), at(500));
    add(&mut queue, 0, &plain("ready"));
    assert_eq!(queue.wake_at(), at(100));
    let mut queue = without_jobs(None);
    add(&mut queue, 0, &plain("ready"));
    assert_eq!(queue.wake_at(), Time::MAX);
    let mut queue = without_jobs(rate);
    add(&mut queue, 0, &Add { attempts: Some(Attempts::new(1)), ..plain("dead") });
    assert_eq!(queue.wake_at(), at(100));
    queue.apply(&told(100), &Pop::ONE);
    queue.advance(at(100));
    queue.find_wake_at();
    queue.apply(&told(100), &Bury { claim: Claim { id: id("dead"), lease: None }, reason: None });
    assert_eq!(queue.find_wake_at(), None);
}

#[test]
fn memory_of_a_queue_is_that_of_all_its_parts() {
    let mut queue = Queue::new((1, 2));
    let schedule = schedule_of(&["every=1000"], None);
    add(&mut queue, 0, &Add { schedule, ..plain("scheduled") });
    (0..100).for_each(|n| add(&mut queue, 0, &plain(&n.to_string())));
    let parts = [size_of::<Queue>(), queue.store.memory(), queue.lanes.memory()];
    assert!(parts.iter().all(|part| *part > 50), "{parts:?}");
    assert_eq!(queue.memory(), parts.iter().sum());
}

/// What a star takes is tried byte by byte from behind it: each costs a step.
#[test]
fn a_pattern_costs_one_step_for_each_byte_it_is_compared_with() {
    for (pattern, name, is_match, steps) in [
        ("ab", "ab", true, 3),
        ("*b", "aab", true, 5),
        ("*b", "aaa", false, 5),
        ("a*b*c", "axxbxc", true, 9),
    ] {
        let compared = Glob::new(pattern.as_bytes()).compare(id(name));
        assert_eq!((compared.is_match, compared.steps), (is_match, steps), "{pattern} {name}");
    }
}

#[test]
fn a_run_that_begins_anew_takes_its_reason_along() {
    let mut queue = Queue::new((1, 2));
    let schedule = schedule_of(&["every=100"], Some(Due::At(at(0))));
    let attempts = Some(Attempts::new(1));
    add(&mut queue, 0, &Add { schedule, attempts, ..plain("a") });
    popped(&mut queue, 0);
    let before = queue.store.details_bytes();
    popped(&mut queue, 500);
    let reason = queue.get(id("a")).unwrap().reason.unwrap().len();
    assert_eq!(queue.store.details_bytes(), before + reason);
    delete(&mut queue, "a");
    assert_eq!(queue.store.details_bytes(), 0);
}
