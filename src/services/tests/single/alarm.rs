//! When the timer comes, how long it may take, and what it did.

use std::time::Duration;

use crate::queue::{Add, Alter, Time};
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;
use crate::services::state::Stats;
use crate::services::timer::alarm::{arm, next_turn, was_clock_set, TimeSlice, NEXT_TURN};
use crate::services::timer::{pacemaker, wakeup};

use super::{id, ms, node, now_of, pass, place, Context, Node, BUDGET};

const UNTIL_WRITABLE: Duration = Duration::from_millis(10);

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
fn consumers_to_serve_are_served_in_the_next_turn_or_when_writing_is_allowed() {
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
    let whole = TimeSlice::begin(host);
    let half = whole.half();
    let is_over = || (half.is_over(host), whole.is_over(host), whole.took(host));
    assert_eq!(is_over(), (false, false, Duration::ZERO));
    pass(&uptime, BUDGET / 2);
    assert_eq!(is_over(), (true, false, BUDGET / 2));
    pass(&uptime, BUDGET / 2);
    assert_eq!(is_over(), (true, true, BUDGET));
}

#[test]
fn runs_of_the_timer_are_counted_with_the_last_and_the_longest_of_them() {
    let mut stats = Stats::NONE;
    for (ms, is_cut) in [(2, false), (5, true), (3, true)] {
        stats.count(Duration::from_millis(ms), is_cut);
    }
    assert_eq!((stats.runs, stats.budget_exceeded), (3, 2));
    assert_eq!((stats.last, stats.longest), (Duration::from_millis(3), Duration::from_millis(5)));
}

#[test]
fn an_operator_is_told_how_many_queues_wait_and_what_the_timer_did() {
    let (node, _) = node();
    let host = &node;
    let report = || host.with(|state| (state.hints.len(), state.stats.runs));
    assert_eq!(report(), (0, 0));
    let hint = Time::new(node.wall_ms() + 5_000).unwrap();
    for name in [b"a", b"b"] {
        host.with(|state| state.hints.add(hint, 0, name));
    }
    pacemaker::on_alarm(host, true);
    assert_eq!(report(), (2, 1));
}

/// The thread that frees them keeps up.
#[test]
fn a_run_removes_no_more_bytes_than_are_freed_meanwhile() {
    let (node, uptime) = node();
    let host = &node;
    let (body, long) = (vec![b'x'; 1 << 20], Alter { dead_keep: Some(ms(1)), ..Alter::default() });
    node.open_as(&place(), Context::Timer, true, |key, value| {
        value.queue.apply(&now_of(host), &long);
        for job in 1..=40 {
            let name = [job];
            let job = Add { ttl: Some(ms(1)), ..Add::plain(id(&name), &body) };
            value.queue.apply(&now_of(host), &job);
        }
        wakeup::plan(host, value, || key.database(), || key.name());
    });
    pass(&uptime, Duration::from_secs(1));
    for left in [24, 8, 0] {
        pass(&uptime, Duration::from_millis(1));
        node.run_timers(true);
        assert_eq!(node.look_at(&place(), |value| value.queue().len()), Some(left));
    }
}
