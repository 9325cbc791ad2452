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
    let schedule = schedule_of(&["every=100"], Some(Due::At(at(50))));
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
    let schedule = schedule_of(&["every=100"], Some(Due::At(at(0))));
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
    let schedule = schedule_of(&["every=100"], None);
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

#[test]
fn an_expiry_at_the_last_moment_there_is_is_none() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    let job = queue.get(id("a")).unwrap();
    let expires_at = |expiry| {
        let progress = Progress { expires_at: Some(expiry), ..job.progress };
        let record = JobRecord::of(&JobView { progress, ..job }, produce::Naming::Given);
        record.job(b"a", b"body").unwrap().progress.expires_at
    };
    assert_eq!(expires_at(at(5)), Some(at(5)));
    assert_eq!(expires_at(Time::MAX), None);
}

#[test]
fn a_record_without_totals_or_history_has_all_the_rest() {
    let mut queue = Queue::new((1, 2));
    let rate = Some(Rate::new(3, span(100), 2));
    queue.apply(&told(7), &Alter { rate, ttr: Some(span(9)), ..Alter::default() });
    add(&mut queue, 8, &Add { id: None, ..plain("made") });
    popped(&mut queue, 9);
    queue.advance(at(70));
    queue.apply(&told(80), &Pause { group: None, span: None });
    let record = queue.record();
    assert!(record.totals != Totals::default() && record.counted > 0);
    let without_totals = QueueRecord { totals: Totals::default(), counted: 0, ..record };
    assert_eq!(record.without_totals(), without_totals);
    assert_ne!(record.without_history(), without_totals, "the check");
    let Heading { clock, defaults, check } = record.without_history().heading().unwrap();
    let heading = *queue.heading();
    assert_eq!((clock, defaults, check), (heading.clock, heading.defaults, 0));
    let mut other = Queue::new((1, 2));
    other.restore(&QueueRecord { totals: record.totals, counted: record.counted, ..without_totals }).unwrap();
    assert_eq!(other.record(), record);
}

#[test]
fn a_rate_that_takes_the_place_of_another_keeps_its_time_in_parts_of_its_own() {
    let (whole, thirds) = (Rate::new(1, span(100), 1).unwrap(), Rate::new(3, span(3_000), 1).unwrap());
    let tat = whole.after(Tat::default(), at(950), 1);
    assert_eq!(whole.next(tat, at(1_000)), at(1_050));
    let tat = thirds.instead_of(&whole, tat, at(1_000));
    assert_eq!(thirds.next(tat, at(1_000)), at(1_050));
    let tat = whole.instead_of(&thirds, tat, at(1_000));
    assert_eq!(whole.next(tat, at(1_000)), at(1_050));
}

#[test]
fn a_rate_that_takes_the_place_of_another_lets_one_leave_a_distance_from_now() {
    let (single, burst) = (Rate::new(1, span(100), 1).unwrap(), Rate::new(1, span(100), 3).unwrap());
    let tat = single.after(Tat::default(), at(950), 10);
    let tat = burst.instead_of(&single, tat, at(1_000));
    assert_eq!((burst.next(tat, at(1_000)), burst.may_leave(tat, at(1_099))), (at(1_100), 0));
}

#[test]
fn each_fault_of_a_record_is_said_in_words_of_its_own() {
    use RecordError::*;
    let faults =
        [Unreadable, TrailingBytes, Time, Span, Stage, Cause, Lease, Schedule, Limit, Id, TakenId, TooMany];
    let words: std::collections::BTreeSet<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), faults.len());
    assert!(words.iter().all(|words| words.split(' ').count() > 3));
}

#[test]
fn a_record_may_not_bring_the_last_lease_there_is() {
    let with_lease = |number| QueueRecord { last_lease: number, ..QueueRecord::default() }.check();
    assert_eq!(with_lease(Lease::MAX.number() - 1), Ok(()));
    assert_eq!(with_lease(Lease::MAX.number()), Err(RecordError::Lease));
}

#[test]
fn a_job_that_gets_a_schedule_no_longer_expires() {
    check("@0 ADD a ttl=50 ttr=200 | POP | ADD a ttr=200 every=100 ENSURE | @60 GET a -> reserved 200 #1 L1");
    check("@0 ADD a ttl=50 ttr=200 | POP | ADD a ttr=200 every=100 ENSURE | BACK L1 -> 1 | @60 GET a -> ready 0");
}

#[test]
fn a_run_that_waits_for_another_attempt_is_the_last_one_where_there_may_be_no_more() {
    check("@0 ADD a every=100 tries=3 | @100 POP -> a#1 | RELEASE a L1 +50 | ADD a every=100 runs=1 tries=3 ENSURE -> replaced 150 \
         | @150 POP -> a#2 | FINISH a * -> 1 | GET a -> nil");
}

#[test]
fn a_run_behind_one_that_timed_out_is_given_back() {
    check("@0 ADD a every=100 tries=1 ttr=10 | @100 POP -> a#1 | @200 POP NOACK -> a#1 | BACK L2 -> 1");
}

#[test]
fn a_queue_says_whether_something_large_was_removed() {
    let mut queue = Queue::new((1, 2));
    let large = vec![b'x'; 1 << 20];
    add(&mut queue, 0, &Add { body: &large, ..plain("large") });
    assert!(!queue.has_removed());
    delete(&mut queue, "large");
    assert!(queue.has_removed());
    queue.take_removed();
    assert!(!queue.has_removed());
}
