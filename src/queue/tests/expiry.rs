//! How jobs end by themselves: they expire, or they are forgotten.

use super::*;

const AGE: &str = "its time to live is over";

#[test]
fn a_delayed_job_dies_when_its_life_is_over() {
    check(&format!(
        "@0 ADD a +100 ttl=50 | NEXT -> 50 | @49 COUNTS -> 1 0 0 0 | @50 GET a -> dead 100 | WHY a -> {AGE} \
         | COUNTS -> 0 0 0 1 | NEXT -> nil | @100 POP -> nil | COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 1 0 0"
    ));
    check("@0 ADD a +50 ttl=50 | @49 COUNTS -> 1 0 0 0 | @50 COUNTS -> 0 0 0 1 | POP -> nil");
    check("@0 ADD a +50 ttl=51 | NEXT -> 50 | @50 COUNTS -> 0 1 0 0 | NEXT -> 51 | @51 COUNTS -> 0 0 0 1");
}

#[test]
fn a_ready_job_dies_when_its_life_is_over() {
    check(&format!("@0 ADD a ttl=50 | NEXT -> 50 | @49 COUNTS -> 0 1 0 0 | @50 COUNTS -> 0 0 0 1 | WHY a -> {AGE} | NEXT -> nil | POP -> nil"));
    check("@0 ADD a ttl=50 | @49 POP -> a#1 | FINISH a L1 -> 1 | @50 COUNTS -> 0 0 0 0 | MORE_TOTALS -> 0 0 0 0 0");
    check("@0 ADD a ttl=15 ttr=10 | POP | NEXT -> 10 | @10 COUNTS -> 0 1 0 0 | NEXT -> 15 | @15 COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 1 0 0");
}

#[test]
fn a_reserved_job_dies_when_its_life_is_over_but_can_be_finished() {
    let dead =
        "@0 ADD a ttl=5 ttr=10 | POP | NEXT -> 5 | @5 GET a -> dead 10 #1 L1 | COUNTS -> 0 0 0 1";
    check(&format!("{dead} | WHY a -> {AGE} | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0"));
    check(&format!(
        "{dead} | TOUCH a L1 -> 0 | RELEASE a L1 -> 0 | BURY a L1 -> 0 | GET a -> dead 10 #1 L1"
    ));
    check(&format!(
        "{dead} | NEXT -> nil | @10 GET a -> dead 10 #1 L1 | NEXT -> nil | TOTALS -> 1 0 1 1 0 0"
    ));
    check("@0 ADD a ttl=10 ttr=20 | POP | @9 TOUCH a L1 -> 1 | GET a -> reserved 29 #1 L1 | NEXT -> 10 | @10 GET a -> dead 29 #1 L1");
}

#[test]
fn a_job_dies_in_its_backoff_when_its_life_is_over() {
    check(&format!(
        "@0 ADD a ttl=11 ttr=10 base=3 max=3 | POP | NEXT -> 10 | @10 COUNTS -> 1 0 0 0 | NEXT -> 11 \
         | @11 COUNTS -> 0 0 0 1 | WHY a -> {AGE} | NEXT -> nil | @13 POP -> nil | FINISH a L1 -> 1"
    ));
    check("@0 ADD a ttl=13 ttr=10 base=3 max=3 | POP | @12 COUNTS -> 1 0 0 0 | @13 COUNTS -> 0 0 0 1 | TOTALS -> 1 0 1 1 0 0");
    check("@0 ADD a ttl=14 ttr=10 base=3 max=3 | POP | @13 COUNTS -> 0 1 0 0 | NEXT -> 14 | @14 COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 1 0 0");
    check("@0 ADD a ttl=20 | POP | @5 RELEASE a L1 +50 -> 1 | COUNTS -> 1 0 0 0 | NEXT -> 20 | @20 COUNTS -> 0 0 0 1");
}

#[test]
fn a_job_dies_of_what_comes_first() {
    check("@0 ADD a tries=1 ttl=50 ttr=10 | POP | @10 WHY a -> no attempts left | @60 WHY a -> no attempts left | MORE_TOTALS -> 0 0 1 0 0");
    check(&format!("@0 ADD a tries=1 ttl=5 ttr=10 | POP | @5 WHY a -> {AGE} | @10 WHY a -> {AGE} | TOTALS -> 1 0 1 1 0 0 | MORE_TOTALS -> 0 0 1 0 0"));
    check("@0 ADD a ttl=50 | POP | @5 BURY a L1 broken | @60 WHY a -> broken | GET a -> dead 5 #1 | MORE_TOTALS -> 0 1 1 0 0");
    check("@0 ADD a tries=1 ttl=10 ttr=10 | POP | @10 COUNTS -> 0 0 0 1 | TOUCH a L1 -> 0 | FINISH a * -> 1");
}

#[test]
fn a_job_replaced_begins_its_life_anew() {
    check("@0 ADD a ttl=50 | @40 ADD a ttl=50 REPLACE | NEXT -> 90 | @50 COUNTS -> 0 1 0 0 | ADD a REPLACE | NEXT -> nil | @99 POP -> a#1");
    check("@0 ADD a ttl=50 | @60 COUNTS -> 0 0 0 1 | ADD a -> taken | ADD a ttl=5 REPLACE -> replaced 60 | POP -> a#1");
}

#[test]
fn a_life_as_long_as_time_itself_does_not_end() {
    check("@5 ADD a ttl=MAX | NEXT -> nil | POP -> a#1 | @MAX COUNTS -> 0 1 0 0");
    check("@MAX ADD a ttl=5 | COUNTS -> 0 1 0 0 | @MAX-5 ADD b ttl=4 | ADD c ttl=5 | @MAX COUNTS -> 0 2 0 1");
}

#[test]
fn a_job_that_expired_among_ready_ones_is_dead_to_all_who_ask() {
    let dead = "@0 ADD a ttl=30 prio=3 | ADD b ttl=10 | ADD c ttl=20 | ADD d | @25";
    let seen =
        "COUNTS -> 0 2 0 2 | PEEK dead -> b c | PEEK ready -> a d | GET b -> dead 0 | NEXT -> 30";
    check(&format!("{dead} {seen} | UPKEEP -> 30 | LOAD | {seen}"));
    check(&format!(
        "{dead} KICKJOB b -> 1 | POP -> a#1 | POP -> d#1 | POP -> b#1 | @34 COUNTS -> 0 0 2 2"
    ));
    check(&format!("{dead} DEL b | DEL c | COUNTS -> 0 2 0 0 | MORE_TOTALS -> 0 0 2 0 0"));
    check(&format!(
        "{dead} POP -> a#1 | POP -> d#1 | POP -> nil | COUNTS -> 0 0 2 2 | PEEK dead -> b c"
    ));
    check("@0 ADD a ttl=15 ttr=10 | POP | @20 GET a -> dead 10 #1 L1 | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0");
}

#[test]
fn a_job_that_expired_is_ready_again_where_time_goes_back() {
    check("@0 ADD a ttl=10 | ADD b | @10 POP -> b#1 | POP -> nil | @9 COUNTS -> 0 1 1 0 | POP -> a#1 | @10 GET a -> dead 69 #1 L2");
    check("@0 ADD a ttl=10 ttr=3 | POP | @10 PEEK dead -> a | @2 PEEK reserved -> a | @5 PEEK ready -> a | POP -> a#2");
}

#[test]
fn a_finished_job_holds_its_id_while_it_is_kept() {
    check("@0 ADD a keep=50 | POP NOACK -> a#1 | GET a -> done 50 #1 | TOTALS -> 1 0 1 0 1 0 | FINISH a L1 -> 0 | ADD a -> taken | @50 FORGET -> a");
    check("@0 ADD a keep=50 | POP | @5 FINISH a L1 -> 1 | GET a -> done 55 #1 | COUNTS -> 0 0 0 0 1 | ADD a -> taken | @54 ADD a -> taken | GET a -> done 55 #1");
    check("@0 ADD a keep=50 | POP | @5 FINISH a L1 | FINISH a L1 -> 0 | FINISH a * -> 0 | TOUCH a L1 -> 0 | RELEASE a L1 -> 0 | BURY a L1 -> 0 | POP -> nil | TOTALS -> 1 0 1 0 1 0");
    check("@0 ADD a keep=50 | POP | FINISH a L1 | ADD a REPLACE -> replaced 0 | COUNTS -> 0 1 0 0 | NEXT -> nil");
    check("@0 ADD a keep=50 | POP | FINISH a L1 | DEL a -> 1 | COUNTS -> 0 0 0 0 | ADD a -> 0");
    check("@0 ADD a keep=50 ttl=9 ttr=3 | POP | @20 FINISH a L1 -> 1 | GET a -> done 70 #1 | COUNTS -> 0 0 0 0 1");
    check("@5 ADD a keep=MAX | POP | FINISH a L1 | GET a -> done MAX #1 | @MAX COUNTS -> 0 0 0 0 1 | FORGET -> a");
}

#[test]
fn an_id_is_free_from_the_moment_its_job_is_kept_no_longer() {
    let over = "@0 ADD a keep=50 | POP | @5 FINISH a L1 | @55 COUNTS -> 0 0 0 0 1";
    check(&format!(
        "{over} | ADD a -> 55 | COUNTS -> 0 1 0 0 | TOTALS -> 2 0 1 0 1 0 | MORE_TOTALS -> 0 0 0 0 1"
    ));
    check(&format!("{over} | ADD a REPLACE -> 55 | TOTALS -> 2 0 1 0 1 0"));
    check(&format!("{over} | ALTER maxjobs=1 | ADD a -> 55"));
    check(&format!("{over} | LOAD | ADD a -> 55 | TOTALS -> 2 0 1 0 1 0"));
}

#[test]
fn a_done_job_that_was_kept_long_enough_is_forgotten() {
    check("@0 ADD a keep=50 | ADD b keep=20 | POP | POP | FINISH a L1 | FINISH b L2 | NEXT -> 20 | UPKEEP -> 20 | PEEK done -> b a \
         | @19 FORGET -> | @20 UPKEEP -> 20 | FORGET -> b | UPKEEP -> 50 | @60 UPKEEP -> 50 | FORGET -> a | UPKEEP -> nil | MORE_TOTALS -> 0 0 0 0 2");
}

#[test]
fn dead_jobs_are_forgotten_once_they_were_dead_for_long_enough() {
    check("@0 ALTER deadkeep=30 | ADD a ttl=10 | ADD b ttl=20 | UPKEEP -> 10 | @10 UPKEEP -> 20 | @20 UPKEEP -> 40 | @39 FORGET -> | @40 FORGET -> a \
         | UPKEEP -> 50 | @99 FORGET -> b | UPKEEP -> nil | COUNTS -> 0 0 0 0 | MORE_TOTALS -> 0 0 2 0 2");
    check("@0 ALTER deadkeep=30 | ADD a | POP | @5 BURY a L1 | UPKEEP -> 35 | KICKJOB a | UPKEEP -> nil | @99 FORGET -> ");
    check("@0 ALTER deadkeep=30 | ADD a tries=1 ttr=10 | POP | @39 FORGET -> | @40 FORGET -> a");
    check("@0 ADD a ttl=10 | @MAX FORGET -> | COUNTS -> 0 0 0 1");
    check("@0 ALTER deadkeep=30 | ADD a ttl=10 | ADD b keep=20 prio=9 | POP -> b#1 | @20 FINISH b L1 | @40 LOAD | UPKEEP -> 40 | FORGET -> b a");
}

#[test]
fn a_lease_that_has_run_out_is_settled_in_that_millisecond_and_the_expiry_stays() {
    let mut queue = Queue::new((1, 2));
    add(&mut queue, 0, &Add { ttl: Some(span(500)), ttr: Some(span(10)), ..plain("a") });
    popped(&mut queue, 0);
    let job = queue.get(id("a")).unwrap();
    assert_eq!(job.resolved_at(at(9)), job);
    let progress = Progress { attempt: 1, expires_at: Some(at(500)), ..Progress::default() };
    assert_eq!(
        job.resolved_at(at(10)),
        JobView { progress, time: at(10), tally: job.tally_at(at(10)), ..job }
    );
}
