//! What operators do and see.

use super::numbers::number;
use super::*;

#[test]
fn kick_revives_dead_jobs_in_the_order_of_their_deaths() {
    check("@0 ADD a ttl=30 | ADD b ttl=10 | ADD c ttl=20 | @40 PEEK dead -> b c a | KICK 2 -> b c | COUNTS -> 0 2 0 1 | ORDER -> a b c | POP -> b#1 | POP -> c#1 | NEXT -> 50 \
         | @50 PEEK dead -> a b | @60 PEEK dead -> a b c | MORE_TOTALS -> 0 0 5 2 0");
    check("@0 ADD a | ADD b +1 | KICK 9 -> | POP | KICK 9 -> | COUNTS -> 1 0 1 0 | MORE_TOTALS -> 0 0 0 0 0");
}

#[test]
fn a_kicked_job_begins_its_attempts_and_its_life_anew() {
    check("@0 ADD a tries=1 ttr=5 | POP | @5 KICK 9 -> a | GET a -> ready 5 | POP -> a#1 | FINISH a L1 -> 0 | FINISH a L2 -> 1");
    check("@0 ADD a ttl=10 | @30 KICK 1 -> a | GET a -> ready 30 | @39 COUNTS -> 0 1 0 0 | @40 COUNTS -> 0 0 0 1 | MORE_TOTALS -> 0 0 2 1 0");
    check("@0 ADD a ttl=10 tries=1 ttr=3 | POP | @5 KICK 1 -> a | NEXT -> 15 | POP -> a#1 | @8 WHY a -> no attempts left");
    check("@0 ADD a prio=9 | ADD b prio=8 +50 | POP -> a#1 | BURY a L1 | @50 KICK 1 -> a | POP -> b#1 | POP -> a#1");
}

#[test]
fn a_kicked_job_forgets_why_it_was_dead() {
    check("@0 ADD a | POP | BURY a L1 snow | WHY a -> snow | KICK 1 -> a | WHY a -> nil | POP | BURY a L2 | WHY a -> buried");
    check("@0 ADD a | POP | RELEASE a L1 +50 rain | KICKJOB a -> 1 | GET a -> ready 0 #1 | WHY a -> rain");
}

#[test]
fn kick_job_makes_a_dead_or_a_delayed_job_ready() {
    check("@0 ADD a +100 | @5 KICKJOB a -> 1 | GET a -> ready 5 | KICKJOB a -> 0 | POP -> a#1 | KICKJOB a -> 0 | RELEASE a L1 +100 | KICKJOB a -> 1 | GET a -> ready 5 #1 \
         | POP -> a#2 | BURY a L2 | KICKJOB a -> 1 | GET a -> ready 5 | POP -> a#1 | MORE_TOTALS -> 1 1 1 3 0");
    check("@0 ADD a keep=9 | POP | FINISH a L1 | KICKJOB a -> 0 | KICKJOB nobody -> 0 | COUNTS -> 0 0 0 0 1");
}

#[test]
fn a_delayed_job_that_is_kicked_keeps_its_attempts_and_its_life() {
    check("@0 ADD a ttr=10 base=3 max=3 tries=2 | POP | @11 KICKJOB a -> 1 | GET a -> ready 11 #1 | FINISH a L1 -> 0 | POP -> a#2 | @21 WHY a -> no attempts left");
    check(
        "@0 ADD a +100 ttl=50 | @20 KICKJOB a -> 1 | GET a -> ready 20 | NEXT -> 50 | @50 COUNTS -> 0 0 0 1",
    );
    check("@0 ADD a +100 | ADD b +5 | @10 KICKJOB a | ORDER -> b a");
}

#[test]
fn a_paused_queue_hands_out_nothing_and_loses_no_time() {
    check("@0 ADD a | PAUSE 10 | POP -> nil | POP NOACK -> nil | UPKEEP -> 10 | COUNTS -> 0 1 0 0 | @9 POP -> nil | @10 POP -> a#1");
    check("@0 ADD a ttr=5 | ADD b +3 ttl=4 | POP -> a#1 | PAUSE | @3 COUNTS -> 0 1 1 0 | @5 COUNTS -> 0 1 0 1 | POP -> nil | FINISH a L1 -> 1 | LOAD | ADD c -> 5 | POP -> nil | RESUME -> 1 | RESUME -> 0 | POP -> c#1");
    check("@0 ADD a | PAUSE 10 | @20 UPKEEP -> nil | POP -> a#1 | ADD b | @9 POP -> nil | RESUME -> 1 | @20 POP -> b#1");
    // A pause that was over when it was ended doesn't come back with an earlier clock.
    check("@0 ADD a | PAUSE 10 | @20 RESUME -> 1 | RESUME -> 0 | @9 POP -> a#1");
    check("@0 ADD a | @5 PAUSE 10 | PAUSE 3 | @7 POP -> nil | @8 POP -> a#1");
}

#[test]
fn a_queue_holds_no_more_jobs_than_it_may() {
    check("@0 ALTER maxjobs=2 | ADD a | ADD b +5 | ADD c -> full | ADD * -> full | ADD a -> taken | ADD a +7 REPLACE -> replaced 7 | ADD c REPLACE -> full | DEL b | ADD c -> 0 | ADD d -> full | TOTALS -> 3 1 0 0 0 1");
    check("@0 ALTER maxjobs=1 | ADD a keep=5 | POP | ADD b -> full | FINISH a L1 | ADD b -> full | @5 ADD b -> full | FORGET -> a | ADD b -> 5 | POP | BURY b L2 | ADD c -> full");
    check("@0 ADD a | ADD b | ALTER maxjobs=1 | ADD c -> full | DEL a | ADD c -> full | LOAD | ADD c -> full | ALTER maxjobs=0 | ADD c -> 0");
}

#[test]
fn peek_shows_jobs_in_the_order_in_which_they_leave_their_state() {
    check("@0 ADD low prio=200 | ADD high prio=1 | ADD late +5 prio=0 | ADD brief ttl=3 | PEEK ready -> high brief low | @3 PEEK ready -> high low | @5 PEEK ready -> late high low");
    check("@0 ADD a +30 prio=0 | ADD b +20 | ADD c +40 ttl=10 | PEEK delayed -> c b a | @20 PEEK delayed -> a | PEEK dead -> c");
    check("@0 ADD a ttr=30 | ADD b ttr=20 base=3 max=3 | ADD c ttr=10 tries=1 | ADD d ttr=25 ttl=15 | POP | POP | POP | POP | PEEK reserved -> c d b a \
         | @20 PEEK delayed -> b | PEEK reserved -> a | PEEK dead -> c d | PEEK ready -> | @23 PEEK ready -> b");
    check("@0 ADD a keep=9 | ADD b keep=5 | ADD c keep=7 | POP | POP | POP | FINISH a L1 | FINISH b L2 | FINISH c L3 | PEEK done -> b c a");
    check("@0 ADD a ttr=20 base=3 max=3 ttl=22 | ADD b ttr=21 base=3 max=3 | POP | POP | PEEK reserved -> a b | @20 PEEK reserved -> b | PEEK delayed -> a | @21 PEEK delayed -> a b | @22 PEEK dead -> a");
}

#[test]
fn peek_shows_no_more_jobs_than_its_limit() {
    let mut queue = Queue::new((1, 2));
    (0..10).for_each(|n| add(&mut queue, 0, &plain(&n.to_string())));
    queue.advance(at(0));
    let seen = |at_most| queue.peek(State::Ready, at_most).len();
    assert_eq!((seen(0), seen(3), seen(10), seen(11)), (0, 3, 10, 10));
}

#[test]
fn purge_removes_jobs_that_were_in_their_state_for_long_enough() {
    check("@0 ADD a +5 | ADD b +10 | ADD c +15 | @15 PURGE ready 6 9 -> a | PURGE ready 5 9 -> b | PURGE ready 0 9 -> c | MORE_TOTALS -> 0 0 0 0 3 | COUNTS -> 0 0 0 0");
    check("@0 ADD a ttl=10 | ADD b ttl=20 | ADD c ttl=30 | @30 PURGE dead 0 2 -> a b | PURGE dead 1 2 -> | PURGE dead 0 2 -> c | NEXT -> nil");
    check("@0 ADD a +50 | @9 ADD b +50 | @10 PURGE reserved 0 9 -> | PURGE delayed 0 1 -> a | PURGE delayed 0 9 -> b");
    check(
        "@0 ADD a keep=50 | POP | @5 FINISH a L1 | @10 PURGE done 6 9 -> | PURGE done 5 9 -> a | ADD a -> 10",
    );
    check("@100 ADD a | ADD b keep=9 | POP | BURY a L1 | POP | FINISH b L2 | @50 PURGE dead 1 9 -> | PURGE done 1 9 -> | PURGE dead 0 9 -> a | PURGE done 0 9 -> b");
    check("@0 ADD a ttr=10 base=3 max=3 | ADD b ttr=20 | POP | POP | @5 PURGE reserved 0 9 -> a b | NEXT -> nil | MORE_TOTALS -> 0 0 0 0 2 | FINISH a L1 -> 0");
}

#[test]
fn a_scan_shows_every_job_once_whatever_its_state() {
    check("@0 SCAN 5 -> | ADD a | ADD b +5 | ADD c ttl=1 | SCAN 2 -> a b / c | SCAN 3 -> a b c | SCAN 1 -> a / b / c | DEL b | SCAN 1 -> a / c | @1 POP | SCAN 9 -> a c");
}

#[test]
fn a_scan_sees_everything_that_stays_while_others_come_and_go() {
    const STAY: u64 = 5_000;
    let mut queue = Queue::new((1, 2));
    for n in 0..STAY {
        add(&mut queue, 0, &Add { due: Due::At(at(n % 7)), ..plain(&format!("stays {n}")) });
        add(&mut queue, 0, &Add { due: Due::At(at(n % 5)), ..plain(&format!("goes {n}")) });
    }
    let mut seen = std::collections::BTreeSet::new();
    let (mut from, mut parts) = (Some(0), 0);
    while let Some(place) = from {
        let part = queue.scan(place, &ScanFilter::default(), 50);
        assert!(part.slots.len() <= 50);
        seen.extend(
            part.slots.iter().map(|slot| queue.id_and_body(*slot).unwrap().0.bytes().to_vec()),
        );
        for n in parts * 45..(parts + 1) * 45 {
            delete(&mut queue, &format!("goes {}", STAY - 1 - n % STAY));
            add(&mut queue, 0, &plain(&format!("comes {n}")));
        }
        popped(&mut queue, 9);
        (from, parts) = (part.next, parts + 1);
        assert!(parts < 2_000, "a scan ends");
    }
    assert!((0..STAY).all(|n| seen.contains(format!("stays {n}").as_bytes())));
}

#[test]
fn a_scan_over_places_that_jobs_have_left_goes_on_from_part_to_part() {
    let mut queue = Queue::new((1, 2));
    (0..20_000).for_each(|n| add(&mut queue, 0, &plain(&n.to_string())));
    (0..20_000).filter(|n| n % 500 != 499).for_each(|n| delete(&mut queue, &n.to_string()));
    queue.advance(at(0));
    let (mut from, mut parts, mut seen) = (Some(0), 0, 0);
    while let Some(place) = from {
        let part = queue.scan(
            place,
            &ScanFilter { state: Some(State::Ready), ..ScanFilter::default() },
            10,
        );
        (from, parts, seen) = (part.next, parts + 1, seen + part.slots.len());
    }
    assert_eq!(seen, 40);
    assert!((50..=200).contains(&parts), "no part looks at all the places that are free: {parts}");
}

#[test]
fn a_scan_for_a_pattern_looks_at_as_many_jobs_and_shows_those_that_match() {
    let mut queue = Queue::new((1, 2));
    (0..1_000).for_each(|n| {
        add(&mut queue, 0, &plain(&format!("{}:{n}", if n % 10 == 0 { "mail" } else { "sms" })))
    });
    queue.advance(at(0));
    let pattern = Glob::new(b"mail:*");
    let sought =
        ScanFilter { state: Some(State::Ready), glob: Some(&pattern), ..ScanFilter::default() };
    let (mut from, mut sizes, mut seen) = (Some(0), Vec::new(), Vec::new());
    while let Some(place) = from {
        let part = queue.scan(place, &sought, 100);
        seen.extend(queue.ids_of(&part.slots).bytes().iter().map(|id| id.to_vec()));
        sizes.push(part.slots.len());
        from = part.next;
    }
    assert_eq!(sizes, [10; 10]);
    assert!(seen.iter().all(|id| id.starts_with(b"mail:")));
    let none = ScanFilter { state: Some(State::Dead), ..sought };
    assert!(queue.scan(0, &none, 1_000).slots.is_empty());
}

#[test]
fn a_scan_whose_pattern_is_costly_goes_on_from_part_to_part() {
    let mut queue = Queue::new((1, 2));
    let name = |n: usize| format!("{n:a>512}");
    (0..1_000).for_each(|n| add(&mut queue, 0, &plain(&name(n))));
    // It has to be compared at each place, nearly to its end.
    let pattern = Glob::new(format!("*{}b", "a".repeat(254)).as_bytes());
    let sought = ScanFilter { glob: Some(&pattern), ..ScanFilter::default() };
    let (mut from, mut parts) = (Some(0), 0);
    while let Some(place) = from {
        let part = queue.scan(place, &sought, 1_000);
        assert!(part.slots.is_empty());
        assert_ne!(part.next, from, "each part comes on");
        (from, parts) = (part.next, parts + 1);
    }
    assert!((10..200).contains(&parts), "{parts}");
}

#[test]
fn totals_tell_what_time_did_wherever_it_passed() {
    let busy = "@0 ADD a ttr=10 tries=2 | ADD b ttr=10 base=3 max=3 | ADD c ttl=5 | ADD d | POP | POP | POP -> c#1 | POP | RELEASE d L4 | @1 POP | BURY d L5 | @5 TOTALS -> 4 0 5 1 0 0";
    check(&format!("{busy} | MORE_TOTALS -> 1 1 2 0 0 | @10 TOTALS -> 4 0 5 3 0 0 | @13 TOTALS -> 4 0 5 3 0 0 | POP -> a#2 | @99 TOTALS -> 4 0 6 4 0 0 | MORE_TOTALS -> 1 1 3 0 0"));
    check(&format!("{busy} | LOAD | MORE_TOTALS -> 1 1 2 0 0 | TOTALS -> 4 0 5 1 0 0 | @10 LOAD | TOTALS -> 4 0 5 3 0 0 | LOAD | @13 POP -> a#2 | @98 LOAD | @99 TOTALS -> 4 0 6 4 0 0 | MORE_TOTALS -> 1 1 3 0 0"));
    check(&format!(
        "{busy} | KICK 9 | MORE_TOTALS -> 1 1 2 2 0 | DEL a | PURGE ready 0 9 | MORE_TOTALS -> 1 1 2 2 2"
    ));
}

#[test]
fn one_command_kicks_deletes_or_finishes_several_jobs() {
    check("@0 ADD a | ADD b +5 | ADD c ttl=1 | @1 KICKJOB c b a nobody c -> 2 | ORDER -> a c b | POP n=9 -> a#1 c#1 b#1");
    check("@0 ADD a | ADD b | ADD c | POP n=2 -> a#1 b#1 | FINISH a L2 b * a L1 a L1 c * -> 2 | DEL c c a -> 1 | DEL c -> 0 | TOTALS -> 3 0 2 0 2 1");
    check("@0 ADD a | ADD b +5 | POP n=0 -> nil | POP n=2 ttr=7 -> a#1 | GET a -> reserved 7 #1 L1 | @7 POP n=3 NOACK -> b#1 a#2 | COUNTS -> 0 0 0 0 | TOTALS -> 2 0 3 1 2 0");
}

#[test]
fn a_job_gets_what_its_add_says_then_what_the_queue_has_then_what_the_server_does() {
    check("@0 DEFAULTS 70 3 | ADD a | TOLD a -> x @0 ttr=70 prio=128 tries=3 | ALTER ttr=80 | ADD b | TOLD b -> x @0 ttr=80 prio=128 tries=3 \
         | ALTER tries=0 | ADD c ttr=9 | TOLD c -> x @0 ttr=9 prio=128 tries=0 | ADD d tries=5 | TOLD d -> x @0 ttr=80 prio=128 tries=5 | TOLD a -> x @0 ttr=70 prio=128 tries=3");
    check("@0 ALTER base=3 max=3 keep=9 | ADD a ttr=5 | ADD b ttr=5 base=1 max=1 keep=7 | POP n=2 | @5 NEXT -> 6 | @6 NEXT -> 8 | FINISH a L1 b L2 | GET a -> done 15 #1 | GET b -> done 13 #1");
}

#[test]
fn settings_that_are_not_named_stay() {
    check("@0 ALTER maxjobs=1 | ALTER ttr=9 | ADD a | ADD b -> full | ALTER maxjobs=0 | ADD b -> 0 | TOLD b -> x @0 ttr=9 prio=128 tries=0");
    check("@0 ALTER deadkeep=30 tries=2 | ALTER keep=5 | ADD a ttl=10 | UPKEEP -> 10 | @10 UPKEEP -> 40 | TOLD a -> x @0 ttr=60 prio=128 tries=2");
}

/// What an ALTER of a script says.
pub fn alteration(words: &[&str]) -> Alter {
    let (mut alter, mut backoff) = (Alter::default(), Backoff::NONE);
    let (mut rate, mut group_rate, mut burst) = (None, None, 1);
    for word in words {
        match word.split_once('=') {
            Some(("ttr", ttr)) => alter.ttr = Some(span(number(ttr))),
            Some(("tries", limit)) => alter.attempts = Some(Attempts::new(number(limit) as u32)),
            Some(("base", base)) => backoff.base = span(number(base)),
            Some(("max", max)) => backoff.max = span(number(max)),
            Some(("keep", keep)) => alter.keep = Some(span(number(keep))),
            Some(("late", late)) => alter.late = Some(span(number(late))),
            Some(("maxjobs", max)) => alter.max_jobs = Some(number(max)),
            Some(("deadkeep", keep)) => alter.dead_keep = Some(span(number(keep))),
            Some(("concurrency", limit)) => alter.concurrency = Some(number(limit) as u32),
            Some(("rate", words)) => rate = Some(words.split_once('/').unwrap_or(("0", "0"))),
            Some(("burst", jobs)) => burst = number(jobs) as u32,
            Some(("each", limit)) => alter.group_concurrency = Some(number(limit) as u32),
            Some(("eachrate", words)) => {
                group_rate = Some(words.split_once('/').unwrap_or(("0", "0")))
            }
            _ => panic!("{word} is nothing that ALTER knows"),
        }
    }
    let read = |(jobs, per)| Rate::new(number(jobs) as u32, span(number(per)), burst);
    (alter.rate, alter.group_rate) = (rate.map(read), group_rate.map(read));
    alter.backoff = (backoff != Backoff::NONE).then_some(backoff);
    alter
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
