//! Which clients wait for what becomes of a job, or for a lease to become void, and at which keys.
//! No server in here, so that it can be tested.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::queue::{Lease, State, Time};
use crate::services::key_ref::{Database, KeyRef, Ticket};

/// What all clients are told that wait for a job; empty until then.
pub type SharedOutcome = Arc<OnceLock<JobOutcome>>;

/// What became of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobOutcome {
    /// There is no such job.
    Gone,
    /// It is in this state, with its result or reason.
    In(State, Option<Box<[u8]>>),
}

impl JobOutcome {
    /// Of the result or reason.
    pub fn bytes(&self) -> usize {
        match self {
            JobOutcome::In(_, Some(what)) => what.len(),
            JobOutcome::In(_, None) | JobOutcome::Gone => 0,
        }
    }
}

/// A lease that clients watch, and the id of its job.
pub type WatchedLease = (Lease, Arc<[u8]>);

/// What is looked at, when it may have changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The job with this id, for which clients wait.
    Job(Box<[u8]>),
    Lease(WatchedLease),
}

/// The clients that wait for a job.
#[derive(Default)]
struct OfJob {
    told: SharedOutcome,
    tickets: BTreeSet<Ticket>,
    /// When the job dies, if no command changes it before.
    dies_at: Option<Time>,
}

/// A lease that clients watch. It is looked at once, however many they are.
#[derive(Default)]
struct OfLease {
    /// Sorted: a later client has a higher ticket.
    holders: Holders,
    /// When the life of its job is over.
    expires_at: Option<Time>,
}

/// Most leases are watched by one client.
type Holders = SmallVec<[Ticket; 2]>;

/// What is watched at a key.
#[derive(Default)]
struct AtKey {
    jobs: BTreeMap<Box<[u8]>, OfJob>,
    leases: BTreeMap<WatchedLease, OfLease>,
    /// The clients that watch leases.
    holders: BTreeSet<Ticket>,
    /// How many clients wait for jobs.
    waiting: usize,
    /// When time alone changes something.
    looks: BTreeSet<(Time, Subject)>,
}

/// What goes with leases times clients, and is done in steps.
enum Chore {
    /// A lease is void: these clients are to be unblocked.
    Tell(Holders),
    /// A queue has left its key: all that was watched there is over.
    Clear(Box<AtKey>),
    /// A client waits no longer: it watches none of these leases, up to the `left`th.
    Leave { key_ref: KeyRef, leases: Arc<[WatchedLease]>, left: usize, ticket: Ticket },
}

/// What a step of a chore came to.
pub enum Step {
    /// There is nothing to do.
    Idle,
    Quiet,
    /// A lease of this client is void.
    Void(Ticket),
    /// These clients waited for a job, and need not wait any longer.
    Over(BTreeSet<Ticket>),
}

type Keys = BTreeMap<Database, BTreeMap<Box<[u8]>, AtKey>>;

/// Every operation is O(log n) in the number of jobs and leases that are watched at the key; what
/// takes longer is left as a chore.
#[derive(Default)]
pub struct Watchers {
    keys: Keys,
    chores: VecDeque<Chore>,
}

impl Watchers {
    pub const NONE: Watchers = Watchers { keys: BTreeMap::new(), chores: VecDeque::new() };

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
        let key_ref = |database: Database, key: &[u8]| (database, key.into());
        databases.flat_map(|(one, keys)| keys.keys().map(|key| key_ref(*one, key))).collect()
    }

    /// A client waits for a job, which dies then. Returns where it finds what it is told.
    pub fn join_job(
        &mut self,
        (database, key): &KeyRef,
        id: &[u8],
        dies_at: Option<Time>,
        ticket: Ticket,
    ) -> SharedOutcome {
        let at = self.at_or_new(*database, key);
        at.waiting += 1;
        at.set_death(id, dies_at);
        let of_job = at.jobs.entry(id.into()).or_default();
        of_job.tickets.insert(ticket);
        of_job.dies_at = dies_at;
        of_job.told.clone()
    }

    /// A client watches leases, each of a job whose life is over then. O(log n) for each.
    pub fn join_leases(
        &mut self,
        (database, key): &KeyRef,
        leases: &[WatchedLease],
        expire_at: &[Option<Time>],
        ticket: Ticket,
    ) {
        let at = self.at_or_new(*database, key);
        at.holders.insert(ticket);
        for (lease, expires_at) in leases.iter().zip(expire_at) {
            let of_lease = at.leases.entry(lease.clone()).or_default();
            // It may have named a lease twice.
            if of_lease.holders.last() != Some(&ticket) {
                of_lease.holders.push(ticket);
            }
            of_lease.expires_at = *expires_at;
            at.looks.extend(expires_at.map(|time| (time, Subject::Lease(lease.clone()))));
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

    /// A client watches these leases no longer. O(log n), and a chore is left.
    pub fn leave_leases(&mut self, key_ref: &KeyRef, leases: &Arc<[WatchedLease]>, ticket: Ticket) {
        let (database, key) = key_ref;
        if self.change(*database, key, |at| at.holders.remove(&ticket)) == Some(true) {
            let (key_ref, leases, left) = (key_ref.clone(), leases.clone(), leases.len());
            self.chores.push_back(Chore::Leave { key_ref, leases, left, ticket });
        }
    }

    /// Whether a client waits for this job.
    pub fn is_awaited(&self, database: Database, key: &[u8], id: &[u8]) -> bool {
        self.at(database, key).is_some_and(|at| at.jobs.contains_key(id))
    }

    /// Whether a client watches this lease.
    pub fn is_watched(&self, database: Database, key: &[u8], lease: &WatchedLease) -> bool {
        self.at(database, key).is_some_and(|at| at.leases.contains_key(lease))
    }

    /// This lease is void: the clients that watch it are told by a chore.
    pub fn set_void(&mut self, database: Database, key: &[u8], lease: &WatchedLease) {
        let holders = self.change(database, key, |at| at.forget_lease(lease)).flatten();
        if let Some(mut holders) = holders {
            // They are taken from its end.
            holders.reverse();
            self.chores.push_front(Chore::Tell(holders));
        }
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
        ended: JobOutcome,
    ) -> BTreeSet<Ticket> {
        let told = self.change(database, key, |at| at.forget_job(id));
        told.flatten().map_or(BTreeSet::new(), |of_job| of_job.tell(ended))
    }

    /// There is no queue at this key any more: the clients that watch its jobs and leases are told by
    /// a chore.
    pub fn clear(&mut self, database: Database, key: &[u8]) {
        if let Some(at) = self.change(database, key, std::mem::take) {
            self.chores.push_back(Chore::Clear(Box::new(at)));
        }
    }

    pub fn has_chores(&self) -> bool {
        !self.chores.is_empty()
    }

    /// Does a step of the first chore: some tenths of a microsecond.
    pub fn step(&mut self) -> Step {
        let Some(chore) = self.chores.front_mut() else {
            return Step::Idle;
        };
        let step = match chore {
            Chore::Tell(holders) => holders.pop().map(Step::Void),
            Chore::Clear(at) => at.clear_one(),
            Chore::Leave { key_ref: (database, key), leases, left, ticket } => {
                let next = left.checked_sub(1);
                next.and_then(|next| leases.get(next)).map(|lease| {
                    *left -= 1;
                    change(&mut self.keys, *database, key, |at| at.leave_lease(lease, *ticket));
                    Step::Quiet
                })
            }
        };
        step.unwrap_or_else(|| {
            self.chores.pop_front();
            Step::Quiet
        })
    }

    /// When time alone next changes something that is watched at this key.
    pub fn next_check(&self, database: Database, key: &[u8]) -> Option<Time> {
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
            Some(Subject::Lease(lease)) => (None, Bound::Excluded(lease.clone())),
        };
        let jobs = after_job.map(|after| at.jobs.range((after, Bound::Unbounded)));
        let jobs = jobs.into_iter().flatten().map(|(id, _)| Subject::Job(id.clone()));
        let leases = at.leases.range((after_lease, Bound::Unbounded));
        let leases = leases.map(|(lease, _)| Subject::Lease(lease.clone()));
        jobs.chain(leases).take(count).collect()
    }

    fn at(&self, database: Database, key: &[u8]) -> Option<&AtKey> {
        self.keys.get(&database)?.get(key)
    }

    fn at_or_new(&mut self, database: Database, key: &[u8]) -> &mut AtKey {
        self.keys.entry(database).or_default().entry(key.into()).or_default()
    }

    fn change<R>(
        &mut self,
        database: Database,
        key: &[u8],
        work: impl FnOnce(&mut AtKey) -> R,
    ) -> Option<R> {
        change(&mut self.keys, database, key, work)
    }
}

/// Changes what is watched at a key, if anything is.
fn change<R>(
    keys: &mut Keys,
    database: Database,
    key: &[u8],
    work: impl FnOnce(&mut AtKey) -> R,
) -> Option<R> {
    let Entry::Occupied(mut keys) = keys.entry(database) else {
        return None;
    };
    let at = keys.get_mut().get_mut(key)?;
    let changed = work(at);
    if at.is_empty() {
        keys.get_mut().remove(key);
    }
    if keys.get().is_empty() {
        keys.remove();
    }
    Some(changed)
}

impl OfJob {
    fn tell(self, ended: JobOutcome) -> BTreeSet<Ticket> {
        // It is the only time.
        drop(self.told.set(ended));
        self.tickets
    }
}

impl AtKey {
    fn len(&self) -> usize {
        self.waiting + self.holders.len()
    }

    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.leases.is_empty() && self.holders.is_empty()
    }

    /// A step of what its clients are told, and of what is freed then; `None` once nothing is left.
    fn clear_one(&mut self) -> Option<Step> {
        if let Some((_, of_job)) = self.jobs.pop_first() {
            return Some(Step::Over(of_job.tell(JobOutcome::Gone)));
        }
        if let Some(ticket) = self.holders.pop_first() {
            return Some(Step::Void(ticket));
        }
        let is_one_freed = self.leases.pop_first().is_some() | self.looks.pop_first().is_some();
        is_one_freed.then_some(Step::Quiet)
    }

    fn forget_lease(&mut self, lease: &WatchedLease) -> Option<Holders> {
        let OfLease { holders, expires_at } = self.leases.remove(lease)?;
        if let Some(time) = expires_at {
            self.looks.remove(&(time, Subject::Lease(lease.clone())));
        }
        Some(holders)
    }

    fn leave_lease(&mut self, lease: &WatchedLease, ticket: Ticket) {
        let Some(of_lease) = self.leases.get_mut(lease) else {
            return;
        };
        if let Ok(at) = of_lease.holders.binary_search(&ticket) {
            of_lease.holders.remove(at);
        }
        if of_lease.holders.is_empty() {
            self.forget_lease(lease);
        }
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
