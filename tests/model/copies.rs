//! The ways in which a queue comes to be elsewhere: effects for a replica, records in a file.

use dq::queue::*;

use crate::subject::{id, Outcome};

/// What a primary sends, as bytes.
pub enum Effect {
    Put { id: Vec<u8>, body: Vec<u8>, record: Vec<u8> },
    Lease(Vec<u8>),
    Move(Vec<u8>),
    Drop(Vec<u8>),
    Queue(Vec<u8>),
    Finish { id: Vec<u8>, lease: Option<u64> },
    Delete(Vec<u8>),
}

/// What a command that came out so did to the queue; nothing, for many.
pub fn effect_of(outcome: &Outcome, queue: &Queue) -> Option<Effect> {
    Some(match outcome {
        Outcome::Added { id: bytes, naming, .. } => {
            let job = queue.get(id(bytes)).unwrap();
            let record = JobRecord::of(&job, *naming).encode();
            Effect::Put { id: bytes.clone(), body: job.body.to_vec(), record }
        }
        Outcome::HandedOut(handed) => {
            let end = Time::new(handed.end).unwrap();
            let lease = LeaseRecord::new(id(&handed.id), Lease::new(handed.lease), end);
            Effect::Lease(vec![lease].encode())
        }
        Outcome::Moved(cause, ids) => {
            let job = |bytes: &Vec<u8>| queue.get(id(bytes)).unwrap();
            let moves: Vec<MoveRecord> = ids.iter().map(|bytes| job(bytes).move_record(*cause)).collect();
            Effect::Move(moves.encode())
        }
        Outcome::Purged(ids) | Outcome::Upkept { forgotten: ids, .. } => {
            Effect::Drop(DropRecord::new(Leave::Purged, ids.iter().map(|bytes| id(bytes))).encode())
        }
        Outcome::Set => Effect::Queue(queue.record().encode()),
        Outcome::Gone(id, lease) => Effect::Finish { id: id.clone(), lease: *lease },
        Outcome::Deleted(id) => Effect::Delete(id.clone()),
        Outcome::No | Outcome::Full | Outcome::Advanced => return None,
    })
}

/// A replica does what its primary has done, at whatever time.
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
        Effect::Move(records) => {
            for record in Vec::<MoveRecord>::decode(records).unwrap() {
                assert_eq!(replica.move_job(&record), Ok(true), "a move of a job that isn't there");
            }
        }
        Effect::Drop(record) => {
            replica.drop_jobs(&DropRecord::decode(record).unwrap()).unwrap();
        }
        Effect::Queue(record) => replica.restore(&QueueRecord::decode(record).unwrap()).unwrap(),
        Effect::Finish { id: bytes, lease } => {
            let claim = lease.map_or(Claim::Latest, |lease| Claim::Lease(Lease::new(lease)));
            assert_eq!(replica.finish(Time::ZERO, id(bytes), claim), Finished::Gone);
        }
        Effect::Delete(bytes) => assert!(replica.delete(id(bytes))),
    }
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
