//! The queue under test: commands in, outcomes out, in the terms of the reference.

use dq::queue::*;

use crate::operation::{given_ids, Command};
use crate::reference::{self, Handed, Reference};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Added { id: Vec<u8>, naming: Naming, due: u64 },
    Taken,
    HandedOut(Option<Handed>),
    Finished(Option<Vec<u8>>),
    Deleted(Option<Vec<u8>>),
    Advanced,
}

pub fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn id(bytes: &[u8]) -> Id<'_> {
    Id::new(bytes).unwrap()
}

/// Carries a command out on the queue.
pub fn run(queue: &mut Queue, now: u64, command: &Command) -> Outcome {
    match command {
        Command::Add { told, is_named, replaces } => add(queue, now, told, *is_named, *replaces),
        Command::Pop { ttr, floor } => {
            let ttr = ttr.map(|ttr| Millis::new(ttr).unwrap());
            let handout = queue.pop(at(now), ttr, Lease::new(*floor));
            Outcome::HandedOut(handout.map(|handout| handed(queue, &handout)))
        }
        Command::Finish { id: bytes, lease } => {
            let claim = lease.map_or(Claim::Latest, |lease| Claim::Lease(Lease::new(lease)));
            Outcome::Finished(queue.finish(id(bytes), claim).then(|| bytes.clone()))
        }
        Command::Delete { id: bytes } => Outcome::Deleted(queue.delete(id(bytes)).then(|| bytes.clone())),
        Command::Advance => {
            queue.advance(at(now));
            Outcome::Advanced
        }
    }
}

fn add(queue: &mut Queue, now: u64, told: &reference::Told, is_named: bool, replaces: bool) -> Outcome {
    let (bytes, naming) = if is_named {
        (told.id.clone(), Naming::Given)
    } else {
        (queue.next_id(at(now)).into_bytes(), Naming::ByQueue)
    };
    let due = match told.due {
        reference::Due::In(delay) => Due::In(Millis::new(delay).unwrap()),
        reference::Due::At(time) => Due::At(at(time)),
    };
    let policy = Policy {
        ttr: Millis::new(told.ttr).unwrap(),
        attempts: Attempts::new(told.attempts),
        priority: told.priority,
    };
    let job = NewJob { id: id(&bytes), body: &told.body, due, policy, naming };
    let was_taken = queue.get(job.id).is_some();
    let if_taken = if replaces { IfTaken::Replace } else { IfTaken::Refuse };
    match queue.add(at(now), &job, if_taken) {
        Added::New(due) => {
            assert!(!was_taken);
            Outcome::Added { id: bytes, naming, due: due.unix_ms() }
        }
        Added::Replaced(due) => {
            assert!(was_taken && replaces);
            Outcome::Added { id: bytes, naming, due: due.unix_ms() }
        }
        Added::Taken => Outcome::Taken,
        Added::Full => panic!("a queue of a few jobs is full"),
    }
}

fn handed(queue: &Queue, handout: &Handout) -> Handed {
    let job = queue.view(handout.slot).unwrap();
    assert_eq!(queue.id_and_body(handout.slot), Some((job.id, job.body)));
    Handed {
        id: job.id.bytes().to_vec(),
        body: job.body.to_vec(),
        lease: handout.lease.number(),
        attempt: handout.attempt,
        end: handout.end.unix_ms(),
    }
}

/// Carries a command out on the reference, in which the id is the one that the queue has made.
pub fn run_reference(reference: &mut Reference, now: u64, command: &Command, outcome: &Outcome) -> Outcome {
    match command {
        Command::Add { told, is_named, replaces } => {
            let mut told = told.clone();
            let mut naming = Naming::Given;
            if let (false, Outcome::Added { id, .. }) = (*is_named, outcome) {
                reference.check_made_id(now, id);
                naming = Naming::ByQueue;
                told.id = id.clone();
            }
            match reference.add(now, &told, *replaces) {
                Some(due) => Outcome::Added { id: told.id, naming, due },
                None => Outcome::Taken,
            }
        }
        Command::Pop { ttr, floor } => Outcome::HandedOut(reference.pop(now, *ttr, *floor)),
        Command::Finish { id, lease } => Outcome::Finished(reference.finish(id, *lease).then(|| id.clone())),
        Command::Delete { id } => Outcome::Deleted(reference.delete(id).then(|| id.clone())),
        Command::Advance => {
            reference.advance(now);
            Outcome::Advanced
        }
    }
}

/// The queue stands as the reference does, wherever one looks.
pub fn compare(queue: &Queue, reference: &Reference) {
    assert_eq!(queue.counts(), reference.counts(), "counts");
    assert_eq!(queue.next_change(), reference.next_change().map(at), "next change");
    assert_eq!(queue.len(), reference.jobs.len(), "len");
    assert_eq!(queue.last_lease().map_or(0, Lease::number), reference.last_lease, "last lease");
    assert_eq!(*queue.totals(), reference.totals, "totals");
    let expected = reference.in_order();
    assert!(queue.jobs().map(|job| job.id.bytes()).eq(expected.iter().map(|job| &job.id[..])), "order");
    for (job, expected) in queue.jobs().zip(expected) {
        check_job(&job, expected, reference.now);
        assert_eq!(queue.get(job.id), Some(job));
    }
    for bytes in given_ids() {
        assert_eq!(queue.get(id(&bytes)).is_some(), reference.get(&bytes).is_some());
    }
}

fn check_job(job: &JobView, expected: &reference::Job, now: u64) {
    let seen = reference::Job {
        id: job.id.bytes().to_vec(),
        body: job.body.to_vec(),
        created: job.created.unix_ms(),
        ttr: job.policy.ttr.as_u64(),
        attempts: job.policy.attempts.limit(),
        priority: job.policy.priority,
        attempt: job.delivery.map_or(0, |delivery| delivery.attempt),
        lease: job.delivery.map(|delivery| delivery.lease.number()),
        time: job.time.unix_ms(),
        // The order is compared as such.
        order: expected.order,
    };
    assert_eq!(seen, *expected);
    assert_eq!(job.state(at(now)), expected.state(now));
}

/// What must be so in any queue, however it came about: the sums add up, and what is seen from one side is
/// seen from the other.
pub fn check_sums(queue: &mut Queue) {
    let now = queue.advance(Time::ZERO);
    let mut counts = Counts::default();
    for job in queue.jobs() {
        assert_eq!(queue.get(job.id), Some(job));
        *match job.state(now) {
            State::Delayed => &mut counts.delayed,
            State::Ready => &mut counts.ready,
            State::Reserved => &mut counts.reserved,
            State::Dead => &mut counts.dead,
        } += 1;
    }
    assert_eq!(queue.counts(), counts);
    assert_eq!(queue.len(), queue.jobs().count());
    assert_eq!(queue.next_change(), queue.jobs().map(|job| job.time).filter(|time| *time > now).min());
}
