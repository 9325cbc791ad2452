//! What must be so at the end of each turn, and when all has come to rest.

use std::time::Duration;

use crate::queue::{self, EdgeState, JobView, Lease, Time};
use crate::services::host::Host;
use crate::services::key_ref::KeyRef;
use crate::services::keys::value::QueueValue;

use super::account::{Account, Job, Stage};
use super::edges::{Edge, End};
use super::operation::id;
use super::world::{Wait, World};

/// So much of the time that passes while a run of the timer asks how much has passed it may need
/// for what it has begun.
const STEPS_BEGUN: u32 = 64;
/// Of the alarm, as the services set it.
const NEXT_TURN: Duration = Duration::from_millis(1);
const UNTIL_WRITABLE: Duration = Duration::from_millis(10);
/// A step of the wall clock is noticed within this time while somebody waits.
const UNTIL_A_STEP_IS_NOTICED: Duration = Duration::from_millis(1_010);
/// So many runs of the timer may pass somebody by for whom there is a job: each has little time.
const RUNS_MAX: u32 = 200;
/// Jobs that have been kept long enough are removed within this time.
const FORGOTTEN_WITHIN_MS: u64 = 2_000;

impl World {
    pub fn judge_the_run(&mut self, took: Duration) {
        let nature = self.primary.nature;
        assert!(took <= nature.budget + nature.step * STEPS_BEGUN, "the timer took {took:?}");
        let (now, accounts) = (self.primary.wall_ms(), &self.accounts);
        let may_write = self.primary.may_replicate.get() && self.primary.is_primary.get();
        for wait in self.clients.iter_mut().filter_map(|client| client.wait.as_mut()) {
            let account = |place: &KeyRef| accounts.get(place);
            let has_something = |account: &Account| account.has_something(account.time_at(now));
            let is_passed_by = wait.places.iter().filter_map(account).any(has_something);
            let is_starved = is_passed_by && may_write && wait.delivered.is_none();
            wait.starved = if is_starved { wait.starved + 1 } else { 0 };
            assert!(wait.starved < RUNS_MAX, "nobody serves {:?}", wait.terms);
        }
    }

    pub fn inspect(&mut self) {
        for place in std::mem::take(&mut self.touched) {
            self.inspect_queue(&place);
            self.unsynced.insert(place);
        }
        if self.applied == self.log.len() {
            for place in std::mem::take(&mut self.unsynced) {
                self.inspect_replica(&place);
            }
        }
        self.inspect_sums();
        if self.primary.is_primary.get() {
            self.inspect_those_who_wait();
            self.inspect_deaths();
            self.inspect_what_is_owed();
        }
    }

    /// The queue holds what the account says.
    fn inspect_queue(&self, place: &KeyRef) {
        let account = self.accounts.get(place);
        let is_there = self.primary.look_at(place, |value| {
            let (queue, account) =
                (value.queue(), account.expect("there is a queue that nobody made"));
            for job in queue.jobs() {
                let name = || job.id.bytes().escape_ascii().to_string();
                let expected = account.job(job.id.bytes());
                let expected =
                    expected.unwrap_or_else(|| panic!("{} isn't in {account:?}", name()));
                assert!(is_same(&job, expected), "{job:?} is {expected:?}");
                inspect_edges(queue, expected);
            }
            assert_eq!(queue.len(), account.jobs.len(), "jobs of {account:?} are lost");
        });
        assert_eq!(is_there.is_some(), account.is_some(), "the queue at {place:?}");
    }

    /// Whoever has followed the log has the same.
    fn inspect_replica(&self, place: &KeyRef) {
        let there = self.replica.look_at(place, |_| ()).is_some();
        let same = self.primary.look_at(place, |value| {
            let theirs = self.replica.look_at(place, |other| {
                let (one, other) = (value.queue(), other.queue());
                let (record, others) =
                    (one.record().without_history(), other.record().without_history());
                assert_eq!(record, others, "the replica's queue at {place:?}");
                assert_eq!(
                    one.group_records(),
                    other.group_records(),
                    "the replica's groups at {place:?}"
                );
                assert!(one.jobs().eq(other.jobs()), "the replica's jobs at {place:?}");
                assert!(
                    one.edge_records().eq(other.edge_records()),
                    "the replica's edges at {place:?}"
                );
                assert_eq!(one.settles_at(), other.settles_at(), "deaths at {place:?}");
            });
            theirs.is_some()
        });
        assert_eq!(same.unwrap_or(false), there, "whether there is a queue at {place:?}");
        assert!(same != Some(false), "the replica has no queue at {place:?}");
    }

    fn inspect_sums(&self) {
        for node in [&self.primary, &self.replica] {
            let keys = node.keys.borrow();
            let jobs: usize = keys.values().flatten().map(|value| value.queue().len()).sum();
            let (queues, sum) = node.with(|state| {
                let sum: u64 = queue::State::ALL.iter().map(|one| state.sums.jobs(*one)).sum();
                (state.sums.queues(), sum)
            });
            assert_eq!((queues, sum), (keys.len() as u64, jobs as u64), "the sums over all queues");
        }
    }

    fn inspect_those_who_wait(&self) {
        let waits = self.clients.iter().filter_map(|client| client.wait.as_ref());
        let (blocked, known) =
            (self.primary.blocked_clients(), self.primary.with(|state| state.waiters.len()));
        let watching = self.clients.iter().filter(|client| client.watch.is_some()).count();
        let waiting = waits.clone().count() + watching;
        assert_eq!((blocked, known), (waiting, blocked), "those who wait");
        self.inspect_watchers();
        for wait in waits {
            match &wait.delivered {
                Some(_) => {
                    let ends = self.primary.turn_end.get().is_some();
                    assert!(
                        ends || self.rings_by(self.soon()),
                        "nobody tells {:?} of its jobs",
                        wait.terms
                    );
                }
                None => self.inspect_wait(wait),
            }
        }
    }

    /// The alarm comes when there is something for somebody who waits, or the wait is over.
    fn inspect_wait(&self, wait: &Wait) {
        if let Some(deadline) = wait.deadline {
            let limit = deadline.max(self.now() + NEXT_TURN) + self.slack();
            assert!(self.rings_by(limit), "nobody ends the wait of {:?}", wait.terms);
        }
        for account in wait.places.iter().filter_map(|place| self.accounts.get(place)) {
            if let Some(at) = self.served_at(account) {
                let limit = at.max(self.soon());
                let alarm = self.primary.alarm.get();
                assert!(
                    self.rings_by(limit),
                    "stuck: {:?}, {alarm:?}, not by {limit:?}, beside {account:?}",
                    wait.terms
                );
            }
        }
    }

    /// The alarm comes when a job dies of which others have to hear. The timer has yet to find a
    /// queue that has left its key; and after a step, the alarm is as it was.
    fn inspect_deaths(&self) {
        if self.stepped_at.is_some() {
            return;
        }
        for (place, account) in &self.accounts {
            let wall = self.primary.wall_ms();
            let is_unlocated = self.primary.look_at(place, QueueValue::is_unlocated) == Some(true);
            if is_unlocated {
                continue;
            }
            if let Some(at) = account.deaths_to_settle().map(|(_, at)| at).min() {
                let at = self.now() + Duration::from_millis(at.saturating_sub(wall));
                let limit = (at + self.slack()).max(self.soon());
                assert!(self.rings_by(limit), "stuck: a death is not settled in {account:?}");
            }
        }
    }

    /// When there is something in this queue, by the server's uptime.
    fn served_at(&self, account: &Account) -> Option<Duration> {
        let wall = self.primary.wall_ms();
        let now = account.time_at(wall);
        // A queue takes its own clock from the moment on in which the wall clock is only a minute
        // behind. A client that asks gets then what the timer delivers when the wall clock is there.
        if self.stepped_at.is_some() && account.clock > wall {
            return None;
        }
        if account.has_something(now) {
            return Some(self.now());
        }
        let next = account.next_ready(now)?;
        Some(self.now() + Duration::from_millis(next.saturating_sub(wall)) + self.slack())
    }

    pub fn slack(&self) -> Duration {
        self.primary.nature.step * STEPS_BEGUN + Duration::from_nanos(1)
    }

    /// When the timer has to come for what is to be done at once.
    pub fn soon(&self) -> Duration {
        let stepped = self.stepped_at.map(|at| at + UNTIL_A_STEP_IS_NOTICED).unwrap_or_default();
        let at_once = if self.primary.may_replicate.get() {
            (self.now() + NEXT_TURN).max(self.writable_since + UNTIL_WRITABLE)
        } else {
            self.now() + UNTIL_WRITABLE
        };
        at_once.max(stepped) + self.slack()
    }

    pub fn rings_by(&self, limit: Duration) -> bool {
        self.primary.alarm.get().is_some_and(|alarm| alarm <= limit)
    }

    /// What was on its way to somebody who has gone away is on its way back.
    fn inspect_what_is_owed(&mut self) {
        self.forget_what_is_not_owed();
        for owed in &self.owed {
            assert!(self.rings_by(self.soon()), "nobody gives back {owed:?}");
        }
    }

    pub fn inspect_everything(&mut self) {
        let places = self.accounts.keys().cloned();
        let there: Vec<KeyRef> = self.primary.keys.borrow().keys().cloned().collect();
        self.touched.extend(places.chain(there));
        self.inspect();
        // After a step, they are as they were until the timer comes.
        if self.stepped_at.is_some() {
            return;
        }
        let keys = self.primary.keys.borrow();
        for state in queue::State::ALL {
            let counts = keys.values().flatten().map(|value| value.queue().counts().of(state));
            let sum: usize = counts.sum();
            assert_eq!(
                self.primary.with(|all| all.sums.jobs(state)),
                sum as u64,
                "jobs that are {state:?}"
            );
        }
    }

    /// Nothing is kept for longer than it is to be, and no death is left unsettled.
    pub fn inspect_the_forgotten(&self) {
        if self.stepped_at.is_some() {
            return;
        }
        for account in self.accounts.values() {
            let now = account.time_at(self.primary.wall_ms());
            let at = |job: &Job| account.is_to_be_forgotten_at(job);
            let is_over = |job: &&Job| at(job).is_some_and(|at| at + FORGOTTEN_WITHIN_MS < now);
            let kept = account.jobs.iter().find(is_over);
            assert!(kept.is_none(), "{kept:?} is kept at {now}");
            let is_over = |(_, at): &(&Job, u64)| at + FORGOTTEN_WITHIN_MS < now;
            let dead = account.deaths_to_settle().find(is_over);
            assert!(dead.is_none(), "{dead:?} isn't settled at {now}");
        }
    }

    /// What may leave a queue with a sink has left it.
    pub fn inspect_the_poured(&self) {
        if self.stepped_at.is_some() {
            return;
        }
        for account in self.accounts.values().filter(|account| account.sink.is_some()) {
            let now = account.time_at(self.primary.wall_ms());
            assert!(!account.has_something(now), "stuck beside a sink: {account:?}");
        }
    }

    /// After everybody has gone, and everything.
    pub fn inspect_what_is_left(&self) {
        for (node, name) in [(&self.primary, "primary"), (&self.replica, "replica")] {
            node.with(|state| {
                assert!(state.waiters.holds_nothing(), "the lines of the {name} hold somebody");
                assert!(state.to_serve.is_empty(), "the {name} is to serve {:?}", state.to_serve);
                assert!(
                    state.to_unblock.is_empty(),
                    "the {name} is to unblock {:?}",
                    state.to_unblock
                );
                assert!(state.undelivered.is_empty(), "leases are to be given back");
                assert_eq!(state.hints.len(), 0, "hints of queues that are gone");
                assert_eq!(state.sums.queues(), 0, "sums of queues that are gone");
                assert!(!state.sums.is_any_unlocated(), "a queue that is gone is unlocated");
            });
            assert_eq!(node.blocked_clients(), 0);
        }
    }
}

/// A job waits for what the account says, and each edge was settled in the way that it says.
fn inspect_edges(queue: &queue::Queue, expected: &Job) {
    let (edges, _) = queue.edges_to(id(&expected.new.id), 0, usize::MAX, queue.horizon());
    let seen = edges.iter().map(|edge| {
        let end = match edge.state {
            EdgeState::Is(_) => None,
            EdgeState::Was(queue::EndKind::Done) => Some(End::Done(edge.what.map(Vec::from))),
            EdgeState::Was(queue::EndKind::Dead) => Some(End::Dead),
            EdgeState::Was(queue::EndKind::Gone) => Some(End::Gone),
        };
        Edge { from: edge.id.bytes().to_vec(), end }
    });
    assert_eq!(seen.collect::<Vec<_>>(), expected.edges, "the edges of {expected:?}");
    let counts = queue.edge_counts(id(&expected.new.id)).unwrap_or_default();
    assert_eq!(counts.is_on_hold, expected.is_on_hold, "the hold of {expected:?}");
}

fn is_same(job: &JobView, expected: &Job) -> bool {
    let stage = match job.progress.stage {
        queue::Stage::Waiting => Stage::Waiting,
        queue::Stage::Leased => Stage::Leased,
        queue::Stage::Dead => Stage::Dead,
        queue::Stage::Done => Stage::Done,
        queue::Stage::Held => Stage::Held,
    };
    (stage, job.time.unix_ms(), job.created.unix_ms())
        == (expected.stage, expected.time, expected.created)
        && (job.progress.attempt, job.progress.lease.map(Lease::number))
            == (expected.attempt, expected.lease)
        && job.progress.expires_at.map(Time::unix_ms) == expected.expires_at
        && (job.body, job.policy.priority) == (&expected.new.body[..], expected.new.priority)
        && job.group.map(|group| group.bytes().to_vec()) == expected.new.group
        && (job.note, job.result) == (expected.note.as_deref(), expected.result.as_deref())
}
