//! Groups take turns, and have limits of their own.

use super::numbers::shown;
use super::*;

/// The group that a pause is about.
pub fn group_of<'w>(words: &'w [&'w str]) -> (Option<Id<'w>>, &'w [&'w str]) {
    match words.split_first() {
        Some((first, rest)) if first.starts_with("group=") => {
            (Some(id(&first["group=".len()..])), rest)
        }
        Some(_) | None => (None, words),
    }
}

pub fn of_group(group: &GroupView) -> String {
    let GroupView { ready, reserved, delayed, paused_until, .. } = group;
    let paused = paused_until.map_or(String::new(), |until| format!(" until {}", shown(until)));
    format!("{ready} {reserved} {delayed}{paused}")
}

#[test]
fn a_tenant_with_many_jobs_delays_anothers_single_one_by_one_turn() {
    check("@0 ADD a group=big | ADD b group=big | ADD c group=big | POP -> a#1 | ADD x group=small | POP -> b#1 | POP n=9 -> x#1 c#1");
    check("@0 ADD a group=big | ADD b group=big | ADD c group=big | POP -> a#1 | @5 ADD x group=small | ADD y group=small | POP n=9 -> b#1 x#1 c#1 y#1");
}

#[test]
fn jobs_without_a_group_take_turns_as_one_group() {
    check(
        "@0 ADD a | ADD b | ADD c group=g | ADD d group=g | ADD e | POP n=9 -> a#1 c#1 b#1 d#1 e#1",
    );
    check("@0 ADD a group=g | ADD b | ADD c | POP n=9 -> b#1 a#1 c#1");
}

#[test]
fn inside_a_round_the_group_that_was_ready_first_leaves_first() {
    check("@0 ADD a group=a +3 | ADD b group=b +1 | ADD c group=c +2 | @9 POP n=9 -> b#1 c#1 a#1");
    check("@0 ADD a1 group=a | ADD a2 group=a | @1 ADD b group=b | ADD c1 group=c | ADD c2 group=c | @2 POP n=9 -> a1#1 b#1 c1#1 a2#1 c2#1");
}

#[test]
fn a_group_has_one_turn_in_a_round_also_when_it_was_empty_in_between() {
    check("@0 ADD b1 group=b | ADD b2 group=b | ADD b3 group=b | ADD a1 group=a | POP -> b1#1 | POP -> a1#1 | FINISH a1 * | @1 ADD a2 group=a | POP -> b2#1 | POP -> a2#1 | POP -> b3#1");
}

#[test]
fn priorities_come_first_and_each_has_its_own_turns() {
    check("@0 ADD a group=a prio=1 | ADD b group=a prio=1 | ADD c group=b prio=2 | POP n=9 -> a#1 b#1 c#1");
}

#[test]
fn inside_a_group_jobs_leave_by_their_time_and_then_in_order() {
    check(
        "@0 ADD a group=g +5 | ADD b group=g +3 | ADD c group=g +3 | @3 POP n=9 -> b#1 c#1 | @5 POP -> a#1",
    );
}

/// SQS FIFO; bullmq#1510: a job that waits blocks its group there.
#[test]
fn a_group_with_concurrency_1_keeps_strict_order() {
    check("@0 ALTER each=1 | ADD a group=g | ADD b group=g | ADD c group=h | POP n=9 -> a#1 c#1 | POP -> nil | FINISH a L1 | POP -> b#1 | BURY b L3 | ADD d group=g | POP -> d#1 | DEL d | ADD e group=g | POP -> e#1");
    check("@0 ALTER each=1 | ADD a group=g base=50 max=50 | ADD b group=g | POP -> a#1 | RELEASE a L1 +50 | POP -> b#1 | POP -> nil | FINISH b L2 | @50 POP -> a#2");
    check("@0 ALTER each=2 | ADD a group=g ttr=10 | ADD b group=g ttr=20 | ADD c group=g | POP n=9 -> a#1 b#1 | @9 POP -> nil | @10 POP n=9 -> c#1");
}

#[test]
fn a_dead_workers_place_in_a_group_is_free_at_the_end_of_its_lease() {
    check("@0 ALTER each=1 | ADD a group=g ttr=10 base=90 max=90 | ADD b group=g | POP -> a#1 | UPKEEP -> 10 | LOAD | @9 POP -> nil | @10 POP -> b#1");
    check("@0 ALTER each=1 | ADD a group=g ttr=10 tries=1 | ADD b group=g | POP -> a#1 | @10 POP -> b#1");
    check("@0 ALTER each=1 | ADD a group=g ttr=10 base=9 max=9 | ADD b group=g ttr=10 | POP -> a#1 | TOUCH a L1 -> 1 | @10 POP -> b#1 | TOUCH a L1 -> 0 | TOUCH b L2 -> 1 | FINISH a L1 -> 1");
}

#[test]
fn a_rate_holds_for_each_group_by_itself() {
    check("@0 ALTER eachrate=1/10 | ADD a group=g | ADD b group=g | ADD c group=h | ADD d | ADD e | POP n=9 -> d#1 a#1 c#1 e#1 | UPKEEP -> 10 | @9 POP -> nil | @10 POP n=9 -> b#1");
    check("@0 ALTER eachrate=1/10 burst=2 | ADD a group=g | ADD b group=g | ADD c group=g | POP n=9 -> a#1 b#1 | LOAD | @9 POP -> nil | @10 POP -> c#1");
    check("@100000 ALTER eachrate=1/10 | ADD a group=g | ADD b group=g | POP -> a#1 | @50 ADD x group=g | POP -> nil | @60 POP -> x#1");
}

/// Whoever waits asks for jobs, and nobody else says anything.
#[test]
fn a_clock_that_was_set_back_holds_no_group_back_for_longer_than_a_distance() {
    check("@0 ADD a group=g | ADD b group=g | @100000 ALTER eachrate=1/10 | POP -> a#1 | @50 POP -> nil | UPKEEP -> 60 | LOAD | @59 POP -> nil | @60 POP -> b#1");
    check("@0 ADD a group=g | @100000 ALTER eachrate=1/10 | TAKE a -> a#1 | RELEASE a L1 | @50 TAKE a -> nil | @59 TAKE a -> nil | @60 TAKE a -> a#2");
    let mut queue = Queue::new((1, 2));
    let rate = Some(Rate::new(1, span(10), 1));
    for name in ["a", "b"] {
        add(&mut queue, 0, &Add { group: Some(id("g")), ..plain(name) });
    }
    queue.apply(&told(100_000), &Alter { group_rate: rate, ..Alter::default() });
    assert_eq!(queue.apply(&told(100_000), &Pop::ONE).len(), 1);
    let mut restored = script::loaded(&queue);
    for queue in [&mut queue, &mut restored] {
        assert!(!queue.apply(&told(100_000), &Pop::ONE).has_changed(), "the clock is right");
        let check = queue.log_state().check;
        assert!(queue.apply(&told(50), &Pop::ONE).has_changed(), "it was set back");
        assert_ne!(queue.log_state().check, check, "that is a change");
        assert_eq!(queue.log_state().clock, at(50));
        assert!(!queue.apply(&told(50), &Pop::ONE).has_changed(), "that is known");
        queue.advance(at(50));
        assert_eq!(queue.find_wake_at(), Some(at(60)));
        assert_eq!(
            (queue.apply(&told(59), &Pop::ONE).len(), queue.apply(&told(60), &Pop::ONE).len()),
            (0, 1)
        );
    }
    assert_eq!(queue.group_records(), restored.group_records());
    // Without a rate of groups, nobody has to hear of it.
    queue.apply(&told(70), &Alter { group_rate: Some(None), ..Alter::default() });
    queue.apply(&told(70), &Pause { group: None, span: None });
    assert!(!queue.apply(&told(60), &Pop::ONE).has_changed());
    // Nor where there is no group.
    let mut queue = Queue::new((1, 2));
    queue.apply(&told(70), &Alter { group_rate: rate, ..Alter::default() });
    assert!(!queue.apply(&told(60), &Pop::ONE).has_changed());
}

/// Who is not held back stands by the time of its first job, however much of a burst it has used.
#[test]
fn a_burst_that_is_not_used_up_moves_no_group() {
    check("@0 ALTER eachrate=1/10 burst=3 | ADD a group=a | @1 ADD b group=b | @100 POP n=9 -> a#1 b#1 | ADD a2 group=a | @101 ADD b2 group=b | @102 LOAD | POP n=9 -> a2#1 b2#1");
    check("@0 ALTER eachrate=1/10 burst=2 | ADD a group=g | ADD b group=g | ADD c group=g | ADD x group=h | @5 POP n=9 -> a#1 x#1 b#1 | LOAD | @14 POP -> nil | @15 POP -> c#1 | LOAD | @16 ADD d group=g | @25 POP -> d#1");
    let mut queue = Queue::new((1, 2));
    let rate = Some(Rate::new(1_000, span(1_000), 1_000));
    queue.apply(&told(0), &Alter { group_rate: rate, ..Alter::default() });
    for n in 0..600u64 {
        let (name, group) = (n.to_string(), Some(id("g")));
        add(&mut queue, 0, &Add { id: Some(id(&name)), group, ..plain("x") });
    }
    let before = queue.group(id("g")).unwrap().opens;
    for now in 10_001..10_500 {
        assert_eq!(queue.apply(&told(now), &Pop::ONE).len(), 1);
        assert_eq!(queue.group(id("g")).unwrap().opens, before, "at {now}");
    }
    let loaded = script::loaded(&queue);
    assert_eq!(loaded.group_records(), queue.group_records());
    assert_eq!(loaded.group(id("g")).unwrap().opens, before);
}

#[test]
fn a_group_that_is_paused_hands_out_nothing() {
    check("@0 ADD a group=g | ADD b group=h | PAUSE group=g 10 | POP n=9 -> b#1 | UPKEEP -> 10 | GROUP g -> 1 0 0 until 10 | LOAD | @9 POP -> nil | @10 POP -> a#1");
    check("@0 PAUSE group=g | ADD a group=g | POP -> nil | RESUME -> 0 | RESUME group=h -> 0 | RESUME group=g -> 1 | POP -> a#1");
}

#[test]
fn an_expired_job_is_stepped_over_and_takes_no_turn() {
    check("@0 ADD a group=g ttl=5 | ADD b group=g +20 | ADD c group=h +6 | @6 POP -> c#1 | POP -> nil | @20 POP -> b#1");
    check("@0 ADD a group=g ttl=5 | @9 ADD b group=g | ADD c group=h | POP n=9 -> b#1 c#1");
    check("@0 ADD a group=g ttl=5 | ADD b group=g +20 | @6 POP -> nil | ADD c group=g +1 | @7 POP -> c#1 | @20 POP -> b#1");
    // The clock is set back: it lives again.
    check("@0 ADD a group=g ttl=50 | ADD b group=h | @60 POP -> b#1 | POP -> nil | @40 POP -> a#1");
}

#[test]
fn counts_of_a_group_add_up() {
    check("@0 ADD a group=g | ADD b group=g +9 | ADD c group=g ttr=5 tries=1 | ADD d group=g | ADD e group=g ttl=3 +9 | GROUP g -> 3 0 2 | POP n=2 -> a#1 c#1 | GROUP g -> 1 2 2 | @3 GROUP g -> 1 2 1 | @5 GROUP g -> 1 1 1 | @9 GROUP g -> 2 1 0 | GROUP h -> nil");
}

#[test]
fn a_late_job_of_a_group_is_dead_and_takes_no_turn() {
    check("@0 ADD a group=g late=5 | ADD b group=g +20 | ADD c group=h +20 | GROUP g -> 1 0 1 | @5 GROUP g -> 0 0 1 | COUNTS -> 2 0 0 1 | POP -> nil | @20 POP n=9 -> b#1 c#1 | WHY a -> late");
    // What a limit of its group holds back for too long is dead.
    check("@0 ALTER each=1 | ADD a group=g | ADD b group=g late=5 | POP n=9 -> a#1 | @5 FINISH a L1 | POP -> nil | GET b -> dead 0");
    check(
        "@0 ADD a group=g late=5 | PAUSE group=g 9 | UPKEEP -> 5 | @5 KICK 1 -> a | @9 POP -> a#1",
    );
}

#[test]
fn a_run_of_a_group_that_is_too_old_is_passed_over_and_takes_no_turn() {
    check("@0 ADD a every=10 late=3 group=g | ADD b group=g +25 | ADD c group=h +24 | @25 POP n=9 -> c#1 b#1 | ROUND a -> 30>nil run=0 missed=2 | @30 POP -> a#1");
    // A group that may not leave passes over nothing.
    check("@0 ADD a every=10 late=3 group=g | PAUSE group=g 50 | @25 POP -> nil | ROUND a -> 10>nil run=0");
}

#[test]
fn a_job_taken_by_id_is_held_back_by_its_group_and_takes_no_turn() {
    check("@0 ADD a group=g | ADD b group=g | ADD c group=h | TAKE a -> a#1 | POP n=9 -> b#1 c#1");
    check("@0 ALTER each=1 | ADD a group=g | ADD b group=g | ADD c group=h | ADD d | TAKE b a c d -> b#1 c#1 d#1 | FINISH b L1 | TAKE a -> a#1");
    check("@0 ADD a group=g +50 | ADD b group=h | PAUSE group=g 9 | TAKE a b -> b#1 | @9 TAKE a -> a#1");
    check("@0 ALTER eachrate=1/10 | ADD a group=g +50 | ADD b group=g | TAKE a -> a#1 | POP -> nil | TAKE b -> nil | UPKEEP -> 10 | LOAD | @10 TAKE b -> b#1");
    // Nobody is kicked in vain.
    check("@0 ALTER each=1 | ADD a group=g | ADD b group=g | POP -> a#1 | BURY a L1 snow | POP -> b#1 | TAKE a -> nil | GET a -> dead 0 #1 | WHY a -> snow | FINISH b L2 | TAKE a -> a#1");
    check("@0 ALTER each=1 | ADD a group=g | ADD b group=g | TAKE b -> b#1 | UNBEGUN b L1 -> 1 | POP -> a#1");
    // It isn't the queue's limit that holds it back.
    check("@0 ALTER each=1 concurrency=1 | ADD a group=g | ADD b group=g | TAKE a b -> a#1");
}

#[test]
fn released_with_another_priority_a_job_stays_in_its_group() {
    check("@0 ALTER each=1 | ADD a group=g prio=5 | ADD b group=g prio=5 | ADD c group=h prio=3 +9 | POP -> a#1 | RELEASE a L1 prio=1 | POP n=9 -> a#2 | GROUP g -> 1 1 0 | LOAD | @9 POP n=9 -> c#1 | FINISH a L2 | POP -> b#1");
    // There, its group hasn't had its turn.
    check("@0 ADD a group=g prio=1 | ADD b group=h prio=1 | ADD c group=g prio=2 | POP -> a#1 | RELEASE a L1 prio=2 | POP n=9 -> b#1 c#1 a#2");
}

#[test]
fn jobs_of_groups_are_kicked_and_counted_as_others() {
    check("@0 ALTER each=1 | ADD a group=g ttr=5 | ADD b group=g | POP -> a#1 | @5 TALLY a -> 1 0 0 0 | POP -> b#1 | BURY b L2 | POP -> a#2 | TALLY a -> 1 0 0 0 | KICK 1 -> b | TALLY b -> 0 0 1 1 | LOAD | TALLY b -> 0 0 1 1 | GROUP g -> 1 1 0");
}

/// What leaves at that time, of so many.
pub fn leaving(queue: &mut Queue, now: u64, count: usize) -> Vec<String> {
    let deliveries = queue.apply(&told(now), &Pop { count, ..Pop::ONE });
    let names = deliveries.iter().map(|delivery| delivery.id_and_body(queue).0.bytes().to_vec());
    names.map(|name| String::from_utf8(name).unwrap()).collect()
}

/// A queue that is loaded knows nothing of how its groups stood under the limits before.
#[test]
fn other_limits_hold_at_once_for_each_of_many_groups() {
    let mut queue = Queue::new((1, 2));
    for n in 0..800u64 {
        let (name, group) = (n.to_string(), (n % 200).to_string());
        let (id, group) = (Some(id(&name)), Some(id(&group)));
        let (due, priority) = (Due::In(span(n * 7 % 13)), Some((n % 400 / 200) as u8));
        let ttl = (n % 5 == 0).then(|| span(15));
        add(
            &mut queue,
            0,
            &Add { id, group, due, priority, ttl, ttr: Some(span(9)), ..plain("x") },
        );
    }
    let rate = |jobs, per, burst| Rate::new(jobs, span(per), burst);
    let limits = [
        (1, None),
        (0, rate(1, 30, 2)),
        (2, rate(2, 9, 1)),
        (1, rate(2, 9, 1)),
        (2, None),
        (0, None),
    ];
    // A few groups are concerned, many, and all.
    for (wanted, times) in [(3, 0), (120, 100), (700, 200)] {
        for (number, (limit, group_rate)) in limits.into_iter().enumerate() {
            let now = 12 + times + 5 * number as u64;
            leaving(&mut queue, now, wanted / 6);
            let (group_concurrency, group_rate) = (Some(limit), Some(group_rate));
            queue.apply(&told(now), &Alter { group_concurrency, group_rate, ..Alter::default() });
            let mut other = script::loaded(&queue);
            assert_eq!(queue.group_opens(), other.group_opens());
            for later in [0, 1, 4] {
                let left = leaving(&mut queue, now + later, wanted / 3);
                assert_eq!(
                    left,
                    leaving(&mut other, now + later, wanted / 3),
                    "{limit} {group_rate:?} at {now}"
                );
            }
        }
    }
}

#[test]
fn a_forecast_counts_jobs_of_groups_as_others() {
    let forecast_of = |groups: u64| {
        let mut queue = Queue::new((1, 2));
        let backoff = Some(Backoff { base: span(40), max: span(40) });
        for n in 0..3_000u64 {
            let (name, group) =
                (n.to_string(), n.checked_rem(groups).map(|group| group.to_string()));
            let (id, group) = (Some(id(&name)), group.as_deref().map(id));
            let (due, priority) = (Due::In(span(n % 100)), Some((n % 3) as u8));
            // Those of 60 to 79 have expired by then.
            let ttl = (60..80).contains(&(n % 100)).then(|| span(50));
            add(&mut queue, 0, &Add { id, group, due, priority, ttl, backoff, ..plain("x") });
        }
        // Some are being worked on; of some, the lease has run out, and they wait for their
        // backoff.
        queue.apply(&told(0), &Pop { count: 10, ttr: Some(span(90)), ..Pop::ONE });
        queue.apply(&told(0), &Pop { count: 20, ttr: Some(span(9)), ..Pop::ONE });
        queue.apply(&told(0), &Alter { group_concurrency: Some(1), ..Alter::default() });
        if groups > 0 {
            let pause = Pause { group: Some(id("0")), span: None };
            queue.apply(&told(0), &pause);
        }
        queue.advance(at(10));
        queue.forecast(&Forecast::new(at(0), span(20), 6).unwrap())
    };
    // Thirty in each millisecond from 11 on; and twenty that wait for their backoff.
    let without = forecast_of(0);
    assert_eq!([without[0], without[3], without[4], without[5]], [270, 0, 600, 0]);
    assert_eq!(without.iter().sum::<u64>(), 270 + 600 + 600 + 600 + 20);
    for groups in [1, 7, 3_000] {
        assert_eq!(forecast_of(groups), without, "{groups} groups");
    }
}
