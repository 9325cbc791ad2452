//! When the timer has to come, and what it is told.

use super::*;

#[test]
fn the_timer_comes_for_the_next_change_the_end_of_a_pause_and_what_is_to_be_forgotten() {
    check("@0 UPKEEP -> nil | ADD a +20 | UPKEEP -> 20 | ADD b +10 prio=9 | UPKEEP -> 10 | PAUSE 5 | UPKEEP -> 5 | @5 UPKEEP -> 10 | @10 UPKEEP -> 20 | @20 UPKEEP -> nil");
    check(
        "@0 ADD a ttr=10 base=3 max=3 | POP | UPKEEP -> 10 | @10 UPKEEP -> 13 | @13 UPKEEP -> nil",
    );
    check("@0 ADD a tries=1 ttr=10 | ALTER deadkeep=5 | POP | UPKEEP -> 10 | @10 UPKEEP -> 15 | ALTER deadkeep=2 | UPKEEP -> 12 | @12 FORGET -> a | UPKEEP -> nil");
    check(
        "@0 ADD a keep=9 | POP NOACK | UPKEEP -> 9 | @20 UPKEEP -> 9 | FORGET -> a | UPKEEP -> nil",
    );
    check("@0 ADD a | UPKEEP -> nil | PAUSE | UPKEEP -> nil | RESUME | UPKEEP -> nil");
}

#[test]
fn after_each_operation_the_timer_would_come_in_time() {
    let wakes_at = |queue: &Queue, needed: u64| {
        assert_eq!((queue.wake_at(), queue.clone().find_wake_at()), (at(needed), Some(at(needed))));
    };
    let mut queue = Queue::new((1, 2));
    assert_eq!((queue.wake_at(), queue.find_wake_at()), (Time::MAX, None));
    add(&mut queue, 0, &Add { due: Due::In(span(500)), ..plain("late") });
    wakes_at(&queue, 500);
    add(&mut queue, 0, &Add { ttl: Some(span(400)), ..plain("brief") });
    wakes_at(&queue, 400);
    add(
        &mut queue,
        0,
        &Add { ttl: Some(span(300)), due: Due::In(span(300)), ..plain("never ready") },
    );
    wakes_at(&queue, 300);
    queue.apply(&told(0), &Pop { ttr: Some(span(200)), ..Pop::ONE });
    wakes_at(&queue, 200);
    queue.apply(&told(0), &Pause { group: None, span: Some(span(100)) });
    wakes_at(&queue, 100);
    add(&mut queue, 0, &Add { keep: Some(span(50)), priority: Some(0), ..plain("kept") });
    queue.apply(&told(0), &Resume::Queue);
    queue.apply(&told(0), &Pop { mode: Mode::NoAck, ..Pop::ONE });
    wakes_at(&queue, 50);
    queue.apply(&told(0), &Alter { dead_keep: Some(span(20)), ..Alter::default() });
    queue.apply(&told(0), &Bury { claim: Claim { id: id("brief"), lease: None }, reason: None });
    assert!(queue.wake_at() <= at(20));
    assert_eq!((queue.find_wake_at(), queue.wake_at()), (Some(at(20)), at(20)));
}

#[test]
fn the_timer_comes_for_a_group_that_is_held_back_and_not_for_one_that_may_leave() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 5, &Add { group: Some(id("g")), ..plain("a") });
    queue.advance(at(5));
    assert_eq!((queue.find_wake_at(), queue.wake_at()), (None, Time::MAX));
    add(&mut queue, 5, &Add { group: Some(id("h")), ..plain("b") });
    assert_eq!(queue.wake_at(), Time::MAX, "it may leave");
    queue.apply(&told(5), &Pause { group: Some(id("g")), span: Some(span(10)) });
    assert_eq!(queue.wake_at(), at(15));
    queue.apply(&told(5), &Resume::Group(id("g")));
    assert_eq!(queue.wake_at(), at(15), "it may leave again; nobody looked for the next one");
    assert_eq!((queue.find_wake_at(), queue.wake_at()), (None, Time::MAX));
}

#[test]
fn the_timer_comes_in_time_where_time_goes_back() {
    check("@0 PAUSE 100 | @150 UPKEEP -> nil | @50 UPKEEP -> 100");
    check("@0 ADD a +70 | ADD b ttl=80 | @100 UPKEEP -> nil | @50 UPKEEP -> 70 | @75 UPKEEP -> 80");
    let mut queue = Queue::new((1, 2));
    queue.advance(at(100));
    add(&mut queue, 50, &Add { due: Due::In(span(20)), ..plain("a") });
    queue.advance(at(50));
    assert!(queue.wake_at() <= at(70), "{:?}", queue.wake_at());
    assert_eq!(queue.find_wake_at(), Some(at(70)));
}

#[test]
fn a_bound_that_is_too_early_is_found_out() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { due: Due::In(span(20)), ..plain("a") });
    add(&mut queue, 0, &Add { due: Due::In(span(30)), ..plain("b") });
    delete(&mut queue, "a");
    assert_eq!(queue.wake_at(), at(20), "nobody looked for the next one");
    assert_eq!(queue.find_wake_at(), Some(at(30)));
    assert_eq!(queue.wake_at(), at(30));
    delete(&mut queue, "b");
    assert_eq!((queue.find_wake_at(), queue.wake_at()), (None, Time::MAX));
}

#[test]
fn a_loaded_queue_wants_the_timer_at_once() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { due: Due::In(span(20)), ..plain("a") });
    let mut loaded = script::loaded(&queue);
    assert_eq!((loaded.wake_at(), loaded.find_wake_at()), (Time::ZERO, Some(at(20))));
}

#[test]
fn news_say_what_has_become_of_jobs_since_they_were_asked_for() {
    check("@0 NEWS -> | ADD a | NEWS -> ready | NEWS -> | ADD b +5 | NEWS -> | @4 NEWS -> | @5 NEWS -> ready | NEWS ->");
    check("@0 ADD a ttr=5 | POP | NEWS -> ready | @5 NEWS -> ready | POP | RELEASE a L2 +5 | NEWS -> | @10 NEWS -> ready | POP | RELEASE a L3 | NEWS -> ready");
    check("@0 ADD a ttr=5 tries=1 | POP | NEWS -> ready | @5 NEWS -> dead | KICK 1 -> a | NEWS -> ready | POP | BURY a L2 | NEWS -> dead");
    check("@0 ADD a ttl=5 | ADD b +9 ttl=7 | NEWS -> ready | @5 NEWS -> dead | @7 NEWS -> dead | @9 NEWS ->");
    check("@0 ADD a ttr=5 base=3 max=3 | POP | NEWS -> ready | @5 NEWS -> | @8 NEWS -> ready");
}

#[test]
fn news_come_where_time_goes_back_and_on_again() {
    check("@100 NEWS -> | @50 ADD a +20 | NEWS -> | @80 NEWS -> ready");
    check("@0 ADD a ttl=70 | NEWS -> ready | @100 NEWS -> dead | @50 NEWS -> | @80 NEWS -> dead");
}

/// A debug build ends there, so that a test sees it; another goes on, and says so.
#[test]
fn a_bug_that_is_met_is_in_the_news() {
    let mut queue = Queue::new((1, 2));
    let met = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.leave_lines(7)));
    assert_eq!(met.is_err(), cfg!(debug_assertions));
    assert_eq!(queue.take_events().bug, Some("a job to take out of its lines was not found"));
    assert_eq!(queue.take_events().bug, None);
}

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
fn a_job_that_is_delivered_is_news_only_where_its_lease_is_over() {
    check("@0 ADD a | NEWS -> ready | POP | NEWS -> | @59 NEWS -> | @60 NEWS -> ready");
    // For those who look, time has passed further than for the pop.
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &plain("a"));
    queue.advance(at(60));
    queue.take_events();
    queue.find_wake_at();
    popped(&mut queue, 0);
    assert!(queue.take_events().is_any_ready);
    assert_eq!(queue.wake_at(), Time::MAX, "nothing is to come");
}
