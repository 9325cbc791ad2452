//! What may leave a queue at a moment.

use super::*;

#[test]
fn no_more_leases_are_live_than_concurrency_allows() {
    check("@0 ALTER concurrency=2 | ADD a | ADD b | ADD c | POP -> a#1 | POP -> b#1 | POP -> nil | COUNTS -> 0 1 2 0 | FINISH a L1 -> 1 | POP -> c#1 | POP -> nil");
    check("@0 ADD a | ADD b | ADD c | ALTER concurrency=2 | POP n=5 -> a#1 b#1 | ALTER concurrency=0 | POP n=5 -> c#1");
    check("@0 ADD a | ADD b | ADD c | POP n=3 -> a#1 b#1 c#1 | ADD d | ALTER concurrency=1 | FINISH a L1 | FINISH b L2 | POP -> nil | LOAD | POP -> nil | FINISH c L3 -> 1 | POP -> d#1");
}

/// firecrawl#1197: a worker that dies keeps its place for ever.
#[test]
fn a_concurrency_place_is_free_when_its_lease_is_over() {
    check("@0 ALTER concurrency=1 | ADD a ttr=10 base=50 max=50 | ADD b ttr=10 tries=1 | POP -> a#1 | @9 POP -> nil | @10 POP -> b#1 | @19 POP -> nil | ADD c | @20 POP -> c#1");
    check(
        "@0 ALTER concurrency=1 | ADD a ttr=50 ttl=10 | ADD b | POP -> a#1 | @9 POP -> nil | @10 POP -> b#1",
    );
    // Also where time hasn't passed for those who look, or was taken back.
    check("@0 ALTER concurrency=1 | ADD a ttr=10 | ADD b | POP -> a#1 | @10 COUNTS -> 0 2 0 0 | @9 POP -> nil | @10 POP -> b#1");
}

#[test]
fn a_concurrency_place_is_free_when_its_job_is_given_back_buried_or_deleted() {
    check("@0 ALTER concurrency=1 | ADD a prio=9 | ADD b prio=1 | POP -> b#1 | RELEASE b L1 +9 -> 1 | POP -> a#1 | BURY a L2 | POP -> nil | @9 POP -> b#2 | ADD c | POP -> nil | DEL b | POP -> c#1");
}

#[test]
fn a_late_worker_does_not_get_its_place_back_from_another() {
    check("@0 ALTER concurrency=1 | ADD a ttr=10 base=9 max=9 | ADD b ttr=10 | POP -> a#1 | TOUCH a L1 -> 1 | @10 POP -> b#1 | TOUCH a L1 -> 0 | TOUCH b L2 -> 1 | FINISH a L1 -> 1");
    check("@0 ALTER concurrency=1 | ADD a ttr=10 base=9 max=9 | POP -> a#1 | @12 TOUCH a L1 -> 1");
}

#[test]
fn a_pop_with_noack_takes_no_concurrency_place() {
    check("@0 ALTER concurrency=1 | ADD a | ADD b | ADD c | POP -> a#1 | POP NOACK -> b#1 | POP -> nil");
}

/// bull#1875: jobs that the limiter holds back are delayed, and their order is lost.
#[test]
fn jobs_that_the_rate_holds_back_keep_their_order() {
    check("@0 ALTER rate=1/10 | ADD a | ADD b | ADD c +1 | ADD d prio=0 +5 | POP n=9 -> a#1 | @5 POP -> nil | COUNTS -> 0 3 1 0 | PEEK ready -> d b c | @9 POP -> nil | @10 POP n=9 -> d#1 | @19 POP -> nil | @20 POP -> b#1 | @30 POP -> c#1");
    check("@0 ALTER rate=3/10 | ADD a | ADD b | ADD c | ADD d | POP n=9 -> a#1 | @2 POP -> nil | @3 POP n=9 -> b#1 | @6 POP -> c#1 | @9 POP -> nil | LOAD | POP -> nil | @10 POP -> d#1");
}

#[test]
fn the_rate_counts_retries_and_noack_deliveries() {
    check("@0 ALTER rate=1/10 | ADD a ttr=5 | POP -> a#1 | @5 POP -> nil | @10 POP -> a#2 | RELEASE a L2 | POP -> nil | @20 POP NOACK -> a#3 | ADD b | POP NOACK -> nil | @30 POP NOACK -> b#1");
}

/// A bucket of n tokens, refilled, lets nearly twice as many through within its time.
#[test]
fn a_burst_is_as_long_as_it_is_said_to_be() {
    check("@0 ALTER rate=1/10 burst=3 | ADD a | ADD b | ADD c | ADD d | ADD e | POP n=9 -> a#1 b#1 c#1 | @9 POP -> nil | @10 POP n=9 -> d#1 | @30 ADD f | ADD g | POP n=9 -> e#1 f#1");
}

#[test]
fn a_new_rate_goes_on_from_where_the_old_one_stopped() {
    check("@0 ALTER rate=1/10 | ADD a | ADD b | ADD c | POP -> a#1 | @5 ALTER rate=1/10 | POP -> nil | @9 POP -> nil | @10 POP -> b#1 | ALTER rate=0 | POP -> c#1");
    check("@0 ALTER rate=1/1000 | ADD a | ADD b | POP -> a#1 | @5 ALTER rate=1/10 | POP -> nil | @14 POP -> nil | @15 POP -> b#1");
}

#[test]
fn a_clock_that_was_set_back_prolongs_no_rate_limit() {
    check("@100000 ALTER rate=1/10 | ADD a | ADD b | ADD c | POP -> a#1 | @50 ADD x prio=0 ttr=500 | POP -> x#1 | ADD y | @59 POP -> nil | @60 POP -> y#1");
}

#[test]
fn a_rate_and_a_concurrency_limit_hold_together() {
    check("@0 ALTER rate=1/10 burst=2 concurrency=1 | ADD a ttr=50 | ADD b | ADD c | POP n=9 -> a#1 | @9 POP -> nil | FINISH a L1 | POP n=9 -> b#1 | FINISH b L2 | POP -> nil | @10 POP -> c#1");
}

#[test]
fn the_timer_comes_when_a_limit_lets_a_job_leave() {
    check("@0 ALTER rate=1/10 | ADD a | UPKEEP -> nil | POP NOACK | UPKEEP -> nil | ADD b | UPKEEP -> 10 | @10 UPKEEP -> nil | POP NOACK -> b#1 | ADD c +5 | UPKEEP -> 15 | @15 UPKEEP -> 20");
    check("@0 ALTER concurrency=1 | ADD a ttr=10 | ADD b | POP | UPKEEP -> 10 | @10 UPKEEP -> nil");
}

#[test]
fn a_pop_says_that_concurrency_held_others_back() {
    let mut queue = Queue::new((1, 2));
    let rate = Rate::new(2, span(10), 1);
    let pop = |queue: &mut Queue, now, count| {
        queue.advance(at(now));
        let deliveries = queue.apply(&told(now), &Pop { count, ..Pop::ONE });
        (deliveries.len(), deliveries.lack_places(), queue.blocked_until().map(Time::unix_ms))
    };
    queue.apply(&told(0), &Alter { rate: Some(rate), concurrency: Some(2), ..Alter::default() });
    assert_eq!(pop(&mut queue, 0, 5), (0, false, None), "there is none");
    (0..9).for_each(|n| add(&mut queue, 0, &Add { ttr: Some(span(100)), ..plain(&n.to_string()) }));
    assert_eq!(pop(&mut queue, 0, 1), (1, false, Some(5)), "it wanted no more");
    assert_eq!(pop(&mut queue, 4, 1), (0, false, Some(5)));
    assert_eq!(pop(&mut queue, 5, 5), (1, true, Some(100)));
    assert_eq!(
        (queue.may_leave_by_rate(at(9)), queue.may_leave_by_rate(at(10))),
        (Some(0), Some(1))
    );
    assert_eq!(pop(&mut queue, 100, 1), (1, false, Some(105)));
}

#[test]
fn a_rate_that_takes_the_place_of_another_keeps_its_time_in_parts_of_its_own() {
    let (whole, thirds) =
        (Rate::new(1, span(100), 1).unwrap(), Rate::new(3, span(3_000), 1).unwrap());
    let tat = whole.after(Tat::default(), at(950), 1);
    assert_eq!(whole.next(tat, at(1_000)), at(1_050));
    let tat = thirds.instead_of(&whole, tat, at(1_000));
    assert_eq!(thirds.next(tat, at(1_000)), at(1_050));
    let tat = whole.instead_of(&thirds, tat, at(1_000));
    assert_eq!(whole.next(tat, at(1_000)), at(1_050));
}

#[test]
fn a_rate_that_takes_the_place_of_another_lets_a_job_leave_a_distance_from_now() {
    let (single, burst) =
        (Rate::new(1, span(100), 1).unwrap(), Rate::new(1, span(100), 3).unwrap());
    let tat = single.after(Tat::default(), at(950), 10);
    let tat = burst.instead_of(&single, tat, at(1_000));
    assert_eq!((burst.next(tat, at(1_000)), burst.may_leave(tat, at(1_099))), (at(1_100), 0));
}
