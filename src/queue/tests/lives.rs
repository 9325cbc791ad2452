//! How jobs end by themselves: their life is over, or they are forgotten.

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
    let dead = "@0 ADD a ttl=5 ttr=10 | POP | NEXT -> 5 | @5 GET a -> dead 10 #1 L1 | COUNTS -> 0 0 0 1";
    check(&format!("{dead} | WHY a -> {AGE} | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0"));
    check(&format!("{dead} | TOUCH a L1 -> 0 | RELEASE a L1 -> 0 | BURY a L1 -> 0 | GET a -> dead 10 #1 L1"));
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
fn a_life_as_long_as_time_itself_ends_with_it() {
    check("@5 ADD a ttl=MAX | NEXT -> MAX | POP -> a#1 | @MAX COUNTS -> 0 0 0 1");
    check("@MAX ADD a ttl=5 | COUNTS -> 0 0 0 1 | POP -> nil");
}

#[test]
fn nobody_sees_whether_the_dead_have_been_buried() {
    let dead = "@0 ADD a ttl=30 prio=3 | ADD b ttl=10 | ADD c ttl=20 | ADD d | @25";
    let seen = "COUNTS -> 0 2 0 2 | PEEK dead -> b c | PEEK ready -> a d | GET b -> dead 0 | NEXT -> 30";
    check(&format!("{dead} {seen} | UPKEEP -> 25 | BURIED | {seen} | UPKEEP -> 30 | LOAD | {seen}"));
    check(&format!(
        "{dead} BURIED | KICKJOB b -> 1 | POP -> a#1 | POP -> d#1 | POP -> b#1 | @34 COUNTS -> 0 0 2 2"
    ));
    check(&format!("{dead} BURIED | DEL b | DEL c | COUNTS -> 0 2 0 0 | MORE_TOTALS -> 0 0 2 0 0"));
    check(&format!("{dead} POP -> a#1 | POP -> d#1 | POP -> nil | COUNTS -> 0 0 2 2 | PEEK dead -> b c"));
    check("@0 ADD a ttl=15 ttr=10 | POP | @20 BURIED | GET a -> dead 10 #1 L1 | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0");
}

#[test]
fn a_finished_job_holds_its_id_while_it_is_kept() {
    check("@0 ADD a keep=50 | POP | @5 FINISH a L1 -> 1 | GET a -> done 55 #1 | COUNTS -> 0 0 0 0 1 | ADD a -> taken | @54 ADD a -> taken | GET a -> done 55 #1");
    check("@0 ADD a keep=50 | POP | @5 FINISH a L1 | FINISH a L1 -> 0 | FINISH a * -> 0 | TOUCH a L1 -> 0 | RELEASE a L1 -> 0 | BURY a L1 -> 0 | POP -> nil | TOTALS -> 1 0 1 0 1 0");
    check("@0 ADD a keep=50 | POP | FINISH a L1 | ADD a REPLACE -> replaced 0 | COUNTS -> 0 1 0 0 | NEXT -> nil");
    check("@0 ADD a keep=50 | POP | FINISH a L1 | DEL a -> 1 | COUNTS -> 0 0 0 0 | ADD a -> 0");
    check("@0 ADD a keep=50 ttl=9 ttr=3 | POP | @20 FINISH a L1 -> 1 | GET a -> done 70 #1 | COUNTS -> 0 0 0 0 1");
    check("@MAX-5 ADD a keep=50 | POP | FINISH a L1 | GET a -> done MAX #1");
}

#[test]
fn an_id_is_free_from_the_moment_its_job_is_kept_no_longer() {
    let over = "@0 ADD a keep=50 | POP | @5 FINISH a L1 | @55 COUNTS -> 0 0 0 0 1";
    check(&format!(
        "{over} | ADD a -> 55 | COUNTS -> 0 1 0 0 | TOTALS -> 2 0 1 0 1 0 | MORE_TOTALS -> 0 0 0 0 1"
    ));
    check(&format!("{over} | ADD a REPLACE -> 55 | TOTALS -> 2 0 1 0 1 0"));
    check(&format!("{over} | MAXJOBS 1 | ADD a -> 55"));
    check(&format!("{over} | LOAD | ADD a -> 55 | TOTALS -> 2 0 1 0 1 0"));
}

#[test]
fn what_was_kept_long_enough_is_forgotten() {
    check("@0 ADD a keep=50 | ADD b keep=20 | POP | POP | FINISH a L1 | FINISH b L2 | NEXT -> 20 | UPKEEP -> 20 | PEEK done -> b a \
         | @19 FORGET -> | @20 UPKEEP -> 20 | FORGET -> b | UPKEEP -> 50 | @60 UPKEEP -> 60 | FORGET -> a | UPKEEP -> nil | MORE_TOTALS -> 0 0 0 0 2");
}

#[test]
fn the_dead_are_forgotten_once_they_were_dead_for_long_enough() {
    check("@0 DEADKEEP 30 | ADD a ttl=10 | ADD b ttl=20 | UPKEEP -> 10 | @10 BURIED | UPKEEP -> 20 | @20 BURIED | UPKEEP -> 40 | @39 FORGET -> | @40 FORGET -> a \
         | UPKEEP -> 50 | @99 FORGET -> b | UPKEEP -> nil | COUNTS -> 0 0 0 0 | MORE_TOTALS -> 0 0 2 0 2");
    check("@0 DEADKEEP 30 | ADD a | POP | @5 BURY a L1 | UPKEEP -> 35 | KICKJOB a | UPKEEP -> nil | @99 FORGET -> ");
    check("@0 DEADKEEP 30 | ADD a tries=1 ttr=10 | POP | @39 FORGET -> | @40 FORGET -> a");
    check("@0 ADD a ttl=10 | @MAX FORGET -> | COUNTS -> 0 0 0 1");
    check("@0 DEADKEEP 30 | ADD a ttl=10 | ADD b keep=20 prio=9 | POP -> b#1 | @20 FINISH b L1 | @40 LOAD | UPKEEP -> 40 | FORGET -> b a");
}

#[test]
fn many_lives_that_end_at_once_are_counted_and_stepped_over() {
    const MORTALS: usize = 50_000;
    let mut queue = Queue::new((1, 2));
    let ttl = Millis::new(10).unwrap();
    for n in 0..MORTALS + 1_000 {
        let id = n.to_string();
        let id = Id::new(id.as_bytes()).unwrap();
        let policy = if n < MORTALS { Policy { ttl, ..Policy::plain(ttl) } } else { Policy::plain(ttl) };
        let job = NewJob { id, body: b"", due: Due::In(Millis::ZERO), policy, naming: Naming::Given };
        queue.add(at(0), &job, IfTaken::Refuse);
    }
    queue.advance(at(10));
    let counts = Counts { ready: 1_000, dead: MORTALS, ..Counts::default() };
    let all_is_seen = |queue: &Queue| {
        assert_eq!((queue.counts(), queue.totals().died), (counts, MORTALS as u64));
        assert_eq!((queue.next_change(), queue.oldest_ready()), (None, Some(at(0))));
        assert_eq!(queue.peek(State::Ready, 2_000).len(), 1_000);
        assert_eq!(queue.peek(State::Dead, 2_000).len(), 2_000);
    };
    all_is_seen(&queue);
    let mut pops = 1;
    let mut stepped = queue.clone();
    while stepped.pop(at(10), None, Lease::default()).is_none() {
        pops += 1;
        all_is_seen(&stepped);
    }
    assert!((2..10).contains(&pops), "no pop steps over all of them: {pops}");
    while !queue.bury_the_overdue(MORTALS / 7) {
        assert_eq!(queue.next_upkeep(), Some(at(10)), "there is more to be buried");
        all_is_seen(&queue);
    }
    all_is_seen(&queue);
    assert_eq!(queue.next_upkeep(), None);
    let first = queue.pop(at(10), None, Lease::default()).unwrap();
    assert_eq!(queue.view(first.slot).unwrap().id.bytes(), MORTALS.to_string().as_bytes());
}

#[test]
fn memory_comes_back_when_those_have_left_who_had_a_trail() {
    let mut queue = Queue::new((1, 2));
    let span = |ms| Millis::new(ms).unwrap();
    let ids: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    for (n, id) in ids.iter().enumerate() {
        let backoff = Backoff { base: span(9), max: span(99) };
        let ttl = span(if n % 2 == 0 { 50 } else { 0 });
        let policy = Policy { backoff, ttl, keep: span(n as u64 % 3), ..Policy::plain(span(20)) };
        let id = Id::new(id.as_bytes()).unwrap();
        let job = NewJob { id, body: b"", due: Due::In(Millis::ZERO), policy, naming: Naming::Given };
        queue.add(at(0), &job, IfTaken::Refuse);
    }
    for n in 0..15_000 {
        let handout = queue.pop(at(1), None, Lease::default()).unwrap();
        let (id, _) = queue.id_and_body(handout.slot).unwrap();
        let (id, claim) = (id.bytes().to_vec(), Claim::Lease(handout.lease));
        let id = Id::new(&id).unwrap();
        let is_done = match n % 5 {
            0 => queue.finish(at(1), id, claim) != Finished::No,
            1 => queue.release(at(1), id, claim, Some(span(500)), Some(b"one reason")).is_some(),
            2 => queue.bury(at(1), id, claim, Some(b"another reason")).is_some(),
            3 => queue.touch(at(1), id, claim, None).is_some(),
            _ => queue.give_back(id, &handout).is_some(),
        };
        assert!(is_done);
    }
    queue.advance(at(60));
    queue.bury_the_overdue(3_000);
    let full = queue.memory();
    for queue in [&mut queue.clone(), &mut queue] {
        for id in &ids {
            queue.delete(Id::new(id.as_bytes()).unwrap());
        }
        assert!(queue.is_empty());
        assert!(queue.memory() < 250_000, "{} of {full} bytes", queue.memory());
    }
}
