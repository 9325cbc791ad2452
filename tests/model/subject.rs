//! The queue under test: commands in, outcomes out, in the terms of the reference.

use std::collections::HashMap;

use dq::queue::*;

use crate::reference::{self, Handed, Reference};
use crate::told::{self, Command};

type Bytes = Vec<u8>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, for whatever reason.
    No,
    Added {
        id: Bytes,
        naming: Naming,
        due: u64,
        replaced: bool,
    },
    Full,
    HandedOut(Handed),
    /// By which lease.
    Gone(Bytes, Option<u64>),
    Moved(Cause, Vec<Bytes>),
    Deleted(Bytes),
    Purged(Vec<Bytes>),
    Upkept {
        forgotten: Vec<Bytes>,
        next: Option<u64>,
    },
    Set,
    Advanced,
}

/// A queue, and what it handed out.
#[derive(Clone)]
pub struct Subject {
    pub queue: Queue,
    handouts: HashMap<u64, Handout>,
}

pub fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

pub fn millis(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

pub fn id(bytes: &[u8]) -> Id<'_> {
    Id::new(bytes).unwrap()
}

fn claim(lease: Option<u64>) -> Claim {
    lease.map_or(Claim::Latest, |lease| Claim::Lease(Lease::new(lease)))
}

/// More than any of these queues has.
const ALL: usize = 1_000_000;

impl Subject {
    pub fn new(queue: Queue) -> Subject {
        Subject { queue, handouts: HashMap::new() }
    }

    /// The same jobs in another queue.
    pub fn with_queue(&self, queue: Queue) -> Subject {
        Subject { queue, handouts: self.handouts.clone() }
    }

    pub fn run(&mut self, clock: u64, command: &Command) -> Outcome {
        let now = at(clock);
        let queue = &mut self.queue;
        match command {
            Command::Add { told, is_named, replaces } => add(queue, now, told, *is_named, *replaces),
            Command::Pop { ttr, floor } => self.pop(now, *ttr, *floor),
            Command::Finish { id: bytes, lease } => match queue.finish(now, id(bytes), claim(*lease)) {
                Finished::No => Outcome::No,
                Finished::Gone => Outcome::Gone(bytes.clone(), *lease),
                Finished::Kept(slot) => moved(queue, Cause::Finished, Some(slot)),
            },
            Command::Release { id: bytes, lease, unbegun: true, reason, .. } => {
                let slot = queue.release_unbegun(now, id(bytes), claim(*lease), reason.as_deref());
                moved(queue, Cause::Released, slot)
            }
            Command::Release { id: bytes, lease, delay, reason, .. } => {
                let delay = delay.map(millis);
                let slot = queue.release(now, id(bytes), claim(*lease), delay, reason.as_deref());
                moved(queue, Cause::Released, slot)
            }
            Command::Touch { id: bytes, lease, ttr } => {
                let slot = queue.touch(now, id(bytes), claim(*lease), ttr.map(millis));
                moved(queue, Cause::Touched, slot)
            }
            Command::Bury { id: bytes, lease, reason } => {
                let slot = queue.bury(now, id(bytes), claim(*lease), reason.as_deref());
                moved(queue, Cause::Buried, slot)
            }
            Command::GiveBack { id: bytes, lease } => {
                let slot = queue.give_back(id(bytes), &self.handouts[lease]);
                moved(queue, Cause::Returned, slot)
            }
            Command::Delete { id: bytes } if queue.delete(id(bytes)) => Outcome::Deleted(bytes.clone()),
            Command::Delete { .. } => Outcome::No,
            Command::Kick { at_most } => {
                let slots = queue.kick(now, *at_most);
                moved(queue, Cause::Kicked, slots)
            }
            Command::KickJob { id: bytes } => {
                let slot = queue.kick_job(now, id(bytes));
                moved(queue, Cause::Kicked, slot)
            }
            Command::Purge { state, older, at_most } => {
                let now = queue.advance(now);
                let slots = queue.to_purge(now, *state, millis(*older), *at_most);
                Outcome::Purged(purged(queue, &slots))
            }
            Command::Pause { until } => {
                queue.pause(at(*until));
                Outcome::Set
            }
            Command::Alter(settings) => {
                queue.alter(settings_of(settings));
                Outcome::Set
            }
            Command::Advance => {
                queue.advance(now);
                Outcome::Advanced
            }
            Command::BuryOverdue { at_most } => {
                queue.bury_the_overdue(*at_most);
                Outcome::Advanced
            }
            Command::Upkeep => upkeep(queue, now),
        }
    }

    /// Does what another queue did where it was free to choose among jobs of one time.
    pub fn follow(&mut self, clock: u64, command: &Command, outcome: &Outcome) {
        let queue = &mut self.queue;
        match (command, outcome) {
            (Command::Kick { .. }, Outcome::Moved(_, ids)) => {
                ids.iter().for_each(|bytes| assert!(queue.kick_job(at(clock), id(bytes)).is_some()));
            }
            (Command::Purge { .. }, Outcome::Purged(ids)) => {
                queue.advance(at(clock));
                let record = DropRecord::new(Leave::Purged, ids.iter().map(|bytes| id(bytes)));
                assert_eq!(queue.drop_jobs(&record), Ok(ids.len()));
            }
            _ => assert_eq!(self.run(clock, command), *outcome),
        }
    }

    fn pop(&mut self, now: Time, ttr: Option<u64>, floor: u64) -> Outcome {
        let Some(handout) = self.queue.pop(now, ttr.map(millis), Lease::new(floor)) else {
            return Outcome::No;
        };
        let job = self.queue.view(handout.slot).unwrap();
        assert_eq!(self.queue.id_and_body(handout.slot), Some((job.id, job.body)));
        self.handouts.insert(handout.lease.number(), handout);
        Outcome::HandedOut(Handed {
            id: job.id.bytes().to_vec(),
            body: job.body.to_vec(),
            lease: handout.lease.number(),
            attempt: handout.attempt,
            end: handout.end.unix_ms(),
            due: handout.due.unix_ms(),
        })
    }
}

fn add(queue: &mut Queue, now: Time, told: &told::Told, is_named: bool, replaces: bool) -> Outcome {
    let (bytes, naming) = if is_named {
        (told.id.clone(), Naming::Given)
    } else {
        (queue.next_id(now).into_bytes(), Naming::ByQueue)
    };
    let due = match told.due {
        told::Due::In(delay) => Due::In(millis(delay)),
        told::Due::At(time) => Due::At(at(time)),
    };
    let policy = policy_of(&told.policy);
    let job = NewJob { id: id(&bytes), body: &told.body, due, policy, naming };
    let if_taken = if replaces { IfTaken::Replace } else { IfTaken::Refuse };
    let added =
        |due: Time, replaced| Outcome::Added { id: bytes.clone(), naming, due: due.unix_ms(), replaced };
    match queue.add(now, &job, if_taken) {
        Added::New(due) => added(due, false),
        Added::Replaced(due) => added(due, true),
        Added::Taken => Outcome::No,
        Added::Full => Outcome::Full,
    }
}

fn policy_of(policy: &told::Policy) -> Policy {
    Policy {
        ttr: millis(policy.ttr),
        attempts: Attempts::new(policy.attempts),
        priority: policy.priority,
        backoff: Backoff { base: millis(policy.backoff_base), max: millis(policy.backoff_max) },
        ttl: millis(policy.ttl),
        keep: millis(policy.keep),
    }
}

fn settings_of(settings: &told::Settings) -> Settings {
    Settings {
        max_jobs: std::num::NonZeroU64::new(settings.max_jobs),
        dead_keep: millis(settings.dead_keep),
        ..Settings::default()
    }
}

fn ids_of(queue: &Queue, slots: &[Slot]) -> Vec<Bytes> {
    queue.ids_of(slots).into_iter().map(Vec::from).collect()
}

fn moved(queue: &Queue, cause: Cause, slots: impl IntoIterator<Item = Slot>) -> Outcome {
    let slots: Vec<Slot> = slots.into_iter().collect();
    moved_ids(cause, ids_of(queue, &slots))
}

fn moved_ids(cause: Cause, ids: Vec<Bytes>) -> Outcome {
    if ids.is_empty() {
        Outcome::No
    } else {
        Outcome::Moved(cause, ids)
    }
}

fn purged(queue: &mut Queue, slots: &[Slot]) -> Vec<Bytes> {
    let ids = ids_of(queue, slots);
    assert_eq!(ids.len(), slots.len());
    queue.purge(slots);
    ids
}

fn upkeep(queue: &mut Queue, now: Time) -> Outcome {
    let now = queue.advance(now);
    assert!(queue.bury_the_overdue(ALL));
    let slots = queue.to_forget(now, ALL);
    let mut forgotten = purged(queue, &slots);
    forgotten.sort();
    assert!(queue.to_forget(now, ALL).is_empty());
    Outcome::Upkept { forgotten, next: queue.next_upkeep().map(Time::unix_ms) }
}

/// Carries a command out on the reference, which lets the queue choose where it may.
pub fn run_reference(reference: &mut Reference, now: u64, command: &Command, outcome: &Outcome) -> Outcome {
    let moved = |is_moved: bool, cause, id: &Bytes| {
        moved_ids(cause, is_moved.then(|| id.clone()).into_iter().collect())
    };
    match command {
        Command::Add { told, is_named, replaces } => {
            add_to_reference(reference, now, told, (*is_named, *replaces), outcome)
        }
        Command::Pop { ttr, floor } => {
            reference.pop(now, *ttr, *floor).map_or(Outcome::No, Outcome::HandedOut)
        }
        Command::Finish { id, lease } => match reference.finish(now, id, *lease) {
            reference::Finished::No => Outcome::No,
            reference::Finished::Gone => Outcome::Gone(id.clone(), *lease),
            reference::Finished::Kept => moved(true, Cause::Finished, id),
        },
        Command::Release { id, lease, unbegun: true, reason, .. } => {
            let released = reference.release_unbegun(now, id, *lease, reason.as_deref());
            moved(released, Cause::Released, id)
        }
        Command::Release { id, lease, delay, reason, .. } => {
            moved(reference.release(now, (id, *lease), *delay, reason.as_deref()), Cause::Released, id)
        }
        Command::Touch { id, lease, ttr } => {
            moved(reference.touch(now, id, *lease, *ttr), Cause::Touched, id)
        }
        Command::Bury { id, lease, reason } => {
            moved(reference.bury(now, id, *lease, reason.as_deref()), Cause::Buried, id)
        }
        Command::GiveBack { id, lease } => moved(reference.give_back(id, *lease), Cause::Returned, id),
        Command::Delete { id } if reference.delete(id) => Outcome::Deleted(id.clone()),
        Command::Delete { .. } => Outcome::No,
        Command::Kick { at_most } => {
            reference.advance(now);
            let kicked = match outcome {
                Outcome::Moved(_, ids) => ids.clone(),
                _ => Vec::new(),
            };
            assert!(reference.are_the_first(&kicked, State::Dead, 0, *at_most), "{kicked:?}");
            reference.kick(now, &kicked);
            moved_ids(Cause::Kicked, kicked)
        }
        Command::KickJob { id } => moved(reference.kick_job(now, id), Cause::Kicked, id),
        Command::Purge { state, older, at_most } => {
            reference.advance(now);
            if let Outcome::Purged(ids) = outcome {
                assert!(reference.are_the_first(ids, *state, *older, *at_most), "{ids:?}");
                reference.purge(ids);
            }
            outcome.clone()
        }
        Command::Pause { until } => {
            reference.paused_until = *until;
            Outcome::Set
        }
        Command::Alter(settings) => {
            reference.settings = *settings;
            Outcome::Set
        }
        Command::Advance => {
            reference.advance(now);
            Outcome::Advanced
        }
        Command::BuryOverdue { .. } => Outcome::Advanced,
        Command::Upkeep => {
            reference.advance(now);
            let mut forgotten = reference.to_forget();
            forgotten.sort();
            reference.purge(&forgotten);
            Outcome::Upkept { forgotten, next: reference.next_upkeep() }
        }
    }
}

fn add_to_reference(
    reference: &mut Reference,
    now: u64,
    told: &told::Told,
    (is_named, replaces): (bool, bool),
    outcome: &Outcome,
) -> Outcome {
    let mut told = told.clone();
    let mut naming = Naming::Given;
    if let (false, Outcome::Added { id, .. }) = (is_named, outcome) {
        reference.check_made_id(now, id);
        naming = Naming::ByQueue;
        told.id = id.clone();
    }
    match reference.add(now, &told, replaces) {
        reference::Added::New(due) => Outcome::Added { id: told.id, naming, due, replaced: false },
        reference::Added::Replaced(due) => Outcome::Added { id: told.id, naming, due, replaced: true },
        reference::Added::Taken => Outcome::No,
        reference::Added::Full => Outcome::Full,
    }
}
