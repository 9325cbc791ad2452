//! One service on a server of the simulation, without a session: what sessions can't see, since
//! only the result of it counts there.

mod alarm;
mod changes;
mod keys;
mod moved;
mod recording_calendar;
mod sink;
mod waiting;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use crate::queue::{
    Add, Circumstances, Millis, Misfire, NewSchedule, Pop, Recurrence, Starts, Time, Timing,
};
use crate::services::change::frame::{Frame, Source};
use crate::services::change::log::LogForm;
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::waiting::wish::{Shape, Wish};

use super::edges::NewEdges;
use super::key::{Context, Key};
use super::keyspace::Order;
use super::node::{ClientNumber, Event, Logged, Nature, Node};
use super::operation::{id, ms, Due, NewJob, Operation, Terms};

const BUDGET: Duration = Duration::from_millis(1);

/// A primary, and its uptime, which goes on by hand.
fn node() -> (Node, Rc<Cell<Duration>>) {
    let nature = Nature { tells_at_once: true, budget: BUDGET, step: Duration::ZERO };
    let uptime = Rc::new(Cell::new(Duration::from_secs(100)));
    (Node::new(nature, uptime.clone(), 0, true), uptime)
}

fn pass(uptime: &Cell<Duration>, span: Duration) {
    uptime.set(uptime.get() + span);
}

/// The key of all that needs no more than one.
fn place() -> KeyRef {
    (0, b"q"[..].into())
}

fn now_of(node: &Node) -> Circumstances {
    Circumstances { now: Time::new(node.wall_ms()).unwrap(), ..Circumstances::default() }
}

/// A job without options.
fn plain(name: &[u8]) -> Operation {
    Operation::Add(NewJob {
        id: name.into(),
        body: b"x".into(),
        due: Due::In(0),
        ttr: 3_600_000,
        priority: 0,
        attempts: 25,
        keep: 0,
        ttl: 0,
        late: 0,
        group: None,
        edges: NewEdges::default(),
        replaces: false,
    })
}

/// A job that comes every minute. Nobody takes it in time where that is so many milliseconds; zero
/// is for ever.
fn every_minute(name: &[u8], late: u64) -> Add<'_> {
    let rule = Recurrence {
        timing: Timing::Every(ms(60_000)),
        misfire: Misfire::One,
        jitter: Millis::ZERO,
        runs: 0,
        until: None,
        late: ms(late),
    };
    let schedule = NewSchedule { rule, starts: Starts::ByItself };
    Add { schedule: Some(Box::new(schedule)), late: Some(ms(late)), ..Add::plain(id(name), b"x") }
}

const ONE: Terms = Terms { count: 1, ttr: None, no_ack: false };

/// A client's command.
fn command(sent: &Operation) -> Context<'_> {
    Context::Command { sent: Some(sent), is_inside_another: false }
}

/// A client adds it.
fn add(node: &Node, name: &[u8]) {
    let operation = plain(name);
    node.open_as(&place(), command(&operation), true, |key, value| {
        operation.carry_out(Frame::new(node, key, value, Source::Client, None), LogForm::AsSent)
    });
}

const SHAPE: Shape = Shape { with_key: false, with_due: false, finished: None };

/// A client begins to wait.
fn join(node: &Node, client: ClientNumber, pop: Pop) {
    let ticket = node.with(|state| state.waiters.next_ticket());
    let handle = node.block(client, ticket, &[place()], None);
    let wish = Wish::jobs(pop, None, SHAPE, vec![place()]);
    node.with(|state| state.waiters.join(handle, wish, None));
}

/// What was logged since this was asked last.
fn logged(node: &Node) -> Vec<Logged> {
    let logged = |event| match event {
        Event::Logged(logged) => Some(logged),
        Event::Ran(..) | Event::Verdict(..) => None,
    };
    node.events.take().into_iter().filter_map(logged).collect()
}
