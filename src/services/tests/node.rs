//! A server without a server: keys, clocks, timers and clients that are blocked, as the services
//! see them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::rc::Rc;
use std::time::Duration;

use crate::queue::{Attempts, Backoff, Defaults, Millis, Queue, Time};
use crate::services::host::{Host, Keyspace};
use crate::services::key_ref::{Access, Closed, Database, KeyRef, Ticket};
use crate::services::keys::value::QueueValue;
use crate::services::keys::{lifecycle, moved};
use crate::services::state::State;
use crate::services::timer::{pacemaker, wakeup};
use crate::services::waiting::serving;
use crate::services::waiting::wish::Wish;

use super::key::{Context, Key};
use super::operation::{Bytes, Operation};

/// The wall clock at the beginning, if it is right.
const BEGIN_MS: u64 = 1_800_000_000_000;

/// What the server calls a client that is blocked. A number comes again once its client is not
/// blocked any more, as an address does.
pub type Handle = u32;

/// A client of the simulation.
pub type ClientNumber = usize;

/// What a server told the world, in its order.
pub enum Event {
    Logged(Logged),
    /// A command of the server that the module ran for a queue: it is in the log, too.
    Ran(KeyRef, Vec<Bytes>),
    /// A client that waited gets this.
    Verdict(ClientNumber, Option<Wish>),
}

#[derive(Clone, Debug)]
pub struct Logged {
    pub place: KeyRef,
    /// The time and the circumstances, where they are told.
    pub told: Option<(u64, String)>,
    pub operation: Operation,
    /// The words are those of the command that is being executed.
    pub is_as_sent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Waits,
    /// It will be told before the loop sleeps.
    IsToBeTold,
    /// It has been told, if it is still there before the loop sleeps.
    IsTold,
    IsOver,
}

struct Blocked {
    client: ClientNumber,
    ticket: Ticket,
    places: Vec<KeyRef>,
    /// When the server ends the wait by itself.
    at_latest: Option<Duration>,
    block: Block,
    /// What it is told, if it is still there.
    reply: Option<Wish>,
}

/// What doesn't change in the life of a server.
#[derive(Clone, Copy, Debug)]
pub struct Nature {
    /// Who is unblocked is told within the call, as Redis 7.0 and Valkey do it, or before the loop
    /// sleeps.
    pub tells_at_once: bool,
    pub budget: Duration,
    /// How much time passes whenever somebody asks for the time.
    pub step: Duration,
}

pub struct Node {
    pub nature: Nature,
    state: RefCell<State<Handle>>,
    pub keys: RefCell<BTreeMap<KeyRef, Option<Box<QueueValue>>>>,
    /// The slots of all keys are on their way here: they are another node's.
    is_importing: Cell<bool>,
    uptime: Rc<Cell<Duration>>,
    /// How far the wall clock is ahead of what it was at the beginning plus the uptime.
    pub ahead_ms: Cell<i64>,
    pub defaults: Cell<Defaults>,
    pub is_primary: Cell<bool>,
    pub may_replicate: Cell<bool>,
    pub alarm: Cell<Option<Duration>>,
    pub turn_end: Cell<Option<Duration>>,
    is_in_timers: Cell<bool>,
    /// Of an event that comes with a context.
    is_in_event: Cell<bool>,
    /// The key that a walk over all of them has reached.
    walk: RefCell<Option<KeyRef>>,
    blocked: RefCell<BTreeMap<Handle, Blocked>>,
    /// Clients that were blocked and aren't any more, of which the server hasn't said so yet.
    over: RefCell<Vec<Handle>>,
    /// Keys at which there is something new.
    pub ready: RefCell<Vec<KeyRef>>,
    pub events: RefCell<Vec<Event>>,
    /// What watchers of keys were told.
    pub told: RefCell<Vec<CString>>,
    /// What the operator was told.
    pub warned: RefCell<Vec<String>>,
    /// What the server answers to those who add to a stream.
    pub refuses: RefCell<Option<String>>,
}

pub fn defaults(ttr_ms: u64) -> Defaults {
    Defaults {
        ttr: Millis::new(ttr_ms).unwrap(),
        attempts: Attempts::new(25),
        backoff: Backoff::NONE,
    }
}

impl Node {
    pub fn new(
        nature: Nature,
        uptime: Rc<Cell<Duration>>,
        ahead_ms: i64,
        is_primary: bool,
    ) -> Node {
        let state = State { is_primary, ..State::NEW };
        Node {
            nature,
            state: RefCell::new(state),
            keys: RefCell::default(),
            is_importing: Cell::new(false),
            uptime,
            ahead_ms: Cell::new(ahead_ms),
            defaults: Cell::new(defaults(60_000)),
            is_primary: Cell::new(is_primary),
            may_replicate: Cell::new(true),
            alarm: Cell::new(None),
            turn_end: Cell::new(None),
            is_in_timers: Cell::new(false),
            is_in_event: Cell::new(false),
            walk: RefCell::new(None),
            blocked: RefCell::default(),
            over: RefCell::default(),
            ready: RefCell::default(),
            events: RefCell::default(),
            told: RefCell::default(),
            warned: RefCell::default(),
            refuses: RefCell::default(),
        }
    }

    /// Nothing of the host may be called inside [`Host::with`].
    fn assert_nobody_is_inside(&self) {
        assert!(self.state.try_borrow_mut().is_ok(), "the host is called from inside its state");
    }

    pub fn now(&self) -> Duration {
        self.uptime.get()
    }

    fn wall_ns(&self) -> u128 {
        let ms = BEGIN_MS.saturating_add_signed(self.ahead_ms.get());
        u128::from(ms) * 1_000_000 + self.uptime.get().as_nanos()
    }

    pub fn wall_ms(&self) -> u64 {
        (self.wall_ns() / 1_000_000) as u64
    }

    /// As the server sees it: the client waits from now on.
    pub fn block(
        &self,
        client: ClientNumber,
        ticket: Ticket,
        places: &[KeyRef],
        timeout: Option<Duration>,
    ) -> Handle {
        let mut blocked = self.blocked.borrow_mut();
        let handle = (1..).find(|number| !blocked.contains_key(number)).unwrap();
        let at_latest = timeout.map(|timeout| self.now() + timeout + Duration::from_secs(2));
        let places = places.to_vec();
        blocked.insert(
            handle,
            Blocked { client, ticket, places, at_latest, block: Block::Waits, reply: None },
        );
        handle
    }

    /// Those that the server takes for blocked.
    pub fn blocked_clients(&self) -> usize {
        self.blocked.borrow().values().filter(|one| one.block == Block::Waits).count()
    }

    fn handle_of(&self, client: ClientNumber) -> Option<(Handle, Ticket)> {
        let blocked = self.blocked.borrow();
        let waits = |one: &&Blocked| one.client == client && one.block == Block::Waits;
        let (handle, one) = blocked.iter().find(|(_, one)| waits(one))?;
        Some((*handle, one.ticket))
    }

    /// Of whom the replies are made, and not confirmed yet.
    pub fn clients_with_replies(&self) -> Vec<ClientNumber> {
        let blocked = self.blocked.borrow();
        let told = blocked.values().filter(|one| one.block == Block::IsTold);
        told.map(|one| one.client).collect()
    }

    fn is_over(&self, handle: Handle, block: Block) {
        self.blocked.borrow_mut().get_mut(&handle).unwrap().block = block;
        self.over.borrow_mut().push(handle);
    }

    fn tell(&self, client: ClientNumber, ticket: Ticket) {
        let is_in_event = self.is_in_event.replace(true);
        let departure = serving::on_unblocked(self, ticket);
        self.is_in_event.set(is_in_event);
        self.events.borrow_mut().push(Event::Verdict(client, departure));
    }

    /// CLIENT UNBLOCK, or the server's own timeout.
    pub fn unblock_client(&self, client: ClientNumber) {
        if let Some((handle, ticket)) = self.handle_of(client) {
            self.tell(client, ticket);
            self.is_over(handle, Block::IsOver);
        }
    }

    /// The connection is gone.
    pub fn disconnect(&self, client: ClientNumber) {
        let is_its = |one: &&mut Blocked| one.client == client && one.block != Block::IsOver;
        let to_be_told = self.blocked.borrow_mut().iter_mut().find_map(|(handle, one)| {
            let one = Some(one).filter(is_its)?;
            Some((*handle, one.ticket, std::mem::replace(&mut one.block, Block::IsOver)))
        });
        let Some((handle, ticket, block)) = to_be_told else {
            return;
        };
        serving::on_gone(self, ticket);
        if block == Block::Waits {
            self.over.borrow_mut().push(handle);
        }
    }

    /// Of whom the server ends the wait now.
    pub fn clients_out_of_time(&self) -> Vec<ClientNumber> {
        let is_late = |one: &&Blocked| one.at_latest.is_some_and(|at| at <= self.now());
        let blocked = self.blocked.borrow();
        blocked
            .values()
            .filter(|one| one.block == Block::Waits)
            .filter(is_late)
            .map(|one| one.client)
            .collect()
    }

    /// The server says of new keys that somebody may want them: to everybody who waits there.
    pub fn tell_of_ready_keys(&self) {
        for place in self.ready.take() {
            let waits = |one: &&Blocked| one.block == Block::Waits && one.places.contains(&place);
            let waiting = self.blocked.borrow().values().filter(waits).count();
            let is_there = self.keys.borrow().contains_key(&place);
            for _ in 0..if is_there { waiting } else { 0 } {
                serving::on_key_ready(self, place.0, &place.1);
            }
        }
    }

    /// The timers that are due: the end of the turn and the alarm, in either order.
    pub fn run_timers(&self, alarm_comes_first: bool) -> Option<Duration> {
        let is_due = |at: Option<Duration>| at.is_some_and(|at| at <= self.now());
        let (ends, rings) = (is_due(self.turn_end.get()), is_due(self.alarm.get()));
        self.is_in_timers.set(true);
        let mut took = None;
        for is_alarm in [alarm_comes_first, !alarm_comes_first] {
            if is_alarm && rings {
                self.alarm.set(None);
                let begun = self.now();
                pacemaker::on_alarm(self, self.is_primary.get());
                took = Some(self.now() - begun);
            } else if !is_alarm && ends {
                self.turn_end.set(None);
                serving::on_turn_ending(self);
            }
        }
        self.is_in_timers.set(false);
        took
    }

    /// Data is about to be loaded, or has been.
    pub fn tell_of_loading(&self, is_loading: bool) {
        self.is_in_event.set(true);
        pacemaker::on_loading(self, is_loading);
        self.is_in_event.set(false);
    }

    /// Slots begin to move here, or don't any more.
    pub fn tell_of_import(&self, is_importing: bool) {
        self.is_importing.set(is_importing);
        moved::on_slots_moved(self);
    }

    pub fn is_importing(&self) -> bool {
        self.is_importing.get()
    }

    /// The last that is heard of clients that were blocked.
    pub fn before_sleep(&self) {
        for handle in self.over.take() {
            let Blocked { client, ticket, block, reply, .. } =
                self.blocked.borrow_mut().remove(&handle).unwrap();
            match block {
                Block::IsToBeTold => {
                    self.tell(client, ticket);
                    serving::on_replied(self, ticket);
                }
                Block::IsTold => {
                    self.events.borrow_mut().push(Event::Verdict(client, reply));
                    serving::on_replied(self, ticket);
                }
                Block::Waits | Block::IsOver => serving::on_gone(self, ticket),
            }
        }
    }

    /// Opens the queue at a place, for a command or outside of one.
    pub fn open_as<R>(
        &self,
        place: &KeyRef,
        context: Context,
        creates: bool,
        work: impl FnOnce(Key<'_>, &mut QueueValue) -> R,
    ) -> Option<R> {
        self.assert_nobody_is_inside();
        let taken = self.keys.borrow_mut().get_mut(place).map(Option::take);
        let mut value = match taken {
            Some(value) => value.expect("a queue is opened while it is open"),
            None if creates => {
                self.keys.borrow_mut().insert(place.clone(), None);
                self.ready.borrow_mut().push(place.clone());
                Box::new(lifecycle::new(self, Queue::new((1, 2))))
            }
            None => return None,
        };
        let result =
            work(Key { node: self, database: place.0, name: &place.1, context }, &mut value);
        *self.keys.borrow_mut().get_mut(place).unwrap() = Some(value);
        Some(result)
    }

    pub fn look_at<R>(&self, place: &KeyRef, look: impl FnOnce(&QueueValue) -> R) -> Option<R> {
        self.keys.borrow().get(place).map(|value| look(value.as_ref().unwrap()))
    }
}

impl Host for &Node {
    type Client = Handle;
    type Key<'k> = Key<'k>;

    fn with<R>(self, work: impl FnOnce(&mut State<Handle>) -> R) -> R {
        work(&mut self.state.try_borrow_mut().expect("the state is used from inside itself"))
    }

    fn wall_clock(self) -> Time {
        self.assert_nobody_is_inside();
        self.uptime.set(self.uptime.get() + self.nature.step);
        Time::new(self.wall_ms()).unwrap()
    }

    fn until(self, time: Time) -> Duration {
        self.assert_nobody_is_inside();
        let target = u128::from(time.unix_ms()) * 1_000_000;
        Duration::from_nanos(target.saturating_sub(self.wall_ns()) as u64)
    }

    fn uptime(self) -> Duration {
        self.assert_nobody_is_inside();
        self.uptime.set(self.uptime.get() + self.nature.step);
        self.uptime.get()
    }

    fn may_change(self) -> bool {
        self.assert_nobody_is_inside();
        self.may_replicate.get() && self.with(|state| state.is_primary && !state.is_loading)
    }

    fn defaults(self) -> Defaults {
        self.defaults.get()
    }

    fn tick_budget(self) -> Duration {
        self.nature.budget
    }

    fn is_own(self, _name: &[u8]) -> bool {
        !self.is_importing.get()
    }

    fn is_in_cluster(self) -> bool {
        false
    }

    fn is_staying(self, _name: &[u8]) -> bool {
        true
    }

    fn set_alarm(self, after: Duration) {
        self.assert_nobody_is_inside();
        self.alarm.set(Some(self.now() + after.max(Duration::from_nanos(1))));
    }

    fn at_end_of_turn(self) {
        self.assert_nobody_is_inside();
        let later = if self.is_in_timers.get() { Duration::from_millis(1) } else { Duration::ZERO };
        assert!(self.turn_end.get().is_none(), "the end of the turn is asked for twice");
        self.turn_end.set(Some(self.now() + later));
    }

    fn warn(self, what: &str) {
        self.warned.borrow_mut().push(what.to_string());
    }

    fn bug(self, what: &str) {
        panic!("{what}");
    }

    fn unblock(self, handle: Handle) {
        self.assert_nobody_is_inside();
        assert!(self.is_in_timers.get(), "a client is unblocked outside a timer");
        let (ticket, block) = {
            let blocked = self.blocked.borrow();
            let one = blocked.get(&handle).expect("somebody is unblocked who isn't there");
            (one.ticket, one.block)
        };
        assert!(block == Block::Waits, "somebody is unblocked twice");
        if self.nature.tells_at_once {
            let reply = serving::on_unblocking(self, ticket);
            self.blocked.borrow_mut().get_mut(&handle).unwrap().reply = reply;
            self.is_over(handle, Block::IsTold);
        } else {
            self.is_over(handle, Block::IsToBeTold);
        }
    }
}

impl Keyspace for &Node {
    fn open<R>(
        self,
        (database, name): (Database, &[u8]),
        access: Access,
        work: impl FnOnce(Key<'_>, &mut QueueValue) -> R,
    ) -> Result<R, Closed> {
        let has_context = self.is_in_timers.get() || self.is_in_event.get();
        assert!(has_context, "a key is opened outside commands, timers and events");
        let context = match access {
            Access::Read => Context::Reader,
            Access::Write => Context::Timer,
        };
        let place = (database, name.into());
        if !self.is_own(name) && self.keys.borrow().contains_key(&place) {
            return Err(Closed::NotOwn);
        }
        self.open_as(&place, context, false, work).ok_or(Closed::Missing)
    }

    fn walk_on(self) -> bool {
        let last = self.walk.take();
        let place = {
            let keys = self.keys.borrow();
            let behind = keys.keys().find(|place| last.as_ref().is_none_or(|last| *place > last));
            behind.cloned()
        };
        let Some(place) = place else {
            return false;
        };
        self.open_as(&place, Context::Reader, false, |key, value| {
            wakeup::plan(self, value, || key.database, || key.name);
        });
        *self.walk.borrow_mut() = Some(place);
        true
    }
}
