//! Slots of a cluster that move atomically.

use std::time::Duration;

use crate::queue::{Add, Due, Time};
use crate::services::host::Host;
use crate::services::keys::moved;
use crate::services::timer::alarm::TimeSlice;
use crate::services::timer::{pacemaker, wakeup};

use super::{id, logged, ms, node, now_of, pass, place, Context, Node};

/// A queue arrives, with a job that is due then.
fn arrives(node: &Node, due_in: u64) {
    node.open_as(&place(), Context::Timer, true, |key, value| {
        value
            .queue
            .apply(&now_of(node), &Add { due: Due::In(ms(due_in)), ..Add::plain(id(b"a"), b"x") });
        wakeup::plan(node, value, || key.database, || key.name);
    });
    assert!(logged(node).is_empty());
}

/// Whether the timer has made it ready.
fn is_ready(node: &Node) -> bool {
    node.look_at(&place(), |value| value.queue.counts().ready == 1).unwrap()
}

fn ring(node: &Node) {
    node.run_timers(true);
}

fn earliest(host: &Node) -> Option<Time> {
    host.with(|state| state.hints.earliest())
}

#[test]
fn the_timer_leaves_moving_queues_alone_and_goes_on_where_it_was() {
    let (node, uptime) = node();
    node.tell_of_import(true);
    arrives(&node, 5);
    pass(&uptime, Duration::from_secs(1));
    ring(&node);
    assert!(!is_ready(&node), "it is the old node's");
    let again = Time::new(node.wall_ms() + 1_000).unwrap();
    assert_eq!(earliest(&node), Some(again), "the timer looks again, and doesn't spin");
    // The slot is this node's own; and the wall clock was set back meanwhile.
    node.ahead_ms.set(-3_600_000);
    node.tell_of_import(false);
    node.ahead_ms.set(0);
    pass(&uptime, Duration::from_millis(1));
    ring(&node);
    assert!(is_ready(&node));
}

#[test]
fn nothing_is_left_of_keys_that_went_with_their_slot() {
    let (node, uptime) = node();
    arrives(&node, 60_000);
    node.tell_of_import(true);
    pass(&uptime, Duration::from_millis(1));
    ring(&node);
    // The server has let go of the value, and tells nobody.
    let value = node.keys.borrow_mut().remove(&place());
    std::mem::forget(value);
    pass(&uptime, Duration::from_secs(2));
    ring(&node);
    assert_eq!(earliest(&node), None);
}

#[test]
fn a_walk_over_many_hints_takes_as_many_runs_as_it_needs() {
    let (node, uptime) = node();
    let host = &node;
    let far = Time::new(node.wall_ms() + 3_600_000).unwrap();
    for n in 0..250_u32 {
        host.with(|state| state.hints.add(far, 0, &n.to_be_bytes()));
    }
    node.tell_of_import(true);
    let slice = TimeSlice::begin(host);
    pass(&uptime, super::BUDGET);
    assert!(moved::run_slice(host, &slice), "there was no time at all");
    assert_eq!(earliest(&node), Some(far));
    pacemaker::on_alarm(host, true);
    let again = Time::new(node.wall_ms() + 1_000).unwrap();
    assert_eq!((earliest(&node), host.with(|state| state.hints.len())), (Some(again), 250));
}
