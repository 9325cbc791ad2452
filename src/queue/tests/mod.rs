//! What a queue does, as transcripts. The notation is that of [`script`].

use super::*;

mod by_id;
mod cost;
mod deliveries;
mod done;
mod door;
mod edges;
mod edges_of_files;
mod expiry;
mod groups;
mod idle_groups;
mod large;
mod late;
mod limits;
mod looks;
mod many;
mod numbers;
mod operators;
mod pending;
mod records;
mod rounds;
mod script;
mod tally;
mod turns;
mod upkeep;
mod watch;
mod words;
mod workers;

use script::check;

#[test]
fn a_job_is_never_delivered_early() {
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
    check(
        "@0 ADD high prio=0 +1 | ADD low prio=255 | POP -> low#1 | POP -> nil | @1 POP -> high#1",
    );
}

#[test]
fn a_lease_lasts_its_ttr() {
    check("@0 ADD a ttr=10 | POP -> a#1 | GET a -> reserved 10 #1 L1 | @9 POP -> nil | GET a -> reserved 10 #1 L1 \
         | @10 GET a -> ready 10 #1 L1 | POP -> a#2 | GET a -> reserved 20 #2 L2");
    check("@0 ADD a ttr=10 | @5 POP ttr=3 -> a#1 | GET a -> reserved 8 #1 L1 | @8 POP -> a#2 | GET a -> reserved 18 #2 L2");
}

#[test]
fn a_pop_that_finds_nothing_hides_no_job_from_later_pops() {
    check("@0 ADD a ttr=10 | ADD b ttr=10 | POP | POP | @1 POP -> nil | @9 POP -> nil | @10 POP -> a#2 | POP -> b#2 | POP -> nil");
    check("@0 ADD a ttr=10 base=3 max=3 | ADD b +20 | ADD c | POP | POP | @1 POP -> nil | @13 POP -> a#2 | @20 POP -> b#1");
    check("@0 ADD a ttl=5 | ADD b +3 ttl=9 | ADD c +6 | @5 POP -> b#1 | POP -> nil | @6 POP -> c#1 | @4 POP -> a#1");
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
    check(
        "@0 ADD a | POP -> a#1 | FINISH a * -> 1 | FINISH a * -> 0 | ADD a -> 0 | GET a -> ready 0",
    );
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
fn a_job_that_was_never_delivered_cannot_be_finished() {
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
fn dead_jobs_stand_last_in_the_order_of_their_deaths() {
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
fn time_that_goes_back_is_taken_as_it_is() {
    check("@100 ADD a +50 -> 150 | @40 ADD b +50 -> 90 | TOLD b -> x @40 ttr=60 prio=128 tries=0 | POP -> nil | @90 POP -> b#1 | @149 POP -> nil | @150 POP -> a#1 | POP -> b#2");
    check("@100 ADD a | @50 GET a -> delayed 100 | POP -> nil | NEXT -> 100 | ADD b -> 50 | POP -> b#1 | @100 POP -> a#1");
    check(
        "@0 ADD a +10 | @10 COUNTS -> 0 1 0 0 | @9 COUNTS -> 1 0 0 0 | POP -> nil | @10 POP -> a#1",
    );
    check("@0 ADD a ttr=10 tries=1 | POP | @10 COUNTS -> 0 0 0 1 | @5 GET a -> reserved 10 #1 L1 | COUNTS -> 0 0 1 0 | @20 ADD b =1 -> 20");
    check("@9 ADD a ttr=10 | POP | @500 POP -> a#2 | @0 FINISH a L1 -> 0 | GET a -> reserved 510 #2 L2 | TOUCH a L2 | GET a -> reserved 10 #2 L2 | @10 POP -> a#3");
    check("@50 ADD a keep=9 | POP | FINISH a * | @59 FORGET -> a | @0 ADD a keep=9 | POP | FINISH a * | @8 FORGET -> | ADD a -> taken | @9 ADD a -> 9");
    check("@50 ADD a ttl=9 ttr=3 | POP | @59 COUNTS -> 0 0 0 1 | TOUCH a L1 -> 0 | @58 TOUCH a L1 -> 1 | COUNTS -> 0 0 1 0 | @53 PEEK reserved -> a");
}

#[test]
fn jobs_live_up_to_the_last_millisecond_there_is() {
    check("@0 ADD a =MAX -> MAX | @MAX-1 COUNTS -> 1 0 0 0 | NEXT -> MAX | @MAX COUNTS -> 0 1 0 0 | NEXT -> nil");
    check("@MAX-5 ADD a +10 -> MAX | COUNTS -> 1 0 0 0 | @MAX COUNTS -> 0 1 0 0");
    check("@5 ADD a ttr=MAX | POP -> a#1 | GET a -> reserved MAX #1 L1 | @MAX GET a -> ready MAX #1 L1 | FINISH a L1 -> 1");
    check("@5 ADD a tries=1 ttr=MAX | POP -> a#1 | NEXT -> MAX | @MAX GET a -> dead MAX #1 L1 | NEXT -> nil | KICK 1 -> a | GET a -> ready MAX");
    check("@MAX ADD a +MAX ttr=10 -> MAX | GET a -> ready MAX");
}

#[test]
fn nothing_is_delivered_once_the_numbers_of_leases_are_used_up() {
    check("@END-1 ADD a | ADD b | ADD c | POP -> a#1 | LEASE -> 9007199254738944 | @END POP -> nil | POP NOACK -> nil | COUNTS -> 0 2 1 0 | FINISH a L1 -> 1 | @END-1 POP -> b#1 | LEASE -> 9007199254738945");
    check("@MAX ADD a | POP -> nil | COUNTS -> 0 1 0 0 | @END-1 POP -> nil | @MAX POP -> nil");
    check("@0 ADD a | ADD b | FLOOR 9007199254740989 | POP n=2 -> a#1 | LEASE -> 9007199254740990 | POP -> nil | @9 POP -> nil");
}

#[test]
fn leases_only_grow() {
    check("@0 LEASE -> nil | POP -> nil | LEASE -> nil | FLOOR 5000 | ADD a | POP | LEASE -> 5001 | DEL a | FLOOR 10 | ADD a | POP | LEASE -> 5002 \
         | FINISH a * | ADD b | FLOOR 6000 | POP | LEASE -> 6001 | ADD b REPLACE | POP | LEASE -> 6002");
    check("@0 ADD a | POP -> a#1 | LEASE -> 1 | @1 ADD b | POP -> b#1 | LEASE -> 2048 | @0 ADD c | POP -> c#1 | LEASE -> 2049 | @2 ADD d | POP -> d#1 | LEASE -> 4096");
}

#[test]
fn a_floor_of_leases_stays_with_what_changed_the_queue() {
    check("@0 FLOOR 5000 | POP -> nil | LEASE -> nil | ADD a | LEASE -> 5000 | FLOOR 6000 | ADD a -> taken | LEASE -> 5000 | FLOOR 0 | POP | LEASE -> 5001");
}

#[test]
fn ids_made_by_the_queue_sort_by_time() {
    check("@5 ADD * -> 5-0 | ADD * -> 5-1 | @6 ADD * -> 6-0 | @5 ADD * -> 6-1 | NAME -> 6-2 | @7 NAME -> 7-0 | NAME -> 7-0 | ADD * -> 7-0");
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
    // Where the search looks in one millisecond, and at the start of the next.
    for bits in 0..=64 {
        add(&mut queue, 9, &plain(&format!("9-{}", (1u128 << bits) - 1)));
    }
    add(&mut queue, 9, &plain("10-0"));
    add(&mut queue, 9, &Add { id: None, ..plain("made") });
    assert_eq!(queue.len(), 67);
}

#[test]
fn a_record_with_the_last_serial_there_is_does_not_hold_the_queue_up() {
    for time in [9, Time::MAX.unix_ms()] {
        let mut queue = Queue::new((1, 2));
        let serial = value::serial::Serial { time: at(time), number: u64::MAX };
        let record = QueueRecord { serial, ..QueueRecord::default() };
        queue.restore(&record).unwrap();
        add(&mut queue, 9, &plain(&format!("{time}-{}", u64::MAX)));
        add(&mut queue, 9, &Add { id: None, ..plain("made") });
        assert_eq!(queue.len(), 2);
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
    check("@3 ADD * -> 3-0 | FLOOR 7000 | POP | COPY | FINISH 3-0 L1 | SWAP | ADD * -> 3-1 | LEASE -> 7001 | FINISH 3-0 L1 -> 1");
}

#[test]
fn a_record_nested_without_end_is_refused() {
    // A map with a field that nobody knows, which holds an array that holds an array that …
    let nested = [&[0x81, 0xa1, b'x'], &[0x91; 1_000_000][..]].concat();
    assert_eq!(JobRecord::decode(&nested), Err(RecordError::Unreadable));
    assert_eq!(QueueRecord::decode(&nested), Err(RecordError::Unreadable));
}

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn span(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn id(name: &str) -> Id<'_> {
    Id::new(name.as_bytes()).unwrap()
}

/// At this time, and jobs get a TTR of 60 ms.
fn told(now: u64) -> Circumstances {
    let defaults = Defaults { ttr: span(60), ..Defaults::default() };
    Circumstances { now: at(now), defaults, ..Circumstances::default() }
}

fn plain(name: &str) -> Add<'_> {
    Add::plain(id(name), b"body")
}

/// Adds this job, which is new.
fn add(queue: &mut Queue, now: u64, add: &Add) {
    assert!(matches!(queue.apply(&told(now), add), Added::New { .. }));
}

fn delete(queue: &mut Queue, name: &str) {
    queue.apply(
        &told(0),
        &Remove { ids: Ids::from_slice(&[id(name)]), counted_as: Removal::Deleted },
    );
}

/// The lease of the one job that a pop delivers.
fn popped(queue: &mut Queue, now: u64) -> Lease {
    queue.apply(&told(now), &Pop::ONE).iter().next().expect("a job is ready").lease
}
