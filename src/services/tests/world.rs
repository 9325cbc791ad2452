//! A session: a primary, a replica, clients, and the turns of the primary's event loop. What
//! happens is drawn from a seed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use fastrand::Rng;

use crate::services::key_ref::KeyRef;

use super::account::Account;
use super::commands::{Command, Entry};
use super::keyspace::{File, Saved};
use super::node::{ClientNumber, Nature, Node};
use super::operation::{Bytes, Handed, Terms};
use super::watch::Watch;

/// What a session has in it, besides clients who add and take.
#[derive(Clone, Copy, Debug, Default)]
pub struct Troubles {
    pub lost_clients: bool,
    pub moved_keys: bool,
    pub stepped_clocks: bool,
    pub pauses: bool,
    pub reloads: bool,
    pub role_changes: bool,
    pub moved_slots: bool,
    pub crashes: bool,
    pub lag: bool,
    /// No trouble, but not in every session.
    pub groups: bool,
    /// Likewise.
    pub sinks: bool,
    /// Likewise.
    pub edges: bool,
}

pub struct Client {
    pub wait: Option<Wait>,
    pub watch: Option<Watch>,
    /// What it has been given: queue, id, lease.
    pub held: Vec<(KeyRef, Bytes, u64)>,
}

impl Client {
    pub fn is_blocked(&self) -> bool {
        self.wait.is_some() || self.watch.is_some()
    }
}

/// Of a client that waits for jobs.
pub struct Wait {
    pub places: Vec<KeyRef>,
    pub terms: Terms,
    pub deadline: Option<Duration>,
    pub delivered: Option<DeliveredJobs>,
    /// So often the timer has run while there was something for it.
    pub starved: u32,
}

/// What a client is about to get.
pub struct DeliveredJobs {
    pub handed: Vec<Handed>,
    /// The account from which it is, as long as its queue hasn't left its key.
    pub account: Option<u64>,
}

/// A lease of a client that has gone away before it was told of it. It is to be given back.
#[derive(Clone, Debug)]
pub struct Owed {
    pub account: u64,
    pub id: Bytes,
    pub lease: u64,
}

pub struct World {
    pub rng: Rng,
    pub is_told: bool,
    pub troubles: Troubles,
    pub uptime: Rc<Cell<Duration>>,
    pub primary: Node,
    pub replica: Node,
    /// So far the replica has got in the log.
    pub applied: usize,
    pub log: Vec<Entry>,
    /// A file of the primary, and where in the log it was written.
    pub base: (usize, File),
    /// The accounts as they were at each place of the log that may become its end.
    pub earlier: BTreeMap<usize, BTreeMap<KeyRef, Account>>,
    pub accounts: BTreeMap<KeyRef, Account>,
    pub accounts_opened: u64,
    pub clients: Vec<Client>,
    /// During a command: the accounts after deaths were settled before it, or after its RENEW:
    /// behind that, those who wait are served.
    pub settled: BTreeMap<KeyRef, Account>,
    pub lines: BTreeMap<KeyRef, Vec<ClientNumber>>,
    pub owed: Vec<Owed>,
    /// All leases of which a client was never told.
    pub untold: BTreeSet<u64>,
    /// The leases that anybody has got from a key.
    pub given: BTreeMap<KeyRef, BTreeSet<u64>>,
    /// DUMPs, and the accounts of what is in them.
    pub dumps: Vec<(Rc<Saved>, Account)>,
    /// Since when the server may write again.
    pub writable_since: Duration,
    /// When the primary's wall clock was set last.
    pub stepped_at: Option<Duration>,
    /// A job that is in a stream, and not yet out of its queue: that queue, and the job's id.
    pub pouring: Option<(KeyRef, Bytes)>,
    pub bodies: u64,
    /// Places whose queue may be another since the last look.
    pub touched: BTreeSet<KeyRef>,
    /// The same, beside the replica.
    pub unsynced: BTreeSet<KeyRef>,
    pub turns: u32,
}

/// Of what was played.
#[derive(Clone, Copy, Debug, Default)]
pub struct Played {
    pub turns: u64,
    pub entries: u64,
}

const CLIENTS_MAX: usize = 7;

impl World {
    pub fn new(seed: u64, is_told: bool) -> World {
        let mut rng = Rng::with_seed(seed);
        let uptime = Rc::new(Cell::new(Duration::from_secs(1)));
        // A run of the timer asks for the time some ten times before it begins with anything.
        let (budget, step) =
            [(100, 0), (100, 1), (100, 3), (1_000, 10), (1_000, 30)][rng.usize(..5)];
        let (budget, step) = (Duration::from_micros(budget), Duration::from_micros(step));
        let nature = Nature { tells_at_once: rng.bool(), budget, step };
        let mut some = |of| rng.u32(..of) == 0;
        let troubles = Troubles {
            lost_clients: some(2),
            moved_keys: some(2),
            stepped_clocks: some(4),
            pauses: some(4),
            reloads: some(4),
            role_changes: some(4),
            crashes: some(6),
            lag: some(2),
            groups: some(2),
            sinks: some(4),
            moved_slots: seed % 4 == 3,
            edges: some(2),
        };
        let clients = rng.usize(2..=CLIENTS_MAX);
        let ahead = if troubles.stepped_clocks { rng.i64(-30_000..30_000) } else { 0 };
        World {
            is_told,
            troubles,
            primary: Node::new(nature, uptime.clone(), 0, true),
            replica: Node::new(nature, uptime.clone(), ahead, false),
            rng,
            uptime,
            applied: 0,
            log: Vec::new(),
            base: (0, Vec::new()),
            earlier: BTreeMap::new(),
            accounts: BTreeMap::new(),
            accounts_opened: 0,
            clients: (0..clients)
                .map(|_| Client { wait: None, watch: None, held: Vec::new() })
                .collect(),
            settled: BTreeMap::new(),
            lines: BTreeMap::new(),
            owed: Vec::new(),
            untold: BTreeSet::new(),
            given: BTreeMap::new(),
            dumps: Vec::new(),
            writable_since: Duration::ZERO,
            stepped_at: None,
            pouring: None,
            bodies: 0,
            touched: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            turns: 0,
        }
    }

    pub fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_told {
            eprintln!("{:>12?} {}", self.uptime.get(), what());
        }
    }

    pub fn now(&self) -> Duration {
        self.uptime.get()
    }

    /// Once in so many times.
    pub fn chance(&mut self, of: u32) -> bool {
        self.rng.u32(..of) == 0
    }

    /// From the first turn to the last.
    pub fn play(mut self) -> Played {
        let (is_told, troubles, nature) = (self.is_told, self.troubles, self.primary.nature);
        if is_told {
            eprintln!("{troubles:?}\n{nature:?}\n{} clients", self.clients.len());
        }
        for _ in 0..self.rng.u32(10..60) {
            self.turn(true);
        }
        self.come_to_rest();
        self.empty();
        Played { turns: self.turns.into(), entries: self.log.len() as u64 }
    }

    /// A turn of the event loop.
    pub fn turn(&mut self, is_busy: bool) {
        self.turns += 1;
        self.sleep(is_busy);
        if is_busy {
            self.let_things_happen();
        }
        self.run_timers();
        self.replicate(!is_busy);
        self.inspect();
    }

    fn let_things_happen(&mut self) {
        if !self.primary.is_primary.get() {
            if self.rng.bool() {
                self.promote();
            }
            return;
        }
        let (before, all) = (self.rng.usize(..2), self.rng.usize(..3));
        for at in 0..=all {
            if at == before {
                self.make_trouble();
            } else {
                self.let_somebody_speak();
            }
            if self.troubles.lost_clients && self.chance(4) {
                self.lie_in_ambush();
            }
        }
    }

    /// Those go away who are about to get something, and somebody speaks before anybody has
    /// noticed.
    fn lie_in_ambush(&mut self) {
        let is_delivered = |wait: &Wait| wait.delivered.is_some();
        let mut about_to: Vec<ClientNumber> = (0..self.clients.len()).collect();
        about_to.retain(|client| self.clients[*client].wait.as_ref().is_some_and(is_delivered));
        self.rng.shuffle(&mut about_to);
        for client in about_to {
            self.lose(client);
        }
        self.let_somebody_speak();
    }

    /// Until the next timer at the latest, if nothing holds the loop up.
    fn sleep(&mut self, is_busy: bool) {
        let now = self.now();
        let until = |at: Option<Duration>| at.map(|at| at.saturating_sub(now));
        let timers = [until(self.primary.alarm.get()), until(self.primary.turn_end.get())];
        let timer = timers.into_iter().flatten().min();
        let most = timer.unwrap_or(Duration::from_secs(1));
        let span = match self.rng.u32(..8) {
            _ if !is_busy => most,
            0 | 1 => Duration::ZERO,
            2..=4 => most.min(Duration::from_micros(self.rng.u64(..3_000))),
            5 => most,
            // Somebody comes just before it, and the millisecond ends meanwhile.
            6 => most.saturating_sub(Duration::from_micros(self.rng.u64(..100))),
            // Something holds it up.
            _ => Duration::from_micros(self.rng.u64(..20_000)),
        };
        self.uptime.set(now + span);
    }

    fn run_timers(&mut self) {
        let alarm_comes_first = self.rng.bool();
        let begun = self.primary.wall_ms();
        let took = self.primary.run_timers(alarm_comes_first);
        self.absorb(begun, None);
        if let Some(took) = took {
            self.judge_the_run(took);
        }
        for client in self.primary.clients_out_of_time() {
            self.tell(|| format!("the server ends the wait of {client}"));
            self.primary.unblock_client(client);
            self.absorb(begun, None);
        }
        // What threads have read may be carried out behind the timers.
        let client = self.rng.usize(..self.clients.len());
        if self.troubles.lost_clients && self.clients[client].is_blocked() && self.chance(4) {
            self.harm(client);
        }
        self.primary.before_sleep();
        self.absorb(begun, None);
        self.replica.run_timers(alarm_comes_first);
        assert!(
            self.replica.events.borrow().is_empty(),
            "a replica tells something, or a node of what is on its way to it"
        );
    }

    pub fn let_somebody_speak(&mut self) {
        if !self.primary.is_primary.get() {
            return;
        }
        let client = self.rng.usize(..self.clients.len());
        if self.clients[client].is_blocked() {
            if self.troubles.lost_clients && self.chance(4) {
                self.harm(client);
            }
            return;
        }
        let is_transaction = self.chance(8);
        let commands = self.rng.usize(1..=4);
        for _ in 0..commands {
            let command = self.draw(client);
            if !self.primary.may_replicate.get() && !matches!(command, Command::Look(_)) {
                continue;
            }
            self.say(client, &command, is_transaction);
            if self.clients[client].is_blocked() {
                break;
            }
        }
        let begun = self.primary.wall_ms();
        self.primary.tell_of_ready_keys();
        self.absorb(begun, None);
    }

    /// A client that waits is told to stop, or goes away.
    fn harm(&mut self, client: ClientNumber) {
        if self.rng.bool() {
            self.lose(client);
            return;
        }
        self.tell(|| format!("CLIENT UNBLOCK {client}"));
        if let Some(wait) = &mut self.clients[client].wait {
            // It may be told so.
            wait.deadline = Some(Duration::ZERO);
        }
        if let Some(watch) = &mut self.clients[client].watch {
            watch.deadline = Some(Duration::ZERO);
        }
        let begun = self.primary.wall_ms();
        self.primary.unblock_client(client);
        self.absorb(begun, None);
    }

    /// A client goes away while it waits.
    pub fn lose(&mut self, client: ClientNumber) {
        self.tell(|| format!("{client} goes away"));
        let begun = self.primary.wall_ms();
        self.primary.disconnect(client);
        self.absorb(begun, None);
        self.leave(client);
    }

    /// A client that waits gets nothing any more.
    pub fn leave(&mut self, client: ClientNumber) {
        self.lines.values_mut().for_each(|line| line.retain(|other| *other != client));
        self.clients[client].held.clear();
        self.clients[client].watch = None;
        let Some(Wait { delivered: Some(DeliveredJobs { handed, account }), terms, .. }) =
            self.clients[client].wait.take()
        else {
            return;
        };
        for Handed { id, lease, .. } in handed.into_iter().filter(|_| !terms.no_ack) {
            self.untold.insert(lease);
            self.owed.extend(account.map(|account| Owed { account, id, lease }));
        }
        self.forget_what_is_not_owed();
    }

    /// Nobody speaks any more, until all that had to happen has happened.
    fn come_to_rest(&mut self) {
        self.tell(|| "nobody speaks any more".into());
        self.let_write(true);
        self.let_streams_take(true);
        if !self.primary.is_primary.get() {
            self.promote();
        }
        let end = self.now() + Duration::from_secs(3);
        while self.now() < end {
            self.turn(false);
        }
        self.forget_what_is_not_owed();
        assert!(self.owed.is_empty(), "not given back: {:?}", self.owed);
        self.inspect_the_forgotten();
        self.inspect_the_poured();
        self.inspect_watchers_at_rest();
        self.inspect_everything();
    }

    /// Everybody goes, and everything.
    fn empty(&mut self) {
        for client in 0..self.clients.len() {
            self.lose(client);
        }
        let places: Vec<KeyRef> = self.accounts.keys().cloned().collect();
        for place in places {
            self.say(0, &Command::Keys(super::keyspace::Order::Delete(place)), false);
        }
        let end = self.now() + Duration::from_secs(2);
        while self.now() < end {
            self.turn(false);
        }
        self.inspect_what_is_left();
    }
}
