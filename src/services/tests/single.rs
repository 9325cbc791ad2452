//! One service on a server of the simulation, without a session: what sessions can't see, since only the result of it counts
//! there.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::queue::{Add, Calendar, Circumstances, Cron, Due, Following, Millis, Queue, Time};
use crate::services::alarm::{arm, next_turn, was_clock_set, Slice, NEXT_TURN};
use crate::services::almanac::Almanac;
use crate::services::host::Host;
use crate::services::notify::{Announced, Announcement};
use crate::services::stats::Stats;
use crate::services::{aside, notify, whereabouts};

use super::key::{Context, Key};
use super::node::{Nature, Node};
use super::operation::id;

const BUDGET: Duration = Duration::from_millis(1);
const UNTIL_WRITABLE: Duration = Duration::from_millis(10);

/// A primary, and its uptime, which goes on by hand.
fn node() -> (Node, Rc<Cell<Duration>>) {
    let nature = Nature { tells_at_once: true, budget: BUDGET, step: Duration::ZERO };
    let uptime = Rc::new(Cell::new(Duration::from_secs(100)));
    (Node::new(nature, uptime.clone(), 0, true), uptime)
}

fn pass(uptime: &Cell<Duration>, span: Duration) {
    uptime.set(uptime.get() + span);
}

// ---- the alarm ---------------------------------------------------------------------------------------

/// So far from now it goes off.
fn wait_of(node: &Node) -> Option<Duration> {
    Some(node.alarm.get()? - node.now())
}

#[test]
fn an_alarm_goes_off_for_what_comes_first_or_within_a_minute() {
    let (node, _) = node();
    let host = &node;
    arm(host, None);
    assert_eq!(wait_of(host), None, "there is nothing to come");
    let hint = |seconds: u64| Time::new(host.wall_ms() + seconds * 1_000).unwrap();
    host.with(|state| state.hints.add(hint(7_200), 0, b"far"));
    arm(host, None);
    assert_eq!(wait_of(host), Some(Duration::from_secs(60)));
    host.with(|state| state.hints.add(hint(30), 0, b"near"));
    arm(host, None);
    assert_eq!(wait_of(host), Some(Duration::from_secs(30)));
    arm(host, Some(Duration::from_secs(40)));
    assert_eq!(wait_of(host), Some(Duration::from_secs(30)), "an earlier one stays");
    arm(host, Some(NEXT_TURN));
    assert_eq!(wait_of(host), Some(NEXT_TURN));
}

#[test]
fn no_alarm_is_set_on_a_replica_nor_while_data_is_loaded() {
    for (is_primary, is_loading) in [(false, false), (true, true), (false, true)] {
        let (node, _) = node();
        let host = &node;
        host.with(|state| (state.is_primary, state.is_loading) = (is_primary, is_loading));
        arm(host, Some(NEXT_TURN));
        assert_eq!(wait_of(host), None);
    }
}

#[test]
fn who_is_to_be_served_is_served_in_the_next_turn_or_when_it_may_be_written() {
    let (node, _) = node();
    let host = &node;
    assert_eq!(next_turn(host), None);
    host.with(|state| state.to_serve.insert((0, b"q"[..].into())));
    assert_eq!(next_turn(host), Some(NEXT_TURN));
    node.may_replicate.set(false);
    assert_eq!(next_turn(host), Some(UNTIL_WRITABLE));
    arm(host, None);
    assert_eq!(wait_of(host), Some(UNTIL_WRITABLE));
}

#[test]
fn a_clock_that_was_set_is_noticed_from_six_milliseconds_on() {
    let (node, uptime) = node();
    let host = &node;
    assert!(!was_clock_set(host), "it is the first look");
    pass(&uptime, Duration::from_millis(1_234));
    assert!(!was_clock_set(host), "both went on by the same");
    for (ahead_ms, is_noticed) in
        [(5, false), (0, false), (6, true), (6, false), (0, true), (3_600_000, true)]
    {
        node.ahead_ms.set(ahead_ms);
        assert_eq!(was_clock_set(host), is_noticed, "{ahead_ms} ms ahead");
    }
}

#[test]
fn a_slice_is_over_when_its_time_is_up() {
    let (node, uptime) = node();
    let host = &node;
    let whole = Slice::begin(host);
    let half = whole.half();
    let is_over = || (half.is_over(host), whole.is_over(host), whole.took(host));
    assert_eq!(is_over(), (false, false, Duration::ZERO));
    pass(&uptime, BUDGET / 2);
    assert_eq!(is_over(), (true, false, BUDGET / 2));
    pass(&uptime, BUDGET / 2);
    assert_eq!(is_over(), (true, true, BUDGET));
}

// ---- the almanac -------------------------------------------------------------------------------------

fn cron(expression: &str, zone: &str) -> Cron {
    Cron { expression: expression.into(), zone: zone.into() }
}

const MINUTE: u64 = 60_000;
/// Noon, UTC.
const NOON: u64 = 1_800_014_400_000;

fn at(minutes: u64) -> Time {
    Time::new(NOON + minutes * MINUTE).unwrap()
}

#[test]
fn an_almanac_tells_the_next_time_and_how_many_were_missed_and_writes_it_down() {
    let (node, _) = node();
    let mut almanac = Almanac::new(&node);
    assert_eq!(almanac.answers(), &[]);
    let every_five = cron("*/5 * * * *", "");
    let said = [
        almanac.following(&every_five, at(0), at(0)),
        almanac.following(&every_five, at(0), at(3)),
        // The third time is the one of that moment: it is missed, too.
        almanac.following(&every_five, at(0), at(15)),
        almanac.following(&every_five, at(0), at(17)),
        almanac.following(&every_five, at(2), at(17)),
        almanac.following(&cron("*/7 * * * *", ""), at(2), at(17)),
        almanac.following(&cron("nonsense", ""), at(2), at(17)),
    ];
    let told = |next, missed| Following { next: Some(at(next)), missed };
    let expected =
        [told(5, 0), told(5, 0), told(20, 3), told(20, 3), told(20, 3), told(21, 2), Following::default()];
    assert_eq!(said, expected);
    assert_eq!(almanac.answers(), said);
}

#[test]
fn an_almanac_counts_a_thousand_times_for_one_operation() {
    let (node, _) = node();
    let mut almanac = Almanac::new(&node);
    let every_minute = cron("* * * * *", "");
    let days = at(10_000);
    let told = |missed| Following { next: Some(at(10_001)), missed };
    assert_eq!(almanac.following(&every_minute, at(9_400), days), told(600));
    // The same question costs nothing.
    assert_eq!(almanac.following(&every_minute, at(9_400), days), told(600));
    assert_eq!(almanac.following(&every_minute, at(9_000), days), told(400));
    assert_eq!(almanac.following(&every_minute, at(9_001), days), told(0), "but the next time is right");
    assert_eq!(almanac.answers().len(), 4);
    assert_eq!(Almanac::new(&node).following(&every_minute, at(0), days), told(1_000));
}

// ---- a data set that is loaded aside -----------------------------------------------------------------

#[test]
fn what_is_loaded_aside_is_waited_for_once_it_is_swapped_in() {
    let (node, _) = node();
    let host = &node;
    let (now, delay) = (Time::new(node.wall_ms()).unwrap(), Millis::new(5_000).unwrap());
    let mut later = Queue::new((1, 2));
    let delayed = Add { due: Due::In(delay), ..Add::plain(id(b"a"), b"x") };
    later.apply(&Circumstances { now, ..Circumstances::default() }, &delayed);
    let hints = || host.with(|state| (state.hints.len(), state.hints.earliest()));
    aside::begin(host);
    let load = |(key, queue): (&[u8], Queue)| {
        let mut value = whereabouts::read(host, queue);
        assert!(aside::take(host, &mut value, 0, key));
        value
    };
    let values = [(&b"later"[..], later), (b"never", Queue::new((1, 2)))].map(load);
    assert_eq!(hints(), (0, None));
    aside::swap_in(host);
    assert_eq!(hints(), (1, Some(now.saturating_add(delay))));
    let [_, mut never] = values;
    assert!(!aside::take(host, &mut never, 0, b"never"), "nothing is being loaded aside any more");
}

// ---- what the timer did ------------------------------------------------------------------------------

#[test]
fn runs_of_the_timer_are_counted_with_the_last_and_the_longest_of_them() {
    let mut stats = Stats::NONE;
    for (ms, is_cut) in [(2, false), (5, true), (3, true)] {
        stats.count(Duration::from_millis(ms), is_cut);
    }
    assert_eq!((stats.runs, stats.budget_exceeded), (3, 2));
    assert_eq!((stats.last, stats.longest), (Duration::from_millis(3), Duration::from_millis(5)));
}

// ---- what watchers are told --------------------------------------------------------------------------

#[test]
fn watchers_are_told_of_the_change_and_of_what_time_did() {
    let (node, _) = node();
    let host = &node;
    let key = Key { node: host, database: 0, name: b"q", context: Context::Timer };
    let ms = |ms: u64| Millis::new(ms).unwrap();
    let at = |passed: u64| Time::new(node.wall_ms() + passed).unwrap();
    let now = Circumstances { now: at(0), ..Circumstances::default() };
    let job = |name: &'static [u8], delay, ttl| {
        let due = Due::In(ms(delay));
        Add { due, ttl: Some(ms(ttl)), ..Add::plain(id(name), b"x") }
    };
    let mut queue = Queue::new((1, 2));
    queue.advance(now.now);
    queue.apply(&now, &job(b"a", 5, 0));
    let added = Add::announce(&queue.apply(&now, &job(b"b", 0, 7)));
    let told = |queue: &mut Queue, done: Option<&Announcement>| {
        notify::tell(host, &key, queue, done);
        node.told.take().into_iter().map(|event| event.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut queue, Some(&added)), ["dq.added", "dq.ready"]);
    assert_eq!(told(&mut queue, None), [""; 0], "it was told");
    queue.advance(at(5));
    assert_eq!(told(&mut queue, None), ["dq.ready"]);
    queue.advance(at(7));
    assert_eq!(told(&mut queue, None), ["dq.dead"]);
    host.with(|state| state.is_primary = false);
    assert_eq!(told(&mut queue, Some(&added)), [""; 0], "a replica tells nothing");
}
