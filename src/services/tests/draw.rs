//! What clients say.

use crate::queue::State;
use crate::services::key_ref::{Database, KeyRef};

use super::commands::Command;
use super::edges::NewEdges;
use super::keyspace::{save, Order};
use super::many::{ManyJobs, Times};
use super::node::ClientNumber;
use super::operation::{Bytes, Due, GroupLimits, Left, NewJob, Operation, Pace, Terms, When};
use super::watch::Watching;
use super::world::World;

const NAMES: [&[u8]; 2] = [b"a", b"b"];
const DATABASES: [Database; 2] = [0, 1];
const IDS: u8 = 8;
// No more: the account takes it that after each command all groups without jobs are looked at.
const GROUPS: [&[u8]; 2] = [b"g", b"h"];
const DUMPS_MAX: usize = 4;

impl World {
    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.rng.usize(..all.len())]
    }

    /// Most often the same one.
    fn place(&mut self) -> KeyRef {
        let (name, database) = match self.rng.u32(..6) {
            0..4 => (NAMES[0], DATABASES[0]),
            4 => (NAMES[1], DATABASES[0]),
            _ => (self.one_of(&NAMES), DATABASES[1]),
        };
        (database, name.into())
    }

    fn id(&mut self) -> Bytes {
        vec![b'p' + self.rng.u8(..IDS)]
    }

    pub fn draw(&mut self, client: ClientNumber) -> Command {
        if self.troubles.moved_keys && self.chance(12) {
            if let Some(order) = self.order() {
                return Command::Keys(order);
            }
        }
        let place = self.place();
        match self.rng.u32(..46) {
            0..9 => Command::Change(place, Operation::Add(self.new_job())),
            9..12 => Command::Change(place, self.draw_many()),
            13..24 => self.draw_pop(client, place),
            24..33 => self.draw_of_held(client),
            33 => Command::Change(place, Operation::Delete(vec![self.id(), self.id()])),
            34 => Command::Change(place, Operation::KickJob(vec![self.id()])),
            12 | 35 => {
                let (count, spread) = (self.rng.usize(1..5), self.rng.u64(..100));
                let spread = self.rng.bool().then_some(spread);
                Command::Kick { place, count, spread }
            }
            36 => Command::Purge(place, self.one_of(&State::ALL), self.rng.usize(1..3)),
            37 => Command::Look(place),
            42..44 => self.draw_result(place),
            44..46 => self.draw_renew(client),
            38 => Command::Change(place, self.draw_pause()),
            41 if self.troubles.edges => {
                Command::Change(place, Operation::ResumeJobs(vec![self.id(), self.id()]))
            }
            40 if self.troubles.groups => Command::Change(place, self.draw_of_groups()),
            41 if self.troubles.sinks => Command::Change(place, self.draw_sink()),
            39 => Command::Change(place, Operation::KeepDead(self.one_of(&[0, 1, 30]))),
            _ => {
                let ids = (0..self.rng.usize(1..4)).map(|_| self.id()).collect();
                Command::Change(place, Operation::PopById(ids, self.terms(client)))
            }
        }
    }

    fn draw_pause(&mut self) -> Operation {
        match self.rng.u32(..8) {
            0 => Operation::Pause(None, None),
            1..4 => Operation::Pause(None, Some(self.rng.u64(1..30))),
            _ => Operation::Resume(None),
        }
    }

    fn draw_sink(&mut self) -> Operation {
        Operation::Sink(self.one_of(&[None, Some(1), Some(2)]))
    }

    fn draw_of_groups(&mut self) -> Operation {
        let group = Some(self.one_of(&GROUPS).to_vec());
        match self.rng.u32(..12) {
            0 => Operation::Pause(group, None),
            1..3 => Operation::Pause(group, Some(self.rng.u64(1..30))),
            3..7 => Operation::Resume(group),
            _ => {
                let pace =
                    self.one_of(&[(1, 10, 1), (3, 10, 1), (2, 100, 3), (7, 3, 2), (1, 60, 2)]);
                let (jobs, per, burst) = pace;
                let pace = self.rng.bool().then_some(Pace { jobs, per, burst });
                Operation::LimitGroups(GroupLimits { places: self.one_of(&[0, 1, 1, 2]), pace })
            }
        }
    }

    fn new_job(&mut self) -> NewJob {
        self.bodies += 1;
        let due = match self.rng.u32(..8) {
            0..4 => Due::In(0),
            4 | 5 => Due::In(self.rng.u64(1..10)),
            6 => Due::In(self.rng.u64(1..300)),
            _ => Due::At((self.primary.wall_ms() + self.rng.u64(..300)).saturating_sub(30)),
        };
        NewJob {
            id: self.id(),
            body: self.bodies.to_string().into_bytes(),
            due,
            ttr: self.rng.u64(1..100),
            priority: self.one_of(&[1, 1, 1, 2]),
            attempts: self.one_of(&[0, 0, 0, 1, 2]),
            keep: self.one_of(&[0, 0, 0, 1, 40]),
            ttl: self.one_of(&[0, 0, 0, 0, 0, 5, 60]),
            late: self.one_of(&[0, 0, 0, 0, 0, 3, 40]),
            group: self.draw_group(),
            edges: self.draw_edges(),
            replaces: self.chance(4),
        }
    }

    fn draw_many(&mut self) -> Operation {
        let like = self.new_job();
        let mut ids: Vec<Bytes> = (0..IDS).map(|at| vec![b'p' + at]).collect();
        self.rng.shuffle(&mut ids);
        ids.truncate(self.rng.usize(1..5));
        if self.chance(8) {
            // Perhaps twice.
            ids.push(self.id());
        }
        let body = |at| format!("{at} of {}", self.bodies).into_bytes();
        let jobs: Vec<(Bytes, Bytes)> =
            ids.into_iter().enumerate().map(|(at, id)| (id, body(at))).collect();
        let leaves_taken = !like.replaces && self.rng.bool();
        let now = self.primary.wall_ms();
        let times = Times::draw(&mut self.rng, jobs.len(), now);
        Operation::AddMany(Box::new(ManyJobs { like, jobs, times, leaves_taken }))
    }

    fn draw_edges(&mut self) -> NewEdges {
        if !self.troubles.edges || self.rng.bool() {
            return NewEdges::default();
        }
        let mut ids = vec![self.id(), self.id()];
        ids.dedup();
        ids.truncate(self.one_of(&[1, 2]));
        let (is_on_hold, runs) = (self.chance(4), self.rng.bool());
        match self.rng.u32(..6) {
            0 => NewEdges { is_on_hold: true, runs, ..NewEdges::default() },
            1 => NewEdges { before: ids, is_on_hold, ..NewEdges::default() },
            _ => NewEdges { after: ids, is_on_hold, runs, ..NewEdges::default() },
        }
    }

    fn draw_group(&mut self) -> Option<Bytes> {
        let is_of_one = self.troubles.groups && !self.chance(3);
        is_of_one.then(|| self.one_of(&GROUPS).to_vec())
    }

    fn priority(&mut self) -> Option<u8> {
        self.chance(4).then(|| self.one_of(&[1, 2]))
    }

    /// The terms of no two clients are alike, so that a delivery tells whom it is for.
    fn terms(&mut self, client: ClientNumber) -> Terms {
        let mark = client as u64 + 1;
        if self.chance(4) {
            return Terms { count: mark as usize, ttr: None, no_ack: true };
        }
        let count = self.one_of(&[1, 1, 1, 2, 5]);
        Terms { count, ttr: Some(self.one_of(&[0, 1, 4, 30]) * 8 + mark), no_ack: false }
    }

    fn draw_pop(&mut self, client: ClientNumber, place: KeyRef) -> Command {
        let terms = self.terms(client);
        let is_of_many = self.chance(4);
        let mut places = vec![place];
        while is_of_many && places.len() < 3 && self.rng.bool() {
            let (_, name) = self.place();
            places.push((places[0].0, name));
        }
        let block = match self.rng.u32(..6) {
            0 => None,
            1..4 => Some(0),
            4 => Some(self.rng.u64(1..10)),
            _ => Some(self.rng.u64(1..400)),
        };
        Command::Pop { places, terms, block, is_of_many }
    }

    /// What a worker says of a job that it has, or had.
    fn draw_of_held(&mut self, client: ClientNumber) -> Command {
        let all = &self.clients[client].held;
        if all.is_empty() {
            let place = self.place();
            let claims = vec![(self.id(), None)];
            return Command::Change(place, Operation::Finish(claims));
        }
        if self.troubles.edges && self.chance(8) {
            // Perhaps it is held.
            let (place, id) = (self.place(), self.id());
            return Command::Change(place, self.draw_done(id, None));
        }
        let all = &self.clients[client].held;
        let at = self.rng.usize(..all.len());
        let (place, id, lease) = all[at].clone();
        let lease = Some(lease).filter(|_| self.rng.u32(..8) > 0);
        let operation = match self.rng.u32(..11) {
            0 => Operation::Finish(vec![(id, lease), (self.id(), None)]),
            1..4 => Operation::Finish(vec![(id, lease)]),
            4 => Operation::Release {
                id,
                lease,
                when: When::After(self.rng.u64(..20)),
                priority: self.priority(),
                left: self.left(),
            },
            5 => Operation::Release {
                id,
                lease,
                when: When::Unbegun,
                priority: self.priority(),
                left: self.left(),
            },
            6 | 7 => Operation::Touch { id, lease, left: self.left() },
            8 | 9 => self.draw_done(id, lease),
            _ => Operation::Bury { id, lease },
        };
        if self.rng.bool() {
            self.clients[client].held.swap_remove(at);
        }
        Command::Change(place, operation)
    }

    fn draw_result(&mut self, place: KeyRef) -> Command {
        // Of a job that is there, most often.
        let account = self.accounts.get(&place);
        let ids: Vec<Bytes> = account.map_or(Vec::new(), |account| {
            account.jobs.iter().map(|job| job.new.id.clone()).collect()
        });
        let id = if ids.is_empty() { self.id() } else { ids[self.rng.usize(..ids.len())].clone() };
        let block = self.one_of(&[None, Some(0), Some(0), Some(7), Some(200)]);
        Command::Watch(place, Watching::Result { id, block })
    }

    fn draw_renew(&mut self, client: ClientNumber) -> Command {
        let held = &self.clients[client].held;
        let Some((place, ..)) = held.first().cloned() else {
            let place = self.place();
            return self.draw_result(place);
        };
        let held = held.iter().filter(|(one, ..)| *one == place);
        let mut claims: Vec<(Bytes, Option<u64>)> =
            held.map(|(_, id, lease)| (id.clone(), Some(*lease))).collect();
        if self.chance(4) {
            claims[0].1 = None;
        }
        let ttr = self.one_of(&[None, None, Some(5), Some(100)]);
        let block = self.one_of(&[0, 5, 50, 300]);
        Command::Watch(place, Watching::Renew { claims, ttr, block })
    }

    fn draw_done(&mut self, id: Bytes, lease: Option<u64>) -> Operation {
        let result = self.rng.bool().then(|| self.text());
        let keep = self.one_of(&[None, None, Some(0), Some(1), Some(40)]);
        let adds = (0..self.rng.usize(..3)).map(|_| self.new_job()).collect();
        Operation::Done { id, lease, result, keep, adds }
    }

    /// Most often nothing.
    fn left(&mut self) -> Left {
        let body = self.chance(4).then(|| self.text());
        Left { body, note: self.chance(2).then(|| self.text()) }
    }

    fn text(&mut self) -> Bytes {
        self.bodies += 1;
        if self.chance(4) {
            return Bytes::new();
        }
        format!("left {}", self.bodies).into_bytes()
    }

    fn order(&mut self) -> Option<Order> {
        let (from, to) = (self.place(), self.place());
        let order = match self.rng.u32(..12) {
            0..3 => Order::Rename(from.clone(), (from.0, to.1)),
            3 => Order::Move(from.clone(), 1 - from.0),
            4 | 5 => Order::Copy(from, to),
            6 => Order::Delete(from),
            7 => Order::Swap(DATABASES[0], DATABASES[1]),
            8 => Order::Flush(Some(from.0).filter(|_| self.rng.bool())),
            9 | 10 => {
                let saved = std::rc::Rc::new(self.primary.look_at(&from, save)?);
                let account = self.accounts[&from].clone();
                self.dumps.truncate(DUMPS_MAX - 1);
                self.dumps.insert(0, (saved, account));
                return None;
            }
            _ => {
                let at = self.rng.usize(..self.dumps.len().max(1));
                Order::Restore(to, self.dumps.get(at)?.0.clone())
            }
        };
        Some(order)
    }
}
