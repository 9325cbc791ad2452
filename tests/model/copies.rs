//! The ways in which a queue comes to be elsewhere: effects for a replica, records in a file.

use dq::queue::*;

use crate::subject::Outcome;

/// What a primary sends, as bytes.
pub enum Effect {
    Put { id: Vec<u8>, body: Vec<u8>, record: Vec<u8> },
    Lease(Vec<u8>),
    Finish(Vec<u8>),
    Delete(Vec<u8>),
}

/// What a command that came out so did to the queue; nothing, for many.
pub fn effect_of(outcome: &Outcome, queue: &Queue) -> Option<Effect> {
    match outcome {
        Outcome::Added { id, naming, .. } => {
            let job = queue.get(Id::new(id).unwrap()).unwrap();
            let record = JobRecord::of(&job, *naming).encode();
            Some(Effect::Put { id: id.clone(), body: job.body.to_vec(), record })
        }
        Outcome::HandedOut(Some(handed)) => {
            let end = Time::new(handed.end).unwrap();
            let id = Id::new(&handed.id).unwrap();
            let lease = LeaseRecord::new(id, Lease::new(handed.lease), end);
            Some(Effect::Lease(vec![lease].encode()))
        }
        Outcome::Finished(Some(id)) => Some(Effect::Finish(id.clone())),
        Outcome::Deleted(Some(id)) => Some(Effect::Delete(id.clone())),
        Outcome::HandedOut(None) | Outcome::Finished(None) | Outcome::Deleted(None) => None,
        Outcome::Taken | Outcome::Advanced => None,
    }
}

/// A replica does what its primary has done.
pub fn apply(effect: &Effect, replica: &mut Queue) {
    match effect {
        Effect::Put { id, body, record } => {
            let record = JobRecord::decode(record).unwrap();
            replica.put(id, body, &record).unwrap();
        }
        Effect::Lease(records) => {
            for record in Vec::<LeaseRecord>::decode(records).unwrap() {
                assert!(replica.lease(&record).unwrap().is_some(), "a lease of a job that isn't there");
            }
        }
        Effect::Finish(id) => assert!(replica.finish(Id::new(id).unwrap(), Claim::Latest)),
        Effect::Delete(id) => assert!(replica.delete(Id::new(id).unwrap())),
    }
}

/// Both hold the same jobs in the same order, and stand the same otherwise.
pub fn assert_same(one: &Queue, other: &Queue) {
    assert!(one.jobs().eq(other.jobs()), "jobs or their order");
    assert_eq!(one.record(), other.record());
    assert_eq!(one.last_lease(), other.last_lease());
}

/// A queue in a file: each job's id, body and record, then the queue's own record.
#[derive(Debug, PartialEq)]
pub struct File {
    jobs: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)>,
    queue: Vec<u8>,
}

pub fn save(queue: &Queue) -> File {
    let parts = |job: JobView| (job.id.bytes().to_vec(), job.body.to_vec(), job.record().encode());
    File { jobs: queue.jobs().map(parts).collect(), queue: queue.record().encode() }
}

pub fn load(file: &File, seed: (u64, u64)) -> Queue {
    let mut queue = Queue::new(seed);
    for (id, body, record) in &file.jobs {
        let record = JobRecord::decode(record).unwrap();
        queue.load(id, body, &record).unwrap();
        assert_eq!(queue.load(id, body, &record), Err(RecordError::TakenId));
    }
    queue.restore(&QueueRecord::decode(&file.queue).unwrap()).unwrap();
    queue
}
