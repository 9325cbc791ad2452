//! What follows from a change, and from a look.

use std::time::Duration;

use crate::queue::{Add, Due, Ids, Lease, Pop, Queue, Removal, Remove, Time};
use crate::services::change::commit::{circumstances, commit};
use crate::services::change::frame::{look, Frame, Source};
use crate::services::change::log::{LogForm, LoggedCircumstances, POP};
use crate::services::change::notify;
use crate::services::host::Host;
use crate::services::keys::lifecycle;
use crate::services::keys::value::QueueValue;

use super::{
    add, command, every_minute, id, join, logged, ms, node, now_of, pass, place, plain, Context,
    Key, Operation, ONE,
};

// ---- leases
// ------------------------------------------------------------------------------------------

/// A queue that is behind a floor is told of it once it goes by it. One that was told nothing, and
/// gave nothing, has yet to be: the clock may be set back before it gives its first.
#[test]
fn a_queue_goes_by_a_floor_once_it_was_told_or_has_given_a_lease_above_it() {
    // A job that is there, or one whose time is passed over.
    for (is_there, is_floor_above, is_told) in
        [(true, false, true), (true, true, true), (false, true, true), (false, false, false)]
    {
        let (node, uptime) = node();
        let host = &node;
        let mut queue = Queue::new((1, 2));
        queue.apply(&now_of(host), &every_minute(b"a", if is_there { 0 } else { 5 }));
        pass(&uptime, Duration::from_secs(90));
        let now = now_of(host).now;
        let other = if is_floor_above { node.wall_ms() + 5_000 } else { node.wall_ms() - 5_000 };
        host.with(|state| state.leases.observe(Lease::first_at(Time::new(other).unwrap()), now));
        let mut value = lifecycle::new(host, queue);
        let key = Key { node: host, database: 0, name: b"q", context: Context::Timer };
        let floor_for =
            |value: &QueueValue, now| host.with(|state| state.leases.floor_for(value, now));
        assert_eq!(floor_for(&value, now) > Lease::default(), is_floor_above);
        let circumstances = circumstances(host, &value);
        let words: [&[u8]; 2] = [b"COUNT", b"1"];
        let wording = LogForm::Command(POP, &words);
        let deliveries = commit(host, &key, &mut value, &circumstances, &Pop::ONE, wording);
        assert_eq!((deliveries.len(), node.events.borrow().len()), (usize::from(is_there), 1));
        let set_back = Time::new(node.wall_ms() - 3_600_000).unwrap();
        assert_eq!(
            floor_for(&value, set_back) == Lease::default(),
            is_told,
            "{is_there} {is_floor_above}"
        );
    }
}

// ---- the log
// -----------------------------------------------------------------------------------------

#[test]
fn the_log_does_not_tell_a_queue_what_it_knows_already() {
    let (node, uptime) = node();
    let add = |name: &[u8]| add(&node, name);
    let told = || {
        logged(&node)
            .into_iter()
            .map(|one| (one.told.is_some(), one.is_as_sent))
            .collect::<Vec<_>>()
    };
    add(b"a");
    assert_eq!(told(), [(true, true)], "the time");
    add(b"b");
    assert_eq!(told(), [(false, true)], "the same time");
    pass(&uptime, Duration::from_millis(1));
    add(b"c");
    assert_eq!(told(), [(true, true)]);
    join(&node, 1, Pop::ONE);
    add(b"d");
    assert_eq!(told(), [(false, true), (false, false)], "and so is a delivery");
}

#[test]
fn a_log_entry_lets_time_pass_and_takes_none_back() {
    let (node, _) = node();
    node.is_primary.set(false);
    (&node).with(|state| state.is_primary = false);
    let told = |passed: u64| {
        let time = (node.wall_ms() + passed).to_string();
        LoggedCircumstances::parse(time.as_bytes(), b"check=0").unwrap()
    };
    let (first, later, before) = (told(0), told(10), told(7));
    node.open_as(&place(), Context::Log, true, |key, value| {
        for (entry, horizon) in [(&first, &first), (&later, &later), (&before, &later)] {
            let open = Frame::new(&node, key, value, Source::Log, Some(entry));
            assert_eq!((open.now(), open.queue().horizon()), (entry.time, horizon.time));
        }
    });
}

#[test]
fn a_log_entry_serves_waiting_consumers_only_on_a_primary_that_is_not_loading() {
    for (is_primary, is_loading, is_served) in
        [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
    {
        let (node, _) = node();
        let host = &node;
        join(host, 1, Pop::ONE);
        host.with(|state| (state.is_primary, state.is_loading) = (is_primary, is_loading));
        let add = plain(b"a");
        // A client may send what a log says.
        let context = if is_served { command(&add) } else { Context::Log };
        node.open_as(&place(), context, true, |key, value| {
            add.carry_out(Frame::new(host, key, value, Source::Log, None), LogForm::AsSent)
        });
        let left = host.with(|state| (state.to_unblock.len(), state.to_serve.len()));
        assert_eq!(left, (usize::from(is_served), 0), "{is_primary} {is_loading}");
    }
}

// ---- the timer
// ---------------------------------------------------------------------------------------

#[test]
fn a_look_shows_what_time_did_and_arms_the_timer_for_the_rest() {
    let (node, uptime) = node();
    let host = &node;
    let jobs = [(&b"a"[..], 5_000), (b"b", 30_000)];
    node.open_as(&place(), Context::Reader, true, |key, value| {
        let begun = now_of(host);
        for (name, delay) in jobs {
            value
                .queue
                .apply(&begun, &Add { due: Due::In(ms(delay)), ..Add::plain(id(name), b"x") });
        }
        let seconds_later = |seconds: u64| begun.now.saturating_add(ms(seconds * 1_000));
        assert_eq!((look(host, &key, value), value.hint), (begun.now, Some(seconds_later(5))));
        // The clock was set back.
        let hint = value.hint.take().unwrap();
        host.with(|state| state.hints.remove(hint, key.database, key.name));
        host.with(|state| state.hints.add(seconds_later(30), key.database, key.name));
        value.hint = Some(seconds_later(30));
        assert_eq!(
            (look(host, &key, value), value.hint),
            (seconds_later(0), Some(seconds_later(5)))
        );
        pass(&uptime, Duration::from_secs(6));
        assert_eq!(look(host, &key, value), seconds_later(6));
        assert_eq!((value.queue.horizon(), value.queue.counts().ready), (seconds_later(6), 1));
        // Its hint is early enough, but it has come here unseen.
        assert!(!value.is_unlocated());
        value.set_unlocated(true);
        look(host, &key, value);
        assert!(!value.is_unlocated());
        // And the other way round.
        let hint = value.hint.take().unwrap();
        host.with(|state| state.hints.remove(hint, key.database, key.name));
        look(host, &key, value);
        assert!(value.hint.is_some_and(|hint| hint <= seconds_later(30)));
    });
}

/// A pop passes over a thousand of them, and then it isn't known whether there is something behind.
#[test]
fn commands_call_the_timer_only_where_something_is_left() {
    for (jobs, is_left) in [(1, false), (1_001, true)] {
        let (node, uptime) = node();
        let host = &node;
        let sent = Operation::Pop(ONE);
        let pop = || {
            let popped = node.open_as(&place(), command(&sent), false, |key, value| {
                let open = Frame::new(host, key, value, Source::Client, None);
                open.change(&Pop::ONE, LogForm::AsSent, |deliveries, _| deliveries.len())
            });
            (popped.unwrap(), host.with(|state| state.to_serve.len()))
        };
        add(host, b"plain");
        assert_eq!(pop(), (1, 0));
        assert_eq!(
            node.look_at(&place(), |value| value.lateness().so_far().max_ms()),
            Some(Some(0))
        );
        node.open_as(&place(), Context::Timer, false, |_, value| {
            for job in 0..jobs {
                let name = format!("{job}");
                value.queue.apply(&now_of(host), &every_minute(name.as_bytes(), 5));
            }
        });
        pass(&uptime, Duration::from_secs(90));
        assert_eq!(pop(), (0, usize::from(is_left)), "{jobs} are passed over");
    }
}

// ---- watchers
// ----------------------------------------------------------------------------------------

#[test]
fn watchers_are_told_of_the_change_and_of_what_time_did() {
    let (node, _) = node();
    let host = &node;
    let key = Key { node: host, database: 0, name: b"q", context: Context::Timer };
    let at = |passed: u64| Time::new(node.wall_ms() + passed).unwrap();
    let now = now_of(host);
    let job = |name: &'static [u8], delay, ttl| {
        let due = Due::In(ms(delay));
        Add { due, ttl: Some(ms(ttl)), ..Add::plain(id(name), b"x") }
    };
    let mut queue = Queue::new((1, 2));
    queue.advance(now.now);
    queue.apply(&now, &job(b"a", 5, 0));
    queue.apply(&now, &job(b"b", 0, 7));
    let told = |queue: &mut Queue| {
        notify::publish(host, &key, queue);
        node.told.take().into_iter().map(|event| event.into_string().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut queue), ["dq.added", "dq.ready"]);
    assert_eq!(told(&mut queue), [""; 0], "it was told");
    queue.advance(at(5));
    assert_eq!(told(&mut queue), ["dq.ready"]);
    queue.advance(at(7));
    assert_eq!(told(&mut queue), ["dq.dead"]);
    let remove = Remove { ids: Ids::from_slice(&[id(b"b")]), counted_as: Removal::Purged };
    queue.apply(&now, &remove);
    assert_eq!(told(&mut queue), ["dq.deleted"]);
    host.with(|state| state.is_primary = false);
    queue.apply(&now, &job(b"c", 0, 0));
    assert_eq!(told(&mut queue), [""; 0], "a replica tells nothing");
}
