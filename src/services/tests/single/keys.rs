//! Queues that come to keys and leave them.

use std::time::Duration;

use crate::queue::{Add, Circumstances, Due, Lease, Pop, Queue};
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::keys::{async_load, lifecycle};
use crate::services::timer::wakeup;

use super::{id, ms, node, now_of, pass, Context, Order};

#[test]
fn queues_that_were_loaded_aside_are_waited_for_once_they_are_swapped_in() {
    let (node, _) = node();
    let host = &node;
    let (begun, delay) = (now_of(host), ms(5_000));
    let mut later = Queue::new((1, 2));
    let delayed = Add { due: Due::In(delay), ..Add::plain(id(b"a"), b"x") };
    later.apply(&begun, &delayed);
    let hints = || host.with(|state| (state.hints.len(), state.hints.earliest()));
    async_load::begin(host);
    let load = |(key, queue): (&[u8], Queue)| {
        let mut value = lifecycle::read(host, queue);
        assert!(async_load::take(host, &mut value, 0, key));
        value
    };
    let values = [(&b"later"[..], later), (b"never", Queue::new((1, 2)))].map(load);
    assert_eq!(hints(), (0, None));
    async_load::swap_in(host);
    assert_eq!(hints(), (1, Some(begun.now.saturating_add(delay))));
    let [_, mut never] = values;
    assert!(
        !async_load::take(host, &mut never, 0, b"never"),
        "nothing is being loaded async_load any more"
    );
}

/// The keys aren't walked for a queue that waits for nothing, of which nothing is on its way.
#[test]
fn a_queue_that_left_its_key_is_looked_for_if_it_waits_for_something() {
    for waits in [false, true] {
        let (node, _) = node();
        let host = &node;
        let mut value = lifecycle::new(host, Queue::new((1, 2)));
        if waits {
            let due = Due::In(ms(5_000));
            value.queue.apply(&now_of(host), &Add { due, ..Add::plain(id(b"a"), b"x") });
        }
        wakeup::plan(host, &mut value, || 0, || b"q");
        lifecycle::left_key(host, &mut value, 0, b"q");
        assert_eq!((value.is_unlocated(), node.alarm.get().is_some()), (waits, waits));
    }
}

/// RENAME tells nobody where the queue is by then.
#[test]
fn a_queue_that_was_renamed_is_found_by_a_walk_over_the_keys() {
    let (node, uptime) = node();
    let host = &node;
    let due = Due::In(ms(60_000));
    let (before, behind): (KeyRef, KeyRef) = ((0, b"q"[..].into()), (0, b"renamed"[..].into()));
    node.open_as(&before, Context::Timer, true, |key, value| {
        value.queue.apply(&now_of(host), &Add { due, ..Add::plain(id(b"a"), b"x") });
        wakeup::plan(host, value, || key.database, || key.name);
    });
    assert!(node.carry_out(&Order::Rename(before, behind.clone())));
    let is_unlocated = || node.look_at(&behind, |value| value.is_unlocated());
    assert_eq!(is_unlocated(), Some(true));
    for _ in 0..100 {
        pass(&uptime, Duration::from_millis(10));
        if node.alarm.get().is_some_and(|alarm| alarm <= node.now()) {
            node.run_timers(true);
        }
    }
    assert_eq!((is_unlocated(), host.with(|state| state.hints.len())), (Some(false), 1));
    // And the keys are not walked any more.
    assert!(node.alarm.get().is_some_and(|alarm| alarm > node.now() + Duration::from_secs(30)));
}

#[test]
fn the_leases_of_a_queue_that_is_loaded_bind_the_others() {
    for (is_primary, is_loading) in [(true, false), (true, true), (false, false), (false, true)] {
        let (node, _) = node();
        let host = &node;
        host.with(|state| (state.is_primary, state.is_loading) = (is_primary, is_loading));
        let now = now_of(host).now;
        let ahead = Lease::first_at(now.saturating_add(ms(30 * 60_000)));
        let mut queue = Queue::new((1, 2));
        let circumstances = Circumstances {
            now,
            lease_floor: Lease::new(ahead.number() - 1),
            ..Circumstances::default()
        };
        queue.apply(&circumstances, &Add::plain(id(b"a"), b"x"));
        queue.apply(&circumstances, &Pop::ONE);
        let mut value = lifecycle::read(host, queue);
        lifecycle::loaded(host, &mut value, 0, b"q");
        let floor = host.with(|state| state.leases.floor_for(&value, now));
        assert_eq!(floor, ahead, "{is_primary} {is_loading}");
    }
}
