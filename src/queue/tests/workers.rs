//! What workers say of a job that was delivered to them, and what becomes of it when they say
//! nothing.

use super::*;

#[test]
fn a_released_job_is_ready_again_and_its_lease_is_good_for_nothing() {
    check(
        "@0 ADD a | POP -> a#1 | @5 RELEASE a L1 -> 1 | GET a -> ready 5 #1 | RELEASE a L1 -> 0 | TOUCH a L1 -> 0 \
         | BURY a L1 -> 0 | FINISH a L1 -> 0 | FINISH a * -> 0 | POP -> a#2 | FINISH a L1 -> 0 | FINISH a L2 -> 1",
    );
    check("@0 ADD a | POP | @5 RELEASE a * -> 1 | GET a -> ready 5 #1");
    check("@0 ADD a | ADD b | POP -> a#1 | RELEASE a L1 | ORDER -> b a | POP -> b#1 | POP -> a#2");
}

#[test]
fn a_released_job_waits_for_the_delay_that_was_asked_for() {
    check("@0 ADD a | POP | @5 RELEASE a L1 +10 -> 1 | GET a -> delayed 15 #1 | NEXT -> 15 | @14 POP -> nil | @15 POP -> a#2");
    check("@0 ADD a base=3 max=3 | POP | RELEASE a L1 +0 | GET a -> ready 0 #1 | POP | RELEASE a L2 +9 | GET a -> delayed 9 #2");
    check(
        "@5 ADD a | POP | RELEASE a L1 +MAX | GET a -> delayed MAX #1 | @MAX GET a -> ready MAX #1",
    );
}

#[test]
fn without_a_delay_a_released_job_waits_for_its_backoff() {
    check(
        "@0 ADD a base=1 max=3 | POP | RELEASE a L1 | GET a -> delayed 1 #1 | @1 POP -> a#2 | RELEASE a L2 -> 1 \
         | GET a -> delayed 3 #2 | @3 POP -> a#3 | RELEASE a L3 | GET a -> delayed 6 #3 | @6 POP -> a#4",
    );
}

#[test]
fn a_job_released_at_its_last_attempt_is_dead_and_says_why() {
    check("@0 ADD a tries=1 | POP | @3 RELEASE a L1 +10 -> 1 | GET a -> dead 3 #1 | WHY a -> no attempts left | COUNTS -> 0 0 0 1 | NEXT -> nil | @99 POP -> nil");
    check("@0 ADD a tries=2 | POP | RELEASE a L1 rain -> 1 | GET a -> ready 0 #1 | WHY a -> rain | POP -> a#2 | RELEASE a L2 +5 snow | GET a -> dead 0 #2 | WHY a -> snow");
    check("@0 ADD a tries=2 | POP | RELEASE a L1 rain | POP | RELEASE a L2 | WHY a -> rain");
}

#[test]
fn a_job_released_unbegun_has_that_attempt_again_at_once() {
    check("@0 ADD a tries=1 base=9 max=9 | POP -> a#1 | @3 UNBEGUN a L1 -> 1 | GET a -> ready 3 | FINISH a L1 -> 0 | POP -> a#1");
    check("@0 ADD a tries=2 | POP | RELEASE a L1 rain | POP -> a#2 | UNBEGUN a L2 -> 1 | GET a -> ready 0 #1 | WHY a -> rain | POP -> a#2");
    check("@0 ADD a ttr=10 tries=1 | POP | @20 GET a -> dead 10 #1 L1 | UNBEGUN a L1 -> 1 | POP -> a#1");
    check("@0 ADD a ttr=10 | POP | @10 POP | UNBEGUN a L1 -> 0 | DEL a | UNBEGUN a L2 -> 0");
    check("@0 ADD a ttl=10 | POP | @10 UNBEGUN a L1 -> 0 | GET a -> dead 60 #1 L1");
}

#[test]
fn the_reason_of_a_job_stays_until_there_is_another_one() {
    check("@0 ADD a | WHY a -> nil | POP | RELEASE a L1 rain | POP | WHY a -> rain | RELEASE a L2 +5 | WHY a -> rain | LOAD | WHY a -> rain \
         | @5 POP -> a#3 | RELEASE a L3 snow | WHY a -> snow | ADD a REPLACE | WHY a -> nil");
}

#[test]
fn a_job_can_be_released_after_its_ttr_until_it_is_delivered_again() {
    check("@0 ADD a ttr=10 | POP | @50 GET a -> ready 10 #1 L1 | RELEASE a L1 -> 1 | GET a -> ready 50 #1");
    check("@0 ADD a ttr=10 | POP | @10 POP -> a#2 | RELEASE a L1 -> 0 | GET a -> reserved 20 #2 L2 | RELEASE a L2 -> 1");
    check("@0 ADD a ttr=10 tries=1 | POP | @20 GET a -> dead 10 #1 L1 | RELEASE a L1 late -> 1 | GET a -> dead 10 #1 | WHY a -> late | MORE_TOTALS -> 1 0 1 0 0");
}

#[test]
fn a_client_without_the_lease_changes_nothing_about_a_job() {
    check("@0 ADD a | ADD b +9 | RELEASE a * -> 0 | TOUCH a * -> 0 | BURY a * -> 0 | RELEASE b * -> 0 | TOUCH nobody * -> 0 | RELEASE nobody * -> 0 | BURY nobody * -> 0 \
         | POP -> a#1 | RELEASE b L1 -> 0 | TOUCH b L1 -> 0 | BURY b L1 -> 0 | COUNTS -> 1 0 1 0");
}

#[test]
fn when_the_ttr_runs_out_a_job_waits_for_its_backoff() {
    check(
        "@0 ADD a ttr=10 base=2 max=9 | POP | NEXT -> 10 | @9 GET a -> reserved 10 #1 L1 | COUNTS -> 0 0 1 0 \
         | @10 GET a -> delayed 10 #1 L1 | COUNTS -> 1 0 0 0 | NEXT -> 12 | @11 POP -> nil \
         | @12 GET a -> ready 10 #1 L1 | COUNTS -> 0 1 0 0 | POP -> a#2 | GET a -> reserved 22 #2 L2",
    );
    check("@0 ADD a ttr=10 base=3 max=3 | ADD b +12 | ADD c +13 | ADD d +14 | POP -> a#1 | @20 POP -> b#1 | POP -> c#1 | POP -> a#2 | POP -> d#1");
    check("@0 ADD a ttr=10 base=3 max=3 tries=1 | POP | NEXT -> 10 | @10 COUNTS -> 0 0 0 1 | NEXT -> nil");
    check("@5 ADD a ttr=5 base=MAX max=MAX | POP | GET a -> reserved 10 #1 L1 | @10 GET a -> delayed 10 #1 L1 | @MAX GET a -> ready 10 #1 L1");
    check("@5 ADD a ttr=MAX base=MAX max=MAX | POP | GET a -> reserved MAX #1 L1 | NEXT -> MAX | @MAX GET a -> ready MAX #1 L1");
}

#[test]
fn a_lease_is_good_in_the_backoff_after_it() {
    let waiting = "@0 ADD a ttr=10 base=3 max=3 | POP | @11 COUNTS -> 1 0 0 0";
    check(&format!("{waiting} | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0 | NEXT -> nil"));
    check(&format!(
        "{waiting} | TOUCH a L1 -> 1 | GET a -> reserved 21 #1 L1 | NEXT -> 21 | @21 NEXT -> 24"
    ));
    check(&format!("{waiting} | RELEASE a L1 +0 -> 1 | GET a -> ready 11 #1"));
    check(&format!("{waiting} | BURY a L1 -> 1 | GET a -> dead 11 #1 | NEXT -> nil"));
    check(&format!("{waiting} | DEL a -> 1 | NEXT -> nil | COUNTS -> 0 0 0 0"));
    check(&format!("{waiting} | ADD a REPLACE | GET a -> ready 11 | NEXT -> nil"));
    check(&format!("{waiting} | LOAD | COUNTS -> 1 0 0 0 | NEXT -> 13 | @13 POP -> a#2"));
}

#[test]
fn a_backoff_ends_within_its_last_quarter_and_at_the_same_moment_for_everyone() {
    let mut queue = Queue::new((1, 2));
    let backoff = Some(Backoff { base: span(1_000), max: span(1_000) });
    for n in 0..100u64 {
        add(&mut queue, 0, &Add { backoff, ttr: Some(span(10)), ..plain(&n.to_string()) });
        popped(&mut queue, 0);
    }
    for queue in [queue.clone(), script::loaded(&queue)].iter_mut() {
        let mut dues = std::collections::BTreeSet::new();
        queue.advance(at(10));
        while let Some(due) = queue.next_due() {
            assert!((761..=1_010).contains(&due.unix_ms()), "{due:?}");
            dues.insert(due);
            queue.advance(due);
        }
        assert!(dues.len() > 50, "jobs that failed together come back apart: {dues:?}");
        assert!(queue.jobs().all(|job| dues.contains(&job.due())));
    }
}

#[test]
fn touch_lets_the_lease_last_for_the_ttr_from_now_on() {
    check("@0 ADD a ttr=10 | POP | @5 TOUCH a L1 -> 1 | GET a -> reserved 15 #1 L1 | @10 POP -> nil | TOUCH a L1 ttr=3 -> 1 | NEXT -> 13 | @13 POP -> a#2");
    check("@0 ADD a ttr=10 | POP | @5 TOUCH a * ttr=1 -> 1 | GET a -> reserved 6 #1 L1 | FINISH a L1 -> 1");
    check("@0 ADD a ttr=10 base=3 max=3 | POP | @5 TOUCH a L1 | NEXT -> 15 | @15 COUNTS -> 1 0 0 0 | NEXT -> 18 | TOTALS -> 1 0 1 1 0 0");
    check("@0 ADD a ttr=10 | POP | @MAX-5 TOUCH a L1 -> 1 | GET a -> reserved MAX #1 L1");
}

#[test]
fn touch_is_not_too_late_until_the_job_is_delivered_again() {
    check("@0 ADD a ttr=10 | POP | @50 GET a -> ready 10 #1 L1 | TOUCH a L1 -> 1 | GET a -> reserved 60 #1 L1 | POP -> nil");
    check("@0 ADD a ttr=10 | POP | @10 POP -> a#2 | TOUCH a L1 -> 0 | GET a -> reserved 20 #2 L2 | TOUCH a L2 -> 1");
    check("@0 ADD a ttr=10 | POP | DEL a | TOUCH a L1 -> 0 | TOUCH a * -> 0");
    check("@0 ADD a ttr=10 | POP | ADD a REPLACE | TOUCH a L1 -> 0 | TOUCH a * -> 0 | GET a -> ready 0");
}

#[test]
fn touch_revives_a_job_that_died_of_its_last_attempt() {
    check("@0 ADD a tries=1 ttr=10 | POP | @20 COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 1 0 0 | TOUCH a L1 -> 1 | GET a -> reserved 30 #1 L1 | COUNTS -> 0 0 1 0 \
         | @30 COUNTS -> 0 0 0 1 | TOTALS -> 1 0 1 2 0 0 | MORE_TOTALS -> 0 0 2 0 0");
}

#[test]
fn a_buried_job_is_dead_for_the_reason_that_was_given() {
    check("@0 ADD a | POP | @5 BURY a L1 broken -> 1 | GET a -> dead 5 #1 | WHY a -> broken | COUNTS -> 0 0 0 1 | BURY a L1 -> 0 | FINISH a L1 -> 0 | TOUCH a * -> 0 \
         | NEXT -> nil | @99 POP -> nil | ADD a -> taken | DEL a -> 1 | MORE_TOTALS -> 0 1 1 0 0");
    check("@0 ADD a | POP | BURY a * -> 1 | WHY a -> buried");
    check("@0 ADD a | POP | RELEASE a L1 rain | POP | BURY a L2 -> 1 | WHY a -> rain");
    check("@0 ADD a ttr=10 | POP | @50 BURY a L1 -> 1 | GET a -> dead 50 #1");
    check("@0 ADD a ttr=10 | POP | @10 POP | BURY a L1 -> 0 | GET a -> reserved 20 #2 L2");
    check("@0 ADD a ttr=10 tries=1 | POP | @20 BURY a L1 late -> 1 | GET a -> dead 10 #1 | WHY a -> late | MORE_TOTALS -> 0 1 1 0 0");
}

#[test]
fn a_released_job_may_get_another_priority() {
    check("@0 ADD a | ADD b | POP -> a#1 | RELEASE a L1 prio=5 -> 1 | TOLD a -> x @0 ttr=60 prio=5 tries=0 | POP -> a#2 | RELEASE a L2 prio=200 | POP -> b#1 | POP -> a#3");
    // For good: also if it is dead, and when it is kicked.
    check("@0 ADD a tries=1 | ADD b | POP | RELEASE a L1 prio=0 why | GET a -> dead 0 #1 | WHY a -> why | KICK 1 -> a | LOAD | POP -> a#1");
    check("@0 ADD a every=10 tries=1 | @10 POP | RELEASE a L1 prio=9 | TOLD a -> x @0 ttr=60 prio=9 tries=1 | GET a -> delayed 20");
    check("@0 ADD a | POP | RELEASE a L1 +5 prio=9 | GET a -> delayed 5 #1 | TOLD a -> x @0 ttr=60 prio=9 tries=0 | RELEASE a L1 prio=7 -> 0 | TOLD a -> x @0 ttr=60 prio=9 tries=0");
}
