//! What a queue does, as transcripts. The notation is that of [`script`].

use super::*;

mod lives;
mod operators;
mod script;
mod workers;

use script::check;

#[test]
fn a_job_is_never_handed_out_early() {
    check("@0 ADD a +100 -> 100 | @99 POP -> nil | @100 POP -> a#1 | @100 POP -> nil");
    check("@50 ADD a =51 -> 51 | POP -> nil | @51 POP -> a#1");
    check("@7 ADD a -> 7 | POP -> a#1");
    check("@7 ADD a +0 -> 7 | ADD b =7 -> 7 | COUNTS -> 0 2 0 0");
}

#[test]
fn a_due_time_in_the_past_counts_as_now() {
    check("@100 ADD a =0 -> 100 | GET a -> ready 100 | POP -> a#1");
    check("@100 ADD first | @200 ADD second =50 -> 200 | POP -> first#1 | POP -> second#1");
}

#[test]
fn jobs_leave_by_due_time_then_by_order_of_scheduling() {
    check("@0 ADD c +30 | ADD a +10 | ADD b +20 | @50 POP -> a#1 | POP -> b#1 | POP -> c#1 | POP -> nil");
    check("@0 ADD z +10 | ADD y +10 | @5 ADD x +5 | @10 ADD w | POP -> z#1 | POP -> y#1 | POP -> x#1 | POP -> w#1");
    check("@0 ADD a =10 | ADD b =10 | ADD c =10 | DEL b | ADD b =10 | ORDER -> a c b");
}

#[test]
fn priority_goes_before_due_time() {
    check(
        "@0 ADD low prio=200 | ADD high prio=5 +50 | ADD top prio=0 +50 | ADD last prio=255 \
         | @49 POP -> low#1 | @50 POP -> top#1 | POP -> high#1 | POP -> last#1",
    );
    check("@0 ADD a prio=1 +9 | ADD b prio=0 +9 | ADD c prio=1 +8 | ADD d +1 | ORDER -> b c a d");
}

#[test]
fn priority_keeps_no_ready_job_waiting_for_a_delayed_one() {
    check("@0 ADD high prio=0 +1 | ADD low prio=255 | POP -> low#1 | POP -> nil | @1 POP -> high#1");
}

#[test]
fn a_lease_lasts_its_ttr() {
    check("@0 ADD a ttr=10 | POP -> a#1 | GET a -> reserved 10 #1 L1 | @9 POP -> nil | GET a -> reserved 10 #1 L1 \
         | @10 GET a -> ready 10 #1 L1 | POP -> a#2 | GET a -> reserved 20 #2 L2");
    check("@0 ADD a ttr=10 | @5 POP ttr=3 -> a#1 | GET a -> reserved 8 #1 L1 | @8 POP -> a#2 | GET a -> reserved 18 #2 L2");
}

#[test]
fn a_job_whose_lease_ran_out_stands_at_the_end_of_the_lease() {
    check(
        "@0 ADD a ttr=10 | ADD b +5 | ADD c +10 | POP -> a#1 | ADD d +10 \
         | @20 POP -> b#1 | POP -> c#1 | POP -> a#2 | POP -> d#1",
    );
    check("@0 ADD a ttr=10 | ADD b ttr=9 | POP -> a#1 | POP -> b#1 | @10 POP -> b#2 | POP -> a#2");
}

#[test]
fn a_finished_job_is_gone() {
    check("@0 ADD a | POP -> a#1 | FINISH a L1 -> 1 | GET a -> nil | FINISH a L1 -> 0 | @99 POP -> nil | COUNTS -> 0 0 0 0");
    check("@0 ADD a | POP -> a#1 | FINISH a * -> 1 | FINISH a * -> 0 | ADD a -> 0 | GET a -> ready 0");
}

#[test]
fn a_lease_stays_good_after_its_end_until_the_job_is_delivered_again() {
    check("@0 ADD a ttr=10 | POP -> a#1 | @500 GET a -> ready 10 #1 L1 | FINISH a L1 -> 1 | POP -> nil");
    check("@0 ADD a ttr=10 | POP -> a#1 | @500 POP -> a#2 | FINISH a L1 -> 0 | GET a -> reserved 510 #2 L2 | FINISH a L2 -> 1");
}

#[test]
fn a_lease_is_good_for_its_own_job_only() {
    check("@0 ADD a | ADD b | POP -> a#1 | POP -> b#1 | FINISH a L2 -> 0 | FINISH b L1 -> 0 | FINISH c L1 -> 0 \
         | COUNTS -> 0 0 2 0 | FINISH a L1 -> 1 | FINISH b L2 -> 1");
}

#[test]
fn a_job_that_was_never_handed_out_cannot_be_finished() {
    check(
        "@0 ADD a | ADD b +10 | ADD c | FINISH a * -> 0 | FINISH b * -> 0 | FINISH nobody * -> 0 \
         | POP -> a#1 | FINISH c L1 -> 0 | FINISH b L1 -> 0 | COUNTS -> 1 1 1 0",
    );
}

#[test]
fn a_job_at_its_last_attempt_dies_when_the_ttr_runs_out() {
    check(
        "@0 ADD a tries=1 ttr=10 | POP -> a#1 | @9 GET a -> reserved 10 #1 L1 | NEXT -> 10 \
         | @10 GET a -> dead 10 #1 L1 | COUNTS -> 0 0 0 1 | NEXT -> nil | POP -> nil | @MAX POP -> nil",
    );
    check("@0 ADD a tries=2 ttr=10 | POP -> a#1 | @10 GET a -> ready 10 #1 L1 | POP -> a#2 | @20 GET a -> dead 20 #2 L2 | POP -> nil");
    check("@0 ADD a tries=0 ttr=1 | POP -> a#1 | @1 POP -> a#2 | @2 POP -> a#3 | @3 POP -> a#4");
}

#[test]
fn a_job_at_its_last_attempt_can_be_finished_in_time() {
    check("@0 ADD a tries=1 ttr=10 | POP -> a#1 | @9 FINISH a L1 -> 1 | @10 COUNTS -> 0 0 0 0");
}

#[test]
fn a_dead_job_is_kept_until_it_is_finished_with_its_lease_or_deleted_or_replaced() {
    check("@0 ADD a tries=1 | POP ttr=10 -> a#1 | @20 ADD a -> taken | FINISH a L1 -> 1 | COUNTS -> 0 0 0 0");
    check("@0 ADD a tries=2 | POP ttr=1 | @1 POP ttr=1 -> a#2 | @2 FINISH a L1 -> 0 | FINISH a * -> 1 | GET a -> nil");
    check("@0 ADD a tries=1 | POP ttr=10 -> a#1 | @20 DEL a -> 1 | COUNTS -> 0 0 0 0");
    check("@0 ADD a tries=1 | POP ttr=10 -> a#1 | @20 ADD a REPLACE -> replaced 20 | POP -> a#1");
}

#[test]
fn the_dead_stand_behind_all_others_in_the_order_of_their_deaths() {
    check("@0 ADD a tries=1 prio=0 | ADD b tries=1 prio=9 | ADD c +5 prio=200 | POP ttr=20 -> a#1 | POP ttr=10 -> b#1 \
         | ORDER -> c b a | @30 ORDER -> c b a | COUNTS -> 0 1 0 2");
}

#[test]
fn a_taken_id_is_refused_and_the_job_left_as_it_was() {
    check(
        "@0 ADD a +100 ttr=5 body=old | @10 ADD a +7 ttr=9 body=new -> taken | GET a -> delayed 100 \
         | TOLD a -> old @0 ttr=5 prio=128 tries=0 | TOTALS -> 1 0 0 0 0 0",
    );
    check("@0 ADD a | POP -> a#1 | ADD a -> taken | GET a -> reserved 60 #1 L1");
}

#[test]
fn replace_gives_body_schedule_and_policy_anew() {
    check("@0 ADD a +100 body=old | @10 ADD a +5 ttr=7 prio=3 tries=2 body=new REPLACE -> replaced 15 \
         | TOLD a -> new @10 ttr=7 prio=3 tries=2 | GET a -> delayed 15 | COUNTS -> 1 0 0 0 | @15 POP -> a#1 | @100 ORDER -> a");
    check("@0 ADD a REPLACE -> 0 | ADD b | ADD a REPLACE -> replaced 0 | POP -> b#1 | POP -> a#1");
}

#[test]
fn replace_voids_the_lease_and_the_attempts() {
    check("@0 ADD a ttr=10 | POP -> a#1 | ADD a REPLACE -> replaced 0 | FINISH a L1 -> 0 | FINISH a * -> 0 | GET a -> ready 0 \
         | POP -> a#1 | FINISH a L1 -> 0 | FINISH a L2 -> 1");
    check("@0 ADD a tries=1 | POP ttr=10 -> a#1 | ADD a tries=1 +50 REPLACE | @10 COUNTS -> 1 0 0 0 | @50 POP ttr=10 -> a#1 | @60 COUNTS -> 0 0 0 1");
}

#[test]
fn delete_removes_a_job_in_any_state() {
    check("@0 ADD delayed +100 | ADD dead tries=1 | POP ttr=1 | @1 ADD reserved ttr=100 | POP | ADD ready | COUNTS -> 1 1 1 1 \
         | DEL delayed -> 1 | DEL ready -> 1 | DEL reserved -> 1 | DEL dead -> 1 | COUNTS -> 0 0 0 0 | NEXT -> nil \
         | DEL ready -> 0 | FINISH reserved L2 -> 0 | @500 POP -> nil");
}

#[test]
fn next_is_the_next_change_that_comes_by_itself() {
    check(
        "@0 NEXT -> nil | ADD a -> 0 | NEXT -> nil | ADD b +20 | NEXT -> 20 | ADD c +10 prio=9 | NEXT -> 10 \
         | POP ttr=5 -> a#1 | NEXT -> 5 | FINISH a L1 | NEXT -> 10 | @10 NEXT -> 20 | DEL b | NEXT -> nil \
         | POP ttr=30 -> c#1 | NEXT -> 40 | @40 NEXT -> nil | ADD d =10 -> 40 | NEXT -> nil",
    );
}

#[test]
fn time_that_runs_backwards_stands_still() {
    check("@100 ADD a +50 -> 150 | @40 ADD b +50 -> 150 | TOLD b -> x @100 ttr=60 prio=128 tries=0 | POP -> nil | @149 POP -> nil | @150 POP -> a#1");
    check("@100 ADD a | @50 POP -> a#1 | GET a -> reserved 160 #1 L1 | COUNTS -> 0 0 1 0 | @159 POP -> nil | @160 POP -> a#2");
    check("@0 ADD a +10 | @10 COUNTS -> 0 1 0 0 | @9 COUNTS -> 0 1 0 0 | POP -> a#1");
    check("@0 ADD a ttr=10 tries=1 | POP | @10 COUNTS -> 0 0 0 1 | @5 GET a -> dead 10 #1 L1 | @20 ADD b =1 -> 20");
}

#[test]
fn the_last_moments_there_are() {
    check("@0 ADD a =MAX -> MAX | @MAX-1 POP -> nil | NEXT -> MAX | @MAX POP -> a#1");
    check("@MAX-5 ADD a +10 -> MAX | COUNTS -> 1 0 0 0 | @MAX COUNTS -> 0 1 0 0");
    check("@MAX-5 ADD a ttr=MAX | POP -> a#1 | GET a -> reserved MAX #1 L1 | @MAX GET a -> ready MAX #1 L1");
    check("@MAX ADD a +MAX ttr=10 -> MAX | POP -> a#1 | GET a -> ready MAX #1 L1 | POP -> a#2 | FINISH a L2 -> 1");
    check("@MAX ADD a tries=1 | POP -> a#1 | GET a -> dead MAX #1 L1 | POP -> nil | NEXT -> nil");
}

#[test]
fn leases_only_grow() {
    check("@0 LEASE -> nil | POP -> nil | LEASE -> nil | FLOOR 5000 | ADD a | POP | LEASE -> 5000 | DEL a | FLOOR 10 | ADD a | POP | LEASE -> 5001 \
         | FINISH a * | ADD b | FLOOR 6000 | POP | LEASE -> 6000 | ADD b REPLACE | POP | LEASE -> 6001");
    check("@0 ADD a | POP -> a#1 | LEASE -> 1");
}

#[test]
fn ids_made_by_the_queue_sort_by_time() {
    check("@5 ADD * -> 5-0 | ADD * -> 5-1 | @6 ADD * -> 6-0 | @5 ADD * -> 6-1 | @7 NAME -> 7-0 | NAME -> 7-0 | ADD * -> 7-0");
    check("@MAX ADD * -> 281474976710655-0 | ADD * -> 281474976710655-1");
}

#[test]
fn ids_made_by_the_queue_are_not_made_again() {
    check(
        "@5 ADD * -> 5-0 | DEL 5-0 -> 1 | ADD * -> 5-1 | POP -> 5-1#1 | FINISH 5-1 L1 -> 1 | @4 ADD * -> 5-2",
    );
}

#[test]
fn ids_made_by_the_queue_pass_over_those_given_by_hand() {
    check("@0 ADD 9-0 +99 | @9 ADD * -> 9-1 | ADD * -> 9-2");
    check("@9 ADD 9-0 | ADD 9-1 | ADD 9-2 | ADD 9-3 | ADD * -> 9-7 | ADD * -> 9-8");
    check("@9 ADD 100-0 | ADD 9-x | ADD * -> 9-0 | @100 ADD * -> 100-1");
}

#[test]
fn however_many_ids_are_taken_by_hand_a_free_one_is_found() {
    let mut queue = Queue::new((1, 2));
    let take = |queue: &mut Queue, id: &str| added(queue, 9, id, Due::In(Millis::ZERO));
    // Where the search looks in one millisecond, and at the start of the next.
    for bits in 0..=64 {
        take(&mut queue, &format!("9-{}", (1u128 << bits) - 1));
    }
    take(&mut queue, "10-0");
    let id = queue.next_id(at(9));
    assert!(queue.get(Id::new(id.as_bytes()).unwrap()).is_none(), "{id}");
}

#[test]
fn a_record_with_the_last_serial_there_is_does_not_hold_the_queue_up() {
    for time in [9, Time::MAX.unix_ms()] {
        let mut queue = Queue::new((1, 2));
        let record = QueueRecord { serial_time: time, serial_number: u64::MAX, ..QueueRecord::default() };
        queue.restore(&record).unwrap();
        added(&mut queue, 9, &format!("{time}-{}", u64::MAX), Due::In(Millis::ZERO));
        let id = queue.next_id(at(9));
        assert!(queue.get(Id::new(id.as_bytes()).unwrap()).is_none(), "{id}");
    }
}

#[test]
fn totals_count_what_happened() {
    check("@0 TOTALS -> 0 0 0 0 0 0 | ADD a ttr=10 | ADD b | ADD c +500 | TOTALS -> 3 0 0 0 0 0 | ADD c -> taken | ADD c REPLACE | TOTALS -> 3 1 0 0 0 0 \
         | POP -> a#1 | POP -> b#1 | TOTALS -> 3 1 2 0 0 0 | FINISH b L1 -> 0 | FINISH b L2 -> 1 | DEL c -> 1 | DEL c -> 0 | TOTALS -> 3 1 2 0 1 1 \
         | @9 TOTALS -> 3 1 2 0 1 1 | @10 TOTALS -> 3 1 2 1 1 1 | POP -> a#2 | TOTALS -> 3 1 3 1 1 1 | @30 FINISH a L3 -> 1 | POP -> nil | TOTALS -> 3 1 3 2 2 1");
}

#[test]
fn a_copy_is_equal_and_goes_its_own_way() {
    check("@0 ADD a ttr=10 | ADD b +20 | POP -> a#1 | COPY | FINISH a L1 -> 1 | DEL b -> 1 | ADD c \
         | SWAP | ORDER -> a b | GET a -> reserved 10 #1 L1 | GET c -> nil | @10 POP -> a#2 | @20 POP -> b#1 | POP -> a#3 | TOTALS -> 2 0 4 2 0 0 \
         | SWAP | ORDER -> c | TOTALS -> 3 0 1 0 1 1");
    check("@3 ADD * -> 3-0 | FLOOR 70 | POP | COPY | FINISH 3-0 L1 | SWAP | ADD * -> 3-1 | LEASE -> 70 | FINISH 3-0 L1 -> 1");
}

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn added(queue: &mut Queue, now: u64, id: &str, due: Due) {
    let ttr = Millis::new(1_000).unwrap();
    let policy = Policy::plain(ttr);
    let id = Id::new(id.as_bytes()).unwrap();
    let job = NewJob { id, body: b"body", due, policy, naming: Naming::Given };
    assert!(matches!(queue.add(at(now), &job, IfTaken::Refuse), Added::New(_)));
}

const MILLION: u64 = 1_000_000;

fn a_million(due: impl Fn(u64) -> u64) -> Queue {
    let mut queue = Queue::new((1, 2));
    (0..MILLION).for_each(|n| added(&mut queue, 0, &n.to_string(), Due::At(at(due(n)))));
    queue
}

#[test]
fn a_million_jobs_of_one_millisecond_are_counted_and_ordered_at_once() {
    let mut queue = a_million(|_| 500);
    assert_eq!(queue.pop(at(499), None, Lease::default()), None);
    queue.advance(at(500));
    let counts = Counts { ready: MILLION as usize, ..Counts::default() };
    assert_eq!((queue.counts(), queue.next_change()), (counts, None));
    for n in 0..10_000 {
        let handout = queue.pop(at(500), None, Lease::default()).unwrap();
        assert_eq!(queue.view(handout.slot).unwrap().id.bytes(), n.to_string().as_bytes());
    }
}

#[test]
fn a_million_jobs_of_a_million_milliseconds_are_counted_exactly_at_each_moment() {
    // Scattered: 7 is prime to a million, so each millisecond gets one.
    let mut queue = a_million(|n| 1 + n * 7 % MILLION);
    for now in [0, 1, 2, 255, 256, 257, 1_000, 500_000, 500_001, MILLION - 1, MILLION] {
        queue.advance(at(now));
        let (delayed, ready) = ((MILLION - now) as usize, now as usize);
        assert_eq!(queue.counts(), Counts { delayed, ready, ..Counts::default() });
        assert_eq!(queue.next_change(), (now < MILLION).then(|| at(now + 1)));
    }
    let first = queue.pop(at(MILLION), None, Lease::default()).unwrap();
    assert_eq!(queue.view(first.slot).unwrap().created, at(0));
}

#[test]
fn memory_comes_back_when_all_jobs_have_left() {
    let mut queue = Queue::new((1, 2));
    let mut copies = vec![queue.clone()];
    for n in 0..50_000 {
        added(&mut queue, 0, &n.to_string(), Due::At(at(n % 777)));
    }
    let full = queue.memory();
    copies.push(queue.clone());
    for n in 0..25_000 {
        queue.pop(at(1_000), None, Lease::default()).unwrap();
        queue.delete(Id::new(n.to_string().as_bytes()).unwrap());
    }
    copies.push(queue.clone());
    for mut queue in copies.into_iter().chain([queue]) {
        for n in 0..50_000 {
            queue.delete(Id::new(n.to_string().as_bytes()).unwrap());
        }
        assert!(queue.is_empty());
        // A page of each slab, and what a short directory holds.
        assert!(queue.memory() < 200_000, "{} of {full} bytes", queue.memory());
    }
}

#[test]
fn a_policy_is_kept_once_however_many_jobs_have_it() {
    let mut queue = a_queue_of_policies(1);
    let one = queue.memory();
    queue = a_queue_of_policies(10_000);
    assert!(queue.memory() > one + 10_000 * 20, "each has its own here");
    for n in 0..10_000u64 {
        queue.delete(Id::new(n.to_string().as_bytes()).unwrap());
    }
    assert!(queue.memory() < 200_000, "{} bytes", queue.memory());
}

fn a_queue_of_policies(different: u64) -> Queue {
    let mut queue = Queue::new((1, 2));
    for n in 0..10_000u64 {
        let ttr = Millis::new(1 + n % different).unwrap();
        let policy = Policy::plain(ttr);
        let id = n.to_string();
        let id = Id::new(id.as_bytes()).unwrap();
        let job = NewJob { id, body: b"", due: Due::In(ttr), policy, naming: Naming::Given };
        queue.add(at(0), &job, IfTaken::Refuse);
    }
    queue
}

#[test]
fn a_record_nested_without_end_is_refused() {
    // A map with a field that nobody knows, which holds an array that holds an array that …
    let nested = [&[0x81, 0xa1, b'x'], &[0x91; 1_000_000][..]].concat();
    assert_eq!(JobRecord::decode(&nested), Err(RecordError::Unreadable));
    assert_eq!(QueueRecord::decode(&nested), Err(RecordError::Unreadable));
}
