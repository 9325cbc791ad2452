//! Which clients wait for what becomes of a job, or for a lease to become void, and at which keys.
//! No server in here, so that it can be tested.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use super::place::{Database, KeyRef, Ticket};
use crate::queue::{Lease, State, Time};

/// What all clients are told that wait for a job; empty until then.
pub type Told = Arc<OnceLock<Ended>>;

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// There is no such job.
    Gone,
    /// It is in this state, with its result or reason.
    In(State, Option<Box<[u8]>>),
}

/// A lease that a client watches, and the id of its job.
pub type Held = (Lease, Box<[u8]>);

/// What is looked at, when it may have changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The job with this id, for which clients wait.
    Job(Box<[u8]>),
    /// A lease, which this client watches.
    Lease(Lease, Ticket),
}

/// The clients that wait for a job.
#[derive(Default)]
struct OfJob {
    told: Told,
    tickets: BTreeSet<Ticket>,
    /// When the job dies, if no command changes it before.
    dies_at: Option<Time>,
}

/// A lease that a client watches.
struct OfLease {
    /// Its place among those of the client.
    place: usize,
    /// When the life of its job is over.
    expires_at: Option<Time>,
}

/// What is watched at a key.
#[derive(Default)]
struct AtKey {
    jobs: BTreeMap<Box<[u8]>, OfJob>,
    leases: BTreeMap<(Lease, Ticket), OfLease>,
    /// The clients that watch leases.
    holders: BTreeSet<Ticket>,
    /// How many clients wait for jobs.
    waiting: usize,
    /// When time alone changes something.
    looks: BTreeSet<(Time, Subject)>,
}

/// Every operation is O(log n) in the number of jobs and leases that are watched at the key.
#[derive(Default)]
pub struct Watchers {
    keys: BTreeMap<Database, BTreeMap<Box<[u8]>, AtKey>>,
}

impl Watchers {
    pub const NONE: Watchers = Watchers { keys: BTreeMap::new() };

    /// How many clients watch something at this key.
    pub fn len_at(&self, database: Database, key: &[u8]) -> usize {
        self.at(database, key).map_or(0, AtKey::len)
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The keys at which something is watched: all, or those of a database.
    pub fn places(&self, database: Option<Database>) -> Vec<KeyRef> {
        let is_wanted = |one: &Database| database.is_none_or(|wanted| wanted == *one);
        let databases = self.keys.iter().filter(|(one, _)| is_wanted(one));
        let place = |database: Database, key: &[u8]| (database, key.into());
        databases.flat_map(|(one, keys)| keys.keys().map(|key| place(*one, key))).collect()
    }

    /// A client waits for a job, which dies then. Returns where it finds what it is told.
    pub fn join_job(
        &mut self,
        (database, key): &KeyRef,
        id: &[u8],
        dies_at: Option<Time>,
        ticket: Ticket,
    ) -> Told {
        let at = self.at_or_new(*database, key);
        at.waiting += 1;
        at.set_death(id, dies_at);
        let of_job = at.jobs.entry(id.into()).or_default();
        of_job.tickets.insert(ticket);
        of_job.dies_at = dies_at;
        of_job.told.clone()
    }

    /// A client watches leases, each of a job whose life is over then.
    pub fn join_leases(
        &mut self,
        (database, key): &KeyRef,
        leases: impl Iterator<Item = (Lease, Option<Time>)>,
        ticket: Ticket,
    ) {
        let at = self.at_or_new(*database, key);
        at.holders.insert(ticket);
        for (place, (lease, expires_at)) in leases.enumerate() {
            at.leases.insert((lease, ticket), OfLease { place, expires_at });
            at.looks.extend(expires_at.map(|time| (time, Subject::Lease(lease, ticket))));
        }
    }

    pub fn leave_job(&mut self, (database, key): &KeyRef, id: &[u8], ticket: Ticket) {
        self.change(*database, key, |at| {
            let Some(of_job) = at.jobs.get_mut(id) else {
                return;
            };
            if of_job.tickets.remove(&ticket) {
                at.waiting -= 1;
            }
            if of_job.tickets.is_empty() {
                at.forget_job(id);
            }
        });
    }

    pub fn leave_leases(&mut self, (database, key): &KeyRef, held: &[Held], ticket: Ticket) {
        self.change(*database, key, |at| {
            if !at.holders.remove(&ticket) {
                return;
            }
            for (lease, _) in held {
                let of_lease = at.leases.remove(&(*lease, ticket));
                if let Some(time) = of_lease.and_then(|of_lease| of_lease.expires_at) {
                    at.looks.remove(&(time, Subject::Lease(*lease, ticket)));
                }
            }
        });
    }

    /// Whether a client waits for this job.
    pub fn is_awaited(&self, database: Database, key: &[u8], id: &[u8]) -> bool {
        self.at(database, key).is_some_and(|at| at.jobs.contains_key(id))
    }

    /// The clients that watch this lease.
    pub fn holders_of(&self, database: Database, key: &[u8], lease: Lease) -> Vec<Ticket> {
        let Some(at) = self.at(database, key) else {
            return Vec::new();
        };
        let leases = at.leases.range((lease, Ticket::MIN)..=(lease, Ticket::MAX));
        leases.map(|((_, ticket), _)| *ticket).collect()
    }

    /// The place of a lease among those that this client watches here.
    pub fn place_of(
        &self,
        (database, key): &KeyRef,
        lease: Lease,
        ticket: Ticket,
    ) -> Option<usize> {
        self.at(*database, key)?.leases.get(&(lease, ticket)).map(|of_lease| of_lease.place)
    }

    /// The job that clients wait for dies at another time.
    pub fn set_death(&mut self, database: Database, key: &[u8], id: &[u8], dies_at: Option<Time>) {
        self.change(database, key, |at| at.set_death(id, dies_at));
    }

    /// Tells all clients that wait for this job. They need not wait any longer: returns them.
    pub fn tell(
        &mut self,
        database: Database,
        key: &[u8],
        id: &[u8],
        ended: Ended,
    ) -> BTreeSet<Ticket> {
        let told = self.change(database, key, |at| at.forget_job(id));
        told.flatten().map_or(BTreeSet::new(), |of_job| of_job.tell(ended))
    }

    /// There is no queue at this key any more: tells all clients that wait for its jobs. Returns
    /// these, and those that watch leases.
    pub fn tell_all(
        &mut self,
        database: Database,
        key: &[u8],
    ) -> (BTreeSet<Ticket>, BTreeSet<Ticket>) {
        let at = self.change(database, key, std::mem::take).unwrap_or_default();
        let tell = |of_job: OfJob| of_job.tell(Ended::Gone);
        (at.jobs.into_values().flat_map(tell).collect(), at.holders)
    }

    /// When time alone next changes something that is watched at this key.
    pub fn next_look(&self, database: Database, key: &[u8]) -> Option<Time> {
        self.at(database, key)?.looks.first().map(|(time, _)| *time)
    }

    /// What time alone may have changed by now.
    pub fn take_due(&mut self, database: Database, key: &[u8], now: Time) -> Option<Subject> {
        let at = self.keys.get_mut(&database)?.get_mut(key)?;
        at.looks.first().filter(|(time, _)| *time <= now)?;
        let (_, subject) = at.looks.pop_first()?;
        Some(subject)
    }

    /// The next things that are watched at this key, at most `count`.
    pub fn behind(
        &self,
        database: Database,
        key: &[u8],
        last: Option<&Subject>,
        count: usize,
    ) -> Vec<Subject> {
        let Some(at) = self.at(database, key) else {
            return Vec::new();
        };
        let (after_job, after_lease) = match last {
            None => (Some(Bound::Unbounded), Bound::Unbounded),
            Some(Subject::Job(id)) => (Some(Bound::Excluded(id.clone())), Bound::Unbounded),
            Some(Subject::Lease(lease, ticket)) => (None, Bound::Excluded((*lease, *ticket))),
        };
        let jobs = after_job.map(|after| at.jobs.range((after, Bound::Unbounded)));
        let jobs = jobs.into_iter().flatten().map(|(id, _)| Subject::Job(id.clone()));
        let leases = at.leases.range((after_lease, Bound::Unbounded));
        let leases = leases.map(|((lease, ticket), _)| Subject::Lease(*lease, *ticket));
        jobs.chain(leases).take(count).collect()
    }

    fn at(&self, database: Database, key: &[u8]) -> Option<&AtKey> {
        self.keys.get(&database)?.get(key)
    }

    fn at_or_new(&mut self, database: Database, key: &[u8]) -> &mut AtKey {
        self.keys.entry(database).or_default().entry(key.into()).or_default()
    }

    /// Changes what is watched at a key, if anything is.
    fn change<R>(
        &mut self,
        database: Database,
        key: &[u8],
        change: impl FnOnce(&mut AtKey) -> R,
    ) -> Option<R> {
        let Entry::Occupied(mut keys) = self.keys.entry(database) else {
            return None;
        };
        let at = keys.get_mut().get_mut(key)?;
        let changed = change(at);
        if at.len() == 0 {
            keys.get_mut().remove(key);
        }
        if keys.get().is_empty() {
            keys.remove();
        }
        Some(changed)
    }
}

impl OfJob {
    fn tell(self, ended: Ended) -> BTreeSet<Ticket> {
        // It is the only time.
        drop(self.told.set(ended));
        self.tickets
    }
}

impl AtKey {
    fn len(&self) -> usize {
        self.waiting + self.holders.len()
    }

    fn set_death(&mut self, id: &[u8], dies_at: Option<Time>) {
        if let Some(of_job) = self.jobs.get_mut(id) {
            if let Some(before) = std::mem::replace(&mut of_job.dies_at, dies_at) {
                self.looks.remove(&(before, Subject::Job(id.into())));
            }
        }
        self.looks.extend(dies_at.map(|time| (time, Subject::Job(id.into()))));
    }

    fn forget_job(&mut self, id: &[u8]) -> Option<OfJob> {
        let of_job = self.jobs.remove(id)?;
        if let Some(time) = of_job.dies_at {
            self.looks.remove(&(time, Subject::Job(id.into())));
        }
        self.waiting -= of_job.tickets.len();
        Some(of_job)
    }
}
