//! The one way to change a queue: what comes of an operation follows from the queue, the operation
//! and its circumstances, and from nothing else.

use super::*;

fn two_jobs() -> Queue {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 10, &plain("a"));
    add(&mut queue, 10, &Add { due: Due::In(span(50)), ..plain("b") });
    queue
}

/// What is in files and in the log.
fn whole(queue: &Queue) -> (QueueRecord, Vec<JobView<'_>>) {
    (queue.record(), queue.jobs().collect())
}

#[test]
fn what_an_operation_does_follows_from_its_own_time_not_from_that_of_readers() {
    for horizon in [0, 10, 30, 59, 60, 1_000, Time::MAX.unix_ms()] {
        let mut queue = two_jobs();
        let mut elsewhere = queue.clone();
        elsewhere.advance(at(horizon));
        assert_eq!(popped(&mut queue, 30), popped(&mut elsewhere, 30));
        for queue in [&mut queue, &mut elsewhere] {
            assert!(
                queue.apply(&told(59), &Pop::ONE).is_empty(),
                "b is not due, whoever has seen it ready"
            );
            popped(queue, 60);
            assert!(queue.apply(&told(89), &Pop::ONE).is_empty(), "the leases are good");
            let kicked = KickJob { ids: Ids::from_slice(&[id("a"), id("b")]) };
            assert_eq!(queue.apply(&told(89), &kicked), Affected(0), "and nobody is dead");
        }
        assert_eq!(queue.record().without_totals(), elsewhere.record().without_totals());
        assert!(queue.jobs().eq(elsewhere.jobs()));
    }
}

#[test]
fn an_operation_that_changes_nothing_leaves_no_trace() {
    let mut queue = two_jobs();
    let before = queue.clone();
    let backoff = Backoff { base: span(7), max: span(7) };
    let defaults = Defaults { ttr: span(7), attempts: Attempts::new(7), backoff };
    let told = Circumstances { now: at(5), defaults, lease_floor: Lease::new(77) };
    let claim = Claim { id: id("a"), lease: None };
    let ids = &[id("nobody")];
    assert_eq!(queue.apply(&told, &plain("a")), Added::Taken);
    assert!(queue.apply(&told, &Pop::ONE).is_empty(), "nothing is ready by then");
    assert_eq!(
        queue.apply(&told, &Finish { claims: Claims::from_slice(&[claim, claim]) }),
        Affected(0)
    );
    assert_eq!(queue.apply(&told, &Release::plain(claim)), Affected(0));
    assert_eq!(
        queue.apply(&told, &Touch { claim, ttr: None, checkpoint: Checkpoint::NONE }),
        Affected(0)
    );
    assert_eq!(queue.apply(&told, &Bury { claim, reason: Some(b"why") }), Affected(0));
    assert_eq!(
        queue.apply(&told, &Remove { ids: Ids::from_slice(ids), counted_as: Removal::Deleted }),
        Affected(0)
    );
    assert_eq!(queue.apply(&told, &KickJob { ids: Ids::from_slice(ids) }), Affected(0));
    assert_eq!(queue.apply(&told, &Resume::Queue), Resumed::Pause(false));
    assert_eq!(
        queue.apply(&told, &Remove { ids: Ids::from_slice(ids), counted_as: Removal::Purged }),
        Affected(0)
    );
    let record = JobRecord::of(&queue.get(id("b")).unwrap());
    let unknown = Effect::Jobs(vec![(b"new", b"x", record.clone()), (b"", b"x", record)]);
    assert_eq!(queue.apply(&told, &unknown), Err(RecordError::Id));
    assert_eq!(whole(&queue), whole(&before));
    assert_eq!(queue.log_state(), before.log_state());
}

#[test]
fn the_heading_is_where_the_log_stands() {
    let mut queue = Queue::new((1, 2));
    assert!(queue.log_state().implies(&Circumstances::default()));
    assert_eq!(queue.circumstances(), Circumstances::default());
    add(&mut queue, 10, &plain("a"));
    assert_eq!(queue.circumstances(), told(10));
    assert!(queue.log_state().implies(&told(10)));
    let others = [
        told(9),
        told(11),
        Circumstances { lease_floor: Lease::new(1), ..told(10) },
        Circumstances { defaults: Defaults::default(), ..told(10) },
        Circumstances {
            defaults: Defaults { attempts: Attempts::new(1), ..told(10).defaults },
            ..told(10)
        },
        Circumstances {
            defaults: Defaults {
                backoff: Backoff { base: span(1), max: span(1) },
                ..told(10).defaults
            },
            ..told(10)
        },
    ];
    for other in others {
        assert!(!queue.log_state().implies(&other), "{other:?}");
    }
    let floor = Circumstances { lease_floor: Lease::new(99_999), ..told(7) };
    queue.apply(&floor, &Pause { group: None, span: None });
    assert_eq!(
        queue.circumstances(),
        told(7),
        "a floor is told once: the queue keeps it as its last lease"
    );
    assert_eq!(queue.last_lease(), Some(Lease::new(99_999)));
}

#[test]
fn queues_that_did_the_same_come_to_the_same_check_and_others_do_not() {
    let base = two_jobs();
    let after = |change: &dyn Fn(&mut Queue)| {
        let mut queue = base.clone();
        change(&mut queue);
        queue.log_state().check
    };
    let claim = Claim { id: id("a"), lease: None };
    let release = |queue: &mut Queue, ms| {
        popped(queue, 20);
        let when = WhenReleased::After(span(ms));
        queue.apply(&told(20), &Release { when, ..Release::plain(claim) });
    };
    let mut checks = vec![
        after(&|_| ()),
        after(&|queue| assert_ne!(popped(queue, 20), Lease::default())),
        after(&|queue| assert_ne!(popped(queue, 21), Lease::default())),
        after(&|queue| drop(queue.apply(&told(20), &Pop { ttr: Some(span(9)), ..Pop::ONE }))),
        after(&|queue| drop(queue.apply(&told(20), &Pop { mode: Mode::NoAck, ..Pop::ONE }))),
        after(&|queue| release(queue, 0)),
        after(&|queue| release(queue, 1)),
        after(&|queue| delete(queue, "a")),
        after(&|queue| add(queue, 10, &plain("c"))),
        after(&|queue| add(queue, 11, &plain("c"))),
        after(&|queue| add(queue, 10, &Add { due: Due::In(span(2)), ..plain("c") })),
        after(&|queue| {
            assert!(queue
                .apply(&told(13), &KickJob { ids: Ids::from_slice(&[id("b")]) })
                .has_changed())
        }),
    ];
    assert_eq!(checks[0], two_jobs().log_state().check);
    checks.sort_unstable();
    checks.dedup();
    assert_eq!(checks.len(), 12);
}

#[test]
fn whose_turn_it_was_counts_in_the_check() {
    let queue_of = |first: &str| {
        let mut queue = Queue::new((1, 2));
        let later = Due::In(span(1_000));
        add(&mut queue, 0, &Add { group: Some(id(first)), due: later, ..plain("x") });
        add(&mut queue, 0, &Add { group: Some(id("g")), ..plain("a") });
        queue
    };
    // In the one the group is the first that there was, in the other the second.
    let (mut one, mut other) = (queue_of("g"), queue_of("h"));
    assert_eq!(one.log_state(), other.log_state());
    assert_eq!(popped(&mut one, 1), popped(&mut other, 1));
    assert_ne!(one.log_state(), other.log_state());
}

#[test]
fn a_check_that_differs_is_said_once() {
    let (mut queue, other) = (two_jobs(), Queue::new((3, 4)));
    assert!(queue.compare_checksum(queue.log_state().check));
    assert!(!queue.compare_checksum(other.log_state().check));
    assert!(queue.compare_checksum(other.log_state().check), "from there on it is theirs");
}

#[test]
fn the_heading_survives_a_file() {
    let mut queue = two_jobs();
    popped(&mut queue, 33);
    let loaded = script::loaded(&queue);
    assert_eq!(loaded.log_state(), queue.log_state());
    assert_eq!(loaded.circumstances(), told(33));
}

/// What an AOF is rewritten to.
#[test]
fn the_heading_survives_a_log_of_its_records() {
    let mut queue = two_jobs();
    popped(&mut queue, 33);
    let mut anew = Queue::new((3, 4));
    let jobs = queue.jobs().map(|job| (job.id.bytes(), job.body, JobRecord::of(&job))).collect();
    anew.apply(&anew.circumstances(), &Effect::Jobs(jobs)).unwrap();
    anew.apply(&anew.circumstances(), &Effect::Queue(queue.record())).unwrap();
    assert_eq!(whole(&anew), whole(&queue));
}

/// Its group is idle then, at which the timer is to look.
#[test]
fn a_block_with_an_id_twice_puts_the_second_job() {
    let mut one = Queue::new((1, 2));
    add(&mut one, 5, &Add { group: Some(id("red")), ..plain("a") });
    let (with_group, other) = (one.get(id("a")).unwrap(), two_jobs());
    let without = other.jobs().next().unwrap();
    let jobs = vec![
        (&b"a"[..], &b"x"[..], JobRecord::of(&with_group)),
        (b"a", b"y", JobRecord::of(&without)),
    ];
    let mut queue = Queue::new((1, 2));
    queue.apply(&queue.circumstances(), &Effect::Jobs(jobs)).unwrap();
    assert_eq!((queue.len(), queue.get(id("a")).unwrap().body), (1, &b"y"[..]));
    assert!(queue.wake_at() <= queue.clone().find_wake_at().unwrap());
}

#[test]
fn a_pop_hands_out_jobs_until_their_bytes_reach_the_limit() {
    let mut queue = Queue::new((1, 2));
    let body = vec![b'x'; POP_BYTES_MAX / 4 + 1];
    for name in ["a", "b", "c", "d", "e", "f"] {
        add(&mut queue, 0, &Add { body: &body, ..plain(name) });
    }
    let pop =
        |queue: &mut Queue, mode| queue.apply(&told(0), &Pop { count: 9, ttr: None, mode }).len();
    assert_eq!(pop(&mut queue.clone(), Mode::NoAck), 4);
    assert_eq!((pop(&mut queue, Mode::Lease), pop(&mut queue, Mode::Lease)), (4, 2));
}

#[test]
fn a_pop_hands_out_no_more_jobs_than_the_limit() {
    let mut queue = Queue::new((1, 2));
    (0..POP_JOBS_MAX + 5).for_each(|n| add(&mut queue, 0, &plain(&n.to_string())));
    let all = Pop { count: usize::MAX, ..Pop::ONE };
    assert_eq!(queue.apply(&told(0), &all).len(), POP_JOBS_MAX);
    assert_eq!(queue.apply(&told(0), &all).len(), 5);
}

/// An entry of a log can come to a queue that isn't there any more, where nobody has told a
/// default. A job without a TTR was written to a file that could not be loaded.
#[test]
fn a_job_has_a_ttr_when_no_command_gave_one() {
    let mut queue = Queue::new((0, 0));
    queue.apply(&Circumstances::default(), &plain("a"));
    let record = JobRecord::of(&queue.jobs().next().unwrap());
    assert!(record.job(b"a", b"body").is_ok(), "{record:?}");
}

/// A round of wyhash, as in docs/format.md.
fn stirred(check: u64, word: u64) -> u64 {
    let product =
        u128::from(check ^ 0xa076_1d64_78bd_642f) * u128::from(word ^ 0xe703_7ed1_a0b4_28db);
    product as u64 ^ (product >> 64) as u64
}

/// Of words whose parts overlap, too.
#[test]
fn a_check_is_stirred_by_every_part_of_what_an_operation_comes_to() {
    let check_after = |mix: &dyn Fn(&mut Checksum)| {
        let mut check = Checksum::default();
        mix(&mut check);
        check.0
    };
    let progress = Progress {
        stage: Stage::Leased,
        attempt: 0x8000_0001,
        lease: Some(Lease::new(0x1f_ffff_ffff_ffff)),
        expires_at: None,
    };
    for (stage, number) in
        [(Stage::Waiting, 0), (Stage::Leased, 1), (Stage::Dead, 2), (Stage::Done, 3)]
    {
        assert_eq!(
            check_after(&|check| check.placement(Time::MAX, &Progress { stage, ..progress })),
            stirred(
                stirred(0, 0xffff_ffff_ffff | number << 56),
                0x1f_ffff_ffff_ffff ^ 0x8000_0001 << 32
            )
        );
    }
    let round = |runs, missed, failed| RunState {
        anchor: at(5),
        occurrence: at(77),
        next: at(88),
        runs,
        missed,
        failed,
    };
    for (runs, missed, failed) in
        [(1, 2, 3), (u32::MAX, u32::MAX, u32::MAX), (5, 0x5_0001, 0x3_0007)]
    {
        let counts = u64::from(runs) << 32 ^ u64::from(missed) << 16 ^ u64::from(failed);
        assert_eq!(
            check_after(&|check| check.run_state(&round(runs, missed, failed), at(66))),
            stirred(stirred(stirred(stirred(0, 66), 77), 88), counts)
        );
    }
    assert_eq!(check_after(&|check| check.departures((6, 7))), stirred(stirred(0, 6), 7));
}
