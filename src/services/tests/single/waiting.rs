//! Who waits, and what they are handed.

use std::cell::Cell;
use std::time::Duration;

use crate::queue::{Add, Alter, Mode, Pop, State};
use crate::services::change::frame::{Frame, Source};
use crate::services::change::log::LogForm;
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::tests::commands::Reply;
use crate::services::tests::watch::{Verdict, Watching};
use crate::services::timer::alarm::TimeSlice;
use crate::services::waiting::serving;
use crate::services::waiting::wish::Wish;

use super::{
    add, command, every_minute, id, join, node, now_of, pass, place, ClientNumber, Context, Event,
    Key, Node, Operation, Order, Terms, BUDGET, ONE, SHAPE,
};

const NOACK: Pop = Pop { mode: Mode::NoAck, ..Pop::ONE };

#[test]
fn a_full_queue_still_serves_consumers_that_need_no_place() {
    let (node, _) = node();
    let host = &node;
    [b"a", b"b", b"c"].iter().for_each(|name| add(host, *name));
    (1..).zip([Pop::ONE, Pop::ONE, NOACK, NOACK]).for_each(|(client, pop)| join(host, client, pop));
    node.open_as(&place(), Context::Timer, false, |key, value| {
        value.queue.apply(&now_of(host), &Alter { concurrency: Some(1), ..Alter::default() });
        let now = now_of(host).now;
        assert!(serving::serve(host, &key, value, &TimeSlice::begin(host), now));
    });
    assert_eq!(host.with(|state| state.to_unblock.clone()), [1, 3, 4]);
}

#[test]
fn consumers_are_counted_at_all_keys_and_at_one() {
    let (node, _) = node();
    let host = &node;
    let counts = || {
        let key = Key { node: host, database: 0, name: b"q", context: Context::Reader };
        (serving::consumers(host), serving::consumers_at(host, &key))
    };
    let wait = |places, handle| {
        serving::wait(host, Wish::jobs(Pop::ONE, None, SHAPE, places), None, |_| handle)
    };
    assert_eq!(counts(), (0, 0));
    assert!(!wait(vec![place()], None), "it can't wait");
    assert_eq!(counts(), (0, 0));
    assert!(wait(vec![(7, b"q"[..].into())], Some(1)));
    assert_eq!(counts(), (1, 0));
    assert!([2, 3].iter().all(|handle| wait(vec![place()], Some(*handle))));
    assert_eq!(counts(), (3, 2));
}

#[test]
fn a_consumer_of_another_database_is_not_looked_for() {
    let (node, _) = node();
    add(&node, b"a");
    let wish = Wish::jobs(Pop::ONE, None, SHAPE, vec![(7, b"q"[..].into())]);
    assert!(serving::wait(&node, wish, None, |_| Some(1)));
    let context = Context::Command { sent: None, is_inside_another: true };
    node.open_as(&place(), context, false, |key, value| {
        serving::serve_at_command(&node, &key, value, || now_of(&node).now);
    });
    assert!((&node).with(|state| state.to_serve.is_empty()));
}

/// To pass over as many as a delivery does takes a millisecond.
#[test]
fn passing_over_runs_for_a_waiting_consumer_ends_with_the_time_slice() {
    let (mut node, uptime) = node();
    node.nature.step = BUDGET;
    node.open_as(&place(), Context::Timer, true, |key, value| {
        for job in 0..2_100 {
            value.queue.apply(&now_of(&node), &every_minute(format!("{job}").as_bytes(), 5));
        }
        pass(&uptime, Duration::from_secs(90));
        join(&node, 1, Pop::ONE);
        let now = now_of(&node).now;
        let slice = TimeSlice::begin(&node);
        let is_done = [(); 3].map(|()| serving::serve(&node, &key, value, &slice, now));
        assert_eq!(is_done, [false, false, true]);
    });
}

/// What a transaction does is seen all at once. And while clients are paused, nothing is written.
#[test]
fn a_waiting_consumer_is_served_after_a_transaction_and_when_writing_is_allowed() {
    for (is_inside_another, may_replicate) in
        [(false, true), (true, true), (false, false), (true, false)]
    {
        let (node, _) = node();
        let host = &node;
        add(host, b"a");
        join(host, 1, Pop::ONE);
        node.may_replicate.set(may_replicate);
        let context = Context::Command { sent: None, is_inside_another };
        let is_left = node.open_as(&place(), context, false, |key, value| {
            serving::serve_at_command(host, &key, value, || now_of(host).now);
            serving::are_others_first(host, &key)
        });
        let is_served = !is_inside_another && may_replicate;
        let left = host.with(|state| (state.to_unblock.len(), state.to_serve.len()));
        assert_eq!(
            (left, is_left),
            ((usize::from(is_served), usize::from(!is_served)), Some(!is_served))
        );
        // Whoever comes first when it is over does it, and leaves nothing to the timer.
        node.may_replicate.set(true);
        add(host, b"b");
        let left = host.with(|state| (state.to_unblock.len(), state.to_serve.len()));
        assert_eq!(left, (1, 0));
    }
}

/// Serves all who wait.
fn serve(node: &Node) {
    node.open_as(&place(), Context::Timer, false, |key, value| {
        let now = now_of(node).now;
        while !serving::serve(node, &key, value, &TimeSlice::begin(node), now) {}
    });
}

/// All who were served go away, whoever came last first.
fn all_go_away(node: &Node) {
    let tickets = node.with(|state| state.to_unblock.clone());
    tickets.into_iter().rev().for_each(|ticket| serving::on_gone(node, ticket));
}

/// However short the timer's time is, in which it gives back.
#[test]
fn jobs_of_clients_that_went_away_are_given_back_in_their_order() {
    for step_us in [0, 40, 80, 120, 160] {
        let (mut node, uptime) = node();
        node.nature.step = Duration::from_micros(step_us);
        let names: Vec<Vec<u8>> = (b'a'..=b'o').map(|letter| vec![letter]).collect();
        names.iter().for_each(|name| add(&node, name));
        (1..=3).for_each(|client| join(&node, client, Pop { count: 5, ..Pop::ONE }));
        serve(&node);
        all_go_away(&node);
        assert_eq!(node.with(|state| state.undelivered.len()), 3);
        for _ in 0..100 {
            pass(&uptime, Duration::from_millis(1));
            node.run_timers(true);
        }
        let ready = node.open_as(&place(), Context::Timer, false, |_, value| {
            value.queue.advance(now_of(&node).now);
            let queue = &value.queue;
            queue
                .ids_of(&queue.peek(State::Ready, 20))
                .bytes()
                .iter()
                .map(|name| name.to_vec())
                .collect()
        });
        assert_eq!(ready, Some(names), "a look at the clock takes {step_us} µs");
    }
}

#[test]
fn the_leases_of_a_queue_that_has_left_its_key_are_not_given_back_to_another_one_there() {
    let (node, uptime) = node();
    add(&node, b"a");
    join(&node, 1, Pop::ONE);
    serve(&node);
    all_go_away(&node);
    let elsewhere: KeyRef = (0, b"copy"[..].into());
    assert!(node.carry_out(&Order::Copy(place(), elsewhere.clone())));
    assert!(node.carry_out(&Order::Rename(elsewhere, place())));
    pass(&uptime, Duration::from_millis(1));
    node.run_timers(true);
    assert_eq!(node.with(|state| state.undelivered.len()), 0);
    assert_eq!(node.look_at(&place(), |value| value.queue().counts().reserved), Some(1));
}

#[test]
fn what_a_client_took_with_noack_is_not_given_back() {
    let (node, _) = node();
    add(&node, b"a");
    join(&node, 1, NOACK);
    serve(&node);
    all_go_away(&node);
    assert_eq!(node.with(|state| state.undelivered.len()), 0);
}

#[test]
fn all_waiting_consumers_are_looked_for_when_a_clock_was_set_or_the_timer_is_late() {
    let (node, uptime) = node();
    let host = &node;
    let name = |number: u32| Box::from(format!("{number:03}").as_bytes());
    for number in 0..150 {
        let wish = Wish::jobs(Pop::ONE, None, SHAPE, vec![(number % 2, name(number as u32))]);
        host.with(|state| state.waiters.join(number as u32, wish, None));
    }
    serving::serve_all_soon(host);
    assert_eq!(host.with(|state| std::mem::take(&mut state.to_serve).len()), 150);
    // A hundred of those of the first database and the second, the other fifty, and so on.
    for looked_at in [Some((1, name(49))), None, Some((1, name(49)))] {
        host.with(|state| state.is_behind = true);
        host.set_alarm(Duration::ZERO);
        pass(&uptime, Duration::from_millis(1));
        node.run_timers(true);
        assert_eq!(host.with(|state| state.looked_at.clone()), looked_at);
    }
}

/// A hundred are told what they get in a turn.
#[test]
fn consumers_that_one_turn_cannot_reply_to_get_their_reply_in_the_next() {
    let (node, uptime) = node();
    let host = &node;
    for client in 1..=150 {
        add(host, &[client]);
    }
    (1..=150).for_each(|client| join(host, client, Pop::ONE));
    serve(host);
    for left in [50, 0] {
        node.alarm.set(None);
        pass(&uptime, Duration::from_millis(1));
        node.run_timers(true);
        let awaited = host.with(|state| (state.to_unblock.len(), state.is_turn_end_awaited));
        assert_eq!((awaited, node.turn_end.get().is_some()), ((left, left > 0), left > 0));
    }
}

/// A consumer who waits is served behind the renewal, a millisecond later, and gets that very job.
#[test]
fn a_lease_that_is_lost_right_behind_its_renewal_is_void_at_once() {
    let (mut node, uptime) = node();
    add(&node, b"a");
    let pop = Operation::Pop(ONE);
    node.open_as(&place(), command(&pop), false, |key, value| {
        pop.carry_out(Frame::new(&node, key, value, Source::Client, None), LogForm::AsSent)
    });
    join(&node, 1, NOACK);
    pass(&uptime, Duration::from_millis(1));
    node.nature.step = Duration::from_millis(1);
    let claims = vec![(b"a".to_vec(), None)];
    let renew = Watching::Renew { claims, ttr: Some(1), block: 1_000 };
    let reply = node.watch(2, &place(), &renew, false);
    assert!(matches!(&reply, Reply::Verdict(Verdict::Void(ids)) if *ids == [b"a"]), "{reply:?}");
}

/// A hundred short replies, or two MiB of them, in a turn.
#[test]
fn what_one_turn_replies_is_bounded_by_its_bytes() {
    let (node, uptime) = node();
    let host = &node;
    for job in 1..=9 {
        let body = vec![b'x'; 1 << 20];
        node.open_as(&place(), Context::Timer, true, |_, value| {
            value.queue.apply(&now_of(host), &Add::plain(id(&[job]), &body));
        });
    }
    (1..=9).for_each(|client| join(host, client, Pop::ONE));
    serve(host);
    for left in [7, 5, 3, 1, 0] {
        pass(&uptime, Duration::from_millis(1));
        node.alarm.set(None);
        node.run_timers(true);
        assert_eq!(host.with(|state| state.to_unblock.len()), left);
        node.before_sleep();
    }
    assert_eq!(host.with(|state| state.waiters.delivered_bytes()), 0);
}

/// What is delivered to clients are copies.
#[test]
fn no_further_job_is_delivered_while_16_mib_wait_for_their_clients() {
    let (node, _) = node();
    let host = &node;
    let body = vec![b'x'; 1 << 20];
    for job in 1..=20 {
        node.open_as(&place(), Context::Timer, true, |_, value| {
            value.queue.apply(&now_of(host), &Add::plain(id(&[job]), &body));
        });
    }
    (1..=20).for_each(|client| join(host, client, Pop::ONE));
    node.open_as(&place(), Context::Timer, false, |key, value| {
        let slice = TimeSlice::begin(host);
        assert!(!serving::serve(host, &key, value, &slice, now_of(host).now));
    });
    assert_eq!(host.with(|state| state.to_unblock.len()), 16);
}

/// Workers that wait with the same leases.
fn renewing(node: &Node, jobs: u8, workers: ClientNumber) {
    let pop = Operation::Pop(Terms { count: jobs.into(), ..ONE });
    (1..=jobs).for_each(|job| add(node, &[job]));
    node.open_as(&place(), command(&pop), false, |key, value| {
        pop.carry_out(Frame::new(node, key, value, Source::Client, None), LogForm::AsSent)
    });
    let claims: Vec<_> = (1..=jobs).map(|job| (vec![job], None)).collect();
    for worker in 1..=workers {
        let renew = Watching::Renew { claims: claims.clone(), ttr: None, block: 60_000 };
        assert!(matches!(node.watch(worker, &place(), &renew, false), Reply::Waits));
    }
}

fn delete(node: &Node, job: u8) {
    let delete = Operation::Delete(vec![vec![job]]);
    node.open_as(&place(), command(&delete), false, |key, value| {
        delete.carry_out(Frame::new(node, key, value, Source::Client, None), LogForm::AsSent)
    });
}

/// A turn, and what clients are told in it.
fn turn(node: &Node, uptime: &Cell<Duration>) -> Vec<Vec<Vec<u8>>> {
    pass(uptime, Duration::from_millis(1));
    node.run_timers(false);
    node.before_sleep();
    let told = node.events.take().into_iter().filter_map(|event| match event {
        Event::Verdict(_, Some(Wish::Leases(wish))) => {
            Some(wish.void_ids().into_iter().map(<[u8]>::to_vec).collect())
        }
        Event::Verdict(..) | Event::Logged(_) | Event::Ran(..) => None,
    });
    told.collect()
}

#[test]
fn all_leases_that_are_void_at_the_reply_are_told_to_each_of_their_holders() {
    let (node, uptime) = node();
    renewing(&node, 5, 3);
    [4, 2].iter().for_each(|job| delete(&node, *job));
    assert_eq!(turn(&node, &uptime), vec![vec![vec![2], vec![4]]; 3]);
    assert!(turn(&node, &uptime).is_empty());
    assert!((&node).with(|state| state.waiters.holds_nothing()));
}

#[test]
fn a_queue_that_is_back_when_the_reply_is_made_has_its_leases_again() {
    let (node, uptime) = node();
    renewing(&node, 2, 1);
    let elsewhere: KeyRef = (0, b"elsewhere"[..].into());
    assert!(node.carry_out(&Order::Rename(place(), elsewhere.clone())));
    assert!(node.carry_out(&Order::Rename(elsewhere, place())));
    assert_eq!(turn(&node, &uptime), vec![Vec::<Vec<u8>>::new()]);
}

/// The key is deleted, or the job, in the turn in which their time is over.
#[test]
fn a_client_that_times_out_as_it_is_told_is_unblocked_once() {
    for is_key in [true, false] {
        let (node, uptime) = node();
        renewing(&node, 1, 2);
        let result = Watching::Result { id: vec![1], block: Some(60_000) };
        assert!(matches!(node.watch(3, &place(), &result, false), Reply::Waits));
        pass(&uptime, Duration::from_secs(60));
        match is_key {
            true => assert!(node.carry_out(&Order::Delete(place()))),
            false => delete(&node, 1),
        }
        for alarm_comes_first in [true, false] {
            node.run_timers(alarm_comes_first);
            node.before_sleep();
            pass(&uptime, Duration::from_millis(1));
        }
        let told = node.events.take().into_iter().filter(|it| matches!(it, Event::Verdict(..)));
        assert_eq!(told.count(), 3);
        assert_eq!(node.blocked_clients(), 0);
    }
}

/// What goes with leases times clients is done in slices: telling, replying and forgetting.
#[test]
fn leases_that_many_clients_watch_are_told_and_forgotten_in_slices() {
    let ends =
        [("the jobs are deleted", 40), ("the key is deleted", 5), ("the clients go away", 40)];
    for (end, at_least) in ends {
        let (mut node, uptime) = node();
        renewing(&node, 200, 50);
        node.nature.step = BUDGET / 2;
        match end {
            "the jobs are deleted" => (1..=200).for_each(|job| delete(&node, job)),
            "the key is deleted" => assert!(node.carry_out(&Order::Delete(place()))),
            _ => (1..=50).for_each(|client| node.disconnect(client)),
        }
        let (mut turns, mut told) = (0, 0);
        while !(&node).with(|state| state.waiters.holds_nothing()) {
            turns += 1;
            assert!(turns < 10_000, "{end}: it comes to no end");
            told += turn(&node, &uptime).len();
        }
        assert_eq!(told, if end == "the clients go away" { 0 } else { 50 }, "{end}");
        assert!(turns > at_least, "{end}: 10,000 watched leases are gone in {turns} turns");
    }
}
