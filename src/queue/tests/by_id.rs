//! Jobs that somebody takes by their ids, whatever they wait for.

use super::*;

#[test]
fn a_job_is_taken_by_id_before_its_turn_and_before_its_time() {
    check(
        "@0 ADD a | ADD b prio=0 | ADD c | TAKE c a -> c#1 a#1 | POP -> b#1 | POP -> nil | FINISH c L1 -> 1",
    );
    check("@0 ADD a +100 | @5 TAKE a -> a#1 | GET a -> reserved 65 #1 L1 | @65 GET a -> ready 65 #1 L1 | TAKE ttr=7 a -> a#2 | GET a -> reserved 72 #2 L2");
    check("@0 ADD a base=3 max=3 | POP -> a#1 | RELEASE a L1 | GET a -> delayed 3 #1 | @1 TAKE a -> a#2");
    check("@0 ADD a +100 | @5 TAKE NOACK a -> a#1 | GET a -> nil | TOTALS -> 1 0 1 0 1 0");
}

#[test]
fn a_dead_job_is_taken_by_id_as_if_it_had_been_kicked() {
    check("@0 ADD a tries=2 | POP | BURY a L1 snow | @7 TAKE a -> a#1 | GET a -> reserved 67 #1 L2 | WHY a -> nil | RELEASE a L2 +5 | GET a -> delayed 12 #1");
    check("@0 ADD a tries=1 ttr=10 | POP | @10 COUNTS -> 0 0 0 1 | TAKE a -> a#1 | COUNTS -> 0 0 1 0 | FINISH a L1 -> 0 | FINISH a L2 -> 1");
    // Its time to live begins anew.
    check("@0 ADD a ttl=5 | @9 TAKE a -> a#1 | @13 GET a -> reserved 69 #1 L1 | @14 GET a -> dead 69 #1 L1");
}

#[test]
fn a_pop_by_id_leaves_out_jobs_that_cannot_be_taken() {
    check("@0 ADD a | ADD b keep=9 | POP | POP | FINISH b L2 | TAKE a b nobody -> nil | ADD c | TAKE b c a c -> c#1 | COUNTS -> 0 0 2 0 1");
    check("@END ADD a +5 | TAKE a -> nil | COUNTS -> 1 0 0 0 | MORE_TOTALS -> 0 0 0 0 0");
}

#[test]
fn one_pop_by_id_takes_each_job_once_even_if_it_comes_back_at_once() {
    check("@0 ADD a | ADD b keep=9 | TAKE NOACK a b a b -> a#1 b#1");
    check("@0 ADD a every=10 | ADD b cron=10 | @5 TAKE NOACK a b a a b -> a#1 b#1 | ROUND a -> 10>nil run=1");
    check("@0 ADD a every=10 misfire=all | @95 TAKE NOACK a a -> a#1 | TAKE NOACK a -> a#1");
}

#[test]
fn limits_and_pauses_hold_back_jobs_taken_by_id() {
    check("@0 ADD a | ADD b +9 | PAUSE 5 | TAKE a b -> nil | @5 TAKE a b -> a#1 b#1");
    check("@0 ALTER concurrency=2 | ADD a | ADD b +9 | ADD c | TAKE nobody b a c -> b#1 a#1 | TAKE c -> nil | POP -> nil | FINISH b L1 | TAKE c -> c#1");
    check("@0 ALTER rate=1/10 | ADD a +9 | ADD b | TAKE a b -> a#1 | POP -> nil | @9 TAKE b -> nil | @10 TAKE b -> b#1");
}

#[test]
fn a_schedule_taken_by_id_runs_now_and_goes_on_as_before() {
    check("@0 ADD a every=100 | @30 TAKE a -> a#1 | ROUND a -> 30>100 run=1 | FINISH a L1 | GET a -> delayed 100");
    check(
        "@0 ADD a cron=100 | @30 TAKE a -> a#1 | FINISH a L1 | @100 TAKE a -> a#1 | ROUND a -> 100>200 run=2",
    );
    check("@0 ADD a every=100 | @100 POP | BURY a L1 snow | @950 TAKE a -> a#1 | ROUND a -> 950>1000 run=2");
}

#[test]
fn a_job_taken_by_id_is_never_announced_as_ready() {
    check(
        "@0 ADD a +100 | NEWS | TAKE a | NEWS -> | MORE_TOTALS -> 0 0 0 0 0 | TALLY a -> 0 0 0 0",
    );
    check("@0 ADD a | POP | BURY a L1 | NEWS | TAKE a | NEWS -> | MORE_TOTALS -> 0 1 1 0 0 | TALLY a -> 0 0 1 0");
}
