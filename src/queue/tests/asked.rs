//! What those around a queue ask of it, and of what came of an operation.

use super::rounds::schedule_of;
use super::*;

#[test]
fn the_horizon_is_where_time_was_let_pass_to() {
    let mut queue = Queue::new((1, 2));
    assert_eq!(queue.horizon(), Time::ZERO);
    queue.advance(at(70));
    assert_eq!(queue.horizon(), at(70));
    queue.advance(at(60));
    assert_eq!(queue.horizon(), at(60));
}

#[test]
fn leases_of_a_moment_begin_at_a_number_made_of_it() {
    assert_eq!(Queue::lease_at(at(0)), Lease::default());
    assert_eq!(Queue::lease_at(at(3)), Lease::new(3 * 2_048));
    assert_eq!(Queue::lease_at(Time::MAX), Lease::MAX);
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 3, &plain("a"));
    assert_eq!(popped(&mut queue, 3), Queue::lease_at(at(3)));
}

#[test]
fn deliveries_say_whether_they_were_finished_by_that() {
    let mut queue = Queue::new((1, 2));
    ["a", "b"].iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    assert!(!queue.apply(&told(0), &Pop::ONE).are_finished());
    assert!(queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE }).are_finished());
}

#[test]
fn a_delivery_is_called_by_its_occurrence_or_by_when_it_was_due() {
    let (rule, starts) = schedule_of(&["every=100"], Some(Due::At(at(50)))).unwrap();
    let schedule = Some(NewSchedule { rule: &rule, starts });
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { schedule, ..plain("scheduled") });
    add(&mut queue, 0, &Add { due: Due::In(span(60)), ..plain("once") });
    let occurrences = |queue: &mut Queue, now| -> Vec<Time> {
        let popped = queue.apply(&told(now), &Pop { count: 9, ..Pop::ONE });
        popped.iter().map(|delivery| delivery.occurrence()).collect()
    };
    assert_eq!(occurrences(&mut queue, 70), [at(50), at(60)]);
    // Another attempt at the same occurrence; of the other job the lease ended then.
    assert_eq!(occurrences(&mut queue, 130), [at(50), at(130)]);
}

#[test]
fn what_was_finished_by_being_handed_out_stays_while_it_is_kept_or_comes_back() {
    let (rule, starts) = schedule_of(&["every=100"], Some(Due::At(at(0)))).unwrap();
    let schedule = Some(NewSchedule { rule: &rule, starts });
    let mut queue = Queue::new((1, 2));
    let stays = |queue: &mut Queue, mode| {
        let popped = queue.apply(&told(7), &Pop { mode, ..Pop::ONE });
        let mut popped = popped.iter();
        popped.next().unwrap().stays(queue)
    };
    add(&mut queue, 7, &plain("gone"));
    assert!(!stays(&mut queue, Mode::NoAck));
    add(&mut queue, 7, &Add { keep: Some(span(30)), ..plain("kept") });
    assert!(stays(&mut queue, Mode::NoAck));
    add(&mut queue, 7, &plain("leased"));
    assert!(!stays(&mut queue, Mode::Lease));
    add(&mut queue, 7, &Add { schedule, ..plain("scheduled") });
    assert!(stays(&mut queue, Mode::NoAck));
}

/// A round of wyhash, as in docs/format.md.
fn stirred(check: u64, word: u64) -> u64 {
    let product = u128::from(check ^ 0xa076_1d64_78bd_642f) * u128::from(word ^ 0xe703_7ed1_a0b4_28db);
    product as u64 ^ (product >> 64) as u64
}

/// Of words whose parts overlap, too.
#[test]
fn a_check_is_stirred_by_every_part_of_what_an_operation_comes_to() {
    let check_after = |mix: &dyn Fn(&mut Heading)| {
        let mut heading = Heading::default();
        mix(&mut heading);
        heading.check
    };
    let progress = Progress {
        stage: Stage::Leased,
        attempt: 0x8000_0001,
        lease: Some(Lease::new(0x1f_ffff_ffff_ffff)),
        expires_at: None,
    };
    for (stage, number) in [(Stage::Waiting, 1), (Stage::Leased, 2), (Stage::Dead, 3), (Stage::Done, 4)] {
        assert_eq!(
            check_after(&|heading| heading.mix_place(Time::MAX, &Progress { stage, ..progress })),
            stirred(stirred(0, 0xffff_ffff_ffff | number << 56), 0x1f_ffff_ffff_ffff ^ 0x8000_0001 << 32)
        );
    }
    let round = |runs, missed, failed| Round {
        anchor: at(5),
        occurrence: at(77),
        next: at(88),
        runs,
        missed,
        failed,
    };
    for (runs, missed, failed) in [(1, 2, 3), (u32::MAX, u32::MAX, u32::MAX), (5, 0x5_0001, 0x3_0007)] {
        let counts = u64::from(runs) << 32 ^ u64::from(missed) << 16 ^ u64::from(failed);
        assert_eq!(
            check_after(&|heading| heading.mix_round(&round(runs, missed, failed), at(66))),
            stirred(stirred(stirred(stirred(0, 66), 77), 88), counts)
        );
    }
    assert_eq!(check_after(&|heading| heading.mix_departures((6, 7))), stirred(stirred(0, 6), 7));
}

#[test]
fn a_page_behind_nothing_is_the_first_one() {
    let mut queue = Queue::new((1, 2));
    ["a", "b", "c"].iter().for_each(|name| add(&mut queue, 0, &plain(name)));
    let page = |after| queue.peek_after(State::Ready, &after, 2).map(|slots| slots.len());
    assert_eq!(page(After::default()), Some(2));
    assert_eq!(page(After { id: Some(id("b")), ..After::default() }), Some(1));
    assert_eq!(page(After { id: Some(id("nobody")), ..After::default() }), None);
}

#[test]
fn a_job_with_a_schedule_outlives_its_attempts() {
    let (rule, starts) = schedule_of(&["every=100"], None).unwrap();
    let schedule = Some(NewSchedule { rule: &rule, starts });
    let attempts = Some(Attempts::new(1));
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { schedule, attempts, ..plain("scheduled") });
    add(&mut queue, 0, &Add { attempts, ..plain("once") });
    queue.apply(&told(1_000), &Pop { count: 2, ..Pop::ONE });
    let outlives = |name| queue.get(id(name)).unwrap().outlives_its_attempts();
    assert_eq!((outlives("scheduled"), outlives("once")), (true, false));
}

#[test]
fn a_lease_that_has_run_out_is_settled_in_that_millisecond_and_the_expiry_stays() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { ttl: Some(span(500)), ttr: Some(span(10)), ..plain("a") });
    popped(&mut queue, 0);
    let job = queue.get(id("a")).unwrap();
    assert_eq!(job.settled(at(9)), job);
    let progress = Progress { attempt: 1, expires_at: Some(at(500)), ..Progress::default() };
    assert_eq!(job.settled(at(10)), JobView { progress, time: at(10), tally: job.tally_at(at(10)), ..job });
}

#[test]
fn a_job_that_is_handed_out_is_news_only_where_its_lease_is_over() {
    check("@0 ADD a | NEWS -> ready | POP | NEWS -> | @59 NEWS -> | @60 NEWS -> ready");
    // For those who look, time has passed further than for the pop.
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    queue.advance(at(60));
    queue.take_news();
    queue.find_wake_at();
    popped(&mut queue, 0);
    assert!(queue.take_news().is_any_ready);
    assert_eq!(queue.wake_at(), Time::MAX, "nothing is to come");
}

#[test]
fn a_queue_is_empty_when_it_has_no_job_in_any_state() {
    let mut queue = Queue::new((1, 2));
    assert!(queue.is_empty());
    add(&mut queue, 0, &plain("a"));
    assert!(!queue.is_empty());
    popped(&mut queue, 0);
    assert!(!queue.is_empty());
    delete(&mut queue, "a");
    assert!(queue.is_empty());
}
