//! Jobs that leave for a stream, and a stream that refuses them.

use std::cell::Cell;
use std::time::Duration;

use crate::queue::{Add, Alter, Circumstances, Due, Millis, Pause, Sink, State};
use crate::services::change::log::LogForm;
use crate::services::keys::lifecycle;
use crate::services::timer::{sink, wakeup};

use super::super::operation::Bytes;
use super::{
    add, command, every_minute, id, join, ms, node, now_of, pass, place, plain, Context, Event,
    Frame, Node, Operation, Pop, Source, Terms, BUDGET,
};

const STREAM: u8 = b's';
const POURED: Terms = Terms { count: 1, ttr: None, no_ack: true };

/// A queue with a sink, and as many jobs as are named.
fn with_sink(node: &Node, jobs: &[&[u8]]) {
    carry_out(node, &Operation::Sink(Some(STREAM)));
    jobs.iter().for_each(|name| add(node, name));
}

fn carry_out(node: &Node, operation: &Operation) {
    node.open_as(&place(), command(operation), true, |key, value| {
        operation.carry_out(Frame::new(node, key, value, Source::Client, None), LogForm::AsSent)
    });
}

/// What went to the stream and into the log since this was asked last: ids, and commands.
fn told(node: &Node) -> Vec<String> {
    let text = |words: &Bytes| String::from_utf8_lossy(words).to_string();
    let told = |event| match event {
        Event::Ran(_, words) => format!("{} {}", text(&words[0]), text(&words[4])),
        Event::Logged(logged) => {
            let name = format!("{:?}", logged.operation);
            let name = name.chars().take_while(|letter| letter.is_alphabetic()).collect();
            let is_poured = logged.operation == Operation::Pop(POURED);
            if is_poured {
                "POP 1 NOACK".into()
            } else {
                name
            }
        }
        Event::Verdict(client, _) => format!("{client} is told"),
    };
    node.events.take().into_iter().map(told).collect()
}

/// The alarm goes off when it is to.
fn run(node: &Node, uptime: &Cell<Duration>) -> Duration {
    let wait = node.alarm.get().expect("the alarm is set").saturating_sub(uptime.get());
    pass(uptime, wait);
    node.run_timers(true);
    wait
}

fn error(node: &Node) -> Option<String> {
    node.look_at(&place(), |value| value.sink_error(now_of(node).now).map(String::from)).flatten()
}

fn ready(node: &Node) -> usize {
    node.look_at(&place(), |value| value.queue().counts().of(State::Ready)).unwrap()
}

#[test]
fn each_job_is_in_the_log_of_the_stream_before_that_of_the_queue() {
    let (node, uptime) = node();
    with_sink(&node, &[b"a", b"b"]);
    assert_eq!(told(&node), ["Sink", "Add", "Add"], "a command pours nothing");
    assert!(run(&node, &uptime) <= Duration::from_millis(1));
    assert_eq!(told(&node), ["XADD a", "POP 1 NOACK", "XADD b", "POP 1 NOACK"]);
    node.run_timers(true);
    assert_eq!(told(&node), [""; 0]);
}

#[test]
fn clients_that_wait_come_first() {
    let (node, uptime) = node();
    carry_out(&node, &Operation::Sink(Some(STREAM)));
    join(&node, 1, Pop::ONE);
    ["a", "b"].iter().for_each(|name| add(&node, name.as_bytes()));
    run(&node, &uptime);
    assert_eq!(told(&node), ["Sink", "Add", "Pop", "Add", "XADD b", "POP 1 NOACK"]);
}

#[test]
fn a_stream_that_refuses_is_tried_ever_later_and_the_log_is_told_once() {
    let (node, uptime) = node();
    *node.refuses.borrow_mut() = Some("OOM no room".into());
    with_sink(&node, &[b"a", b"b"]);
    let waits: Vec<u64> = (0..10).map(|_| run(&node, &uptime).as_millis() as u64).collect();
    // To the millisecond in which the wall clock is there.
    let expected = [1, 10, 20, 40, 80, 160, 320, 640, 1_000, 1_000];
    assert!(waits.iter().zip(expected).all(|(wait, ms)| *wait <= ms && wait + 2 > ms), "{waits:?}");
    assert_eq!((told(&node).len(), ready(&node)), (3, 2), "nothing has changed");
    assert_eq!(error(&node).as_deref(), Some("OOM no room"));
    assert_eq!(node.warned.borrow().len(), 1);
    // It says which queue, which stream, and why.
    for part in ["'q'", "'s'", "OOM no room"] {
        assert!(node.warned.borrow()[0].contains(part), "{:?}", node.warned);
    }
    *node.refuses.borrow_mut() = Some("WRONGTYPE other".into());
    run(&node, &uptime);
    assert_eq!((error(&node).as_deref(), node.warned.borrow().len()), (Some("WRONGTYPE other"), 2));
    // The same again, a minute later.
    (0..61).for_each(|_| {
        run(&node, &uptime);
    });
    assert_eq!(node.warned.borrow().len(), 3);
    *node.refuses.borrow_mut() = None;
    run(&node, &uptime);
    assert_eq!((told(&node).len(), ready(&node), error(&node)), (4, 0, None));
    // It begins anew.
    *node.refuses.borrow_mut() = Some("OOM no room".into());
    add(&node, b"c");
    run(&node, &uptime);
    assert!(run(&node, &uptime) <= Duration::from_millis(10));
}

#[test]
fn an_error_is_that_of_the_stream_and_of_jobs_that_would_leave() {
    let (node, uptime) = node();
    let refuse = || {
        *node.refuses.borrow_mut() = Some("OOM no room".into());
        (0..3).for_each(|_| {
            run(&node, &uptime);
        });
        assert_eq!(error(&node).as_deref(), Some("OOM no room"));
    };
    with_sink(&node, &[b"a"]);
    refuse();
    // A worker takes the job.
    carry_out(&node, &Operation::Pop(POURED));
    assert_eq!((ready(&node), error(&node)), (0, None));
    // The next one is refused in its turn.
    add(&node, b"b");
    refuse();
    carry_out(&node, &Operation::Sink(Some(b't')));
    assert_eq!(error(&node), None, "another stream wasn't tried");
    assert!(run(&node, &uptime) <= Duration::from_millis(1), "it is tried at once");
    assert_eq!(error(&node).as_deref(), Some("OOM no room"));
    assert!(run(&node, &uptime) <= Duration::from_millis(10), "and then as a new one");
    assert_eq!(node.warned.borrow().len(), 2, "one of each stream: {:?}", node.warned);
    // A pause holds the job back, not the stream.
    node.open_as(&place(), command(&plain(b"other")), true, |_, value| {
        value.queue.apply(&now_of(&node), &Pause { group: None, span: None });
    });
    assert_eq!((ready(&node), error(&node)), (1, None));
}

#[test]
fn a_change_of_the_queue_tries_the_stream_at_once() {
    let (node, uptime) = node();
    *node.refuses.borrow_mut() = Some("OOM no room".into());
    with_sink(&node, &[b"a"]);
    (0..9).for_each(|_| {
        run(&node, &uptime);
    });
    *node.refuses.borrow_mut() = None;
    add(&node, b"b");
    assert!(run(&node, &uptime) <= Duration::from_millis(1));
    assert_eq!(ready(&node), 0);
}

#[test]
fn nothing_is_poured_while_the_server_must_not_write() {
    let (node, uptime) = node();
    with_sink(&node, &[b"a"]);
    told(&node);
    node.may_replicate.set(false);
    run(&node, &uptime);
    assert!((9..=10).contains(&run(&node, &uptime).as_millis()));
    assert_eq!((told(&node), ready(&node)), (vec![], 1));
    node.may_replicate.set(true);
    run(&node, &uptime);
    assert_eq!(ready(&node), 0);
}

#[test]
fn a_run_of_the_timer_pours_for_as_long_as_it_may() {
    let (mut node, uptime) = node();
    node.nature.step = BUDGET / 20;
    let names: Vec<Bytes> = (0..60).map(|n| format!("{n:02}").into_bytes()).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    with_sink(&node, &names);
    let mut runs = 0;
    while ready(&node) > 0 {
        let before = uptime.get() + node.alarm.get().unwrap().saturating_sub(uptime.get());
        run(&node, &uptime);
        assert!(uptime.get() - before < 4 * BUDGET);
        runs += 1;
    }
    assert!((4..60).contains(&runs), "{runs}");
    let poured: Vec<String> =
        told(&node).into_iter().filter(|what| what.starts_with("XADD")).collect();
    assert!(poured.iter().map(|what| what.as_bytes()[5..].to_vec()).eq(names), "{poured:?}");
}

/// The new queue has its jobs ready, and nothing else would make the timer look at it.
#[test]
fn a_copy_and_a_queue_at_another_key_go_on_with_their_sink() {
    let (node, _) = node();
    *node.refuses.borrow_mut() = Some("OOM no room".into());
    with_sink(&node, &[b"a"]);
    node.run_timers(true);
    let (host, key) = (&node, place());
    let mut value = *node.keys.borrow_mut().remove(&key).flatten().unwrap();
    let copy = lifecycle::copy(host, &value, 0, b"copy");
    assert!(copy.hint.is_some_and(|hint| hint <= value.hint.unwrap()));
    lifecycle::left_key(host, &mut value, 0, b"q");
    assert!(value.is_unlocated());
    wakeup::plan(host, &mut value, || 0, || b"new");
    assert!(value.hint.is_some_and(|hint| hint.since(now_of(host).now) <= ms(10)));
}

#[test]
fn a_queue_that_lets_nothing_leave_asks_for_no_timer() {
    let (node, _) = node();
    let mut value = lifecycle::new(&node, crate::queue::Queue::new((1, 2)));
    let now = now_of(&node);
    let sink_of = |stream: &[u8]| Some(Some(Sink::new(id(stream), 5)));
    value.queue.apply(&now, &Alter { sink: sink_of(b"s"), ..Alter::default() });
    value.queue.apply(&now, &Add { due: Due::In(ms(50)), ..Add::plain(id(b"a"), b"x") });
    value.queue.advance(now.now);
    value.queue.find_wake_at();
    let wakes = |value: &mut crate::services::QueueValue| {
        sink::wake(&node, value);
        value.queue.wake_at() <= now.now
    };
    assert!(!wakes(&mut value), "it has no job that is ready");
    value.queue.apply(&now, &Add::plain(id(b"b"), b"x"));
    value.queue.advance(now.now);
    assert!(wakes(&mut value));
    value.queue.apply(&now, &Pause { group: None, span: None });
    assert_eq!(value.queue.next_to_leave(now.now), None);
}

/// What a pop passes over, a sink does; that has an entry of its own in the log.
#[test]
fn runs_of_schedules_that_are_too_late_go_to_no_sink() {
    let (node, uptime) = node();
    let operation = plain(b"other");
    node.open_as(&place(), command(&operation), true, |_, value| {
        let told = now_of(&node);
        let sink = Some(Some(Sink::new(id(b"s"), 0)));
        value.queue.apply(&told, &Alter { sink, ..Alter::default() });
        value.queue.apply(&told, &every_minute(b"a", 1_000));
        // As if no timer had come for two minutes and a half.
        let later = told.now.saturating_add(Millis::of_ms(150_000));
        let told = Circumstances { now: later, ..told };
        value.queue.apply(&told, &Add { due: Due::In(Millis::ZERO), ..Add::plain(id(b"b"), b"x") });
    });
    node.ahead_ms.set(150_000);
    node.open_as(&place(), Context::Reader, false, |key, value| {
        crate::services::change::frame::look(&node, &key, value)
    });
    run(&node, &uptime);
    assert_eq!(told(&node), ["PassOver", "XADD b", "POP 1 NOACK"]);
}

/// After a failover to a server whose clock is behind.
#[test]
fn a_queue_whose_clock_is_ahead_of_the_servers_is_poured_at_once() {
    let (node, uptime) = node();
    node.ahead_ms.set(40_000);
    with_sink(&node, &[b"a"]);
    node.ahead_ms.set(0);
    node.run_timers(true);
    add(&node, b"b");
    assert!(run(&node, &uptime) <= Duration::from_millis(1));
    assert_eq!(ready(&node), 0);
    *node.refuses.borrow_mut() = Some("OOM no room".into());
    add(&node, b"c");
    run(&node, &uptime);
    assert!(run(&node, &uptime) <= Duration::from_millis(10));
}
