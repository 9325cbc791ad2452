//! Records that nobody of good will would send.

use dq::queue::*;
use proptest::prelude::*;

use crate::subject::check_sums;

/// The bytes of a record: anything, or fields that have the right types and any values, or those with a
/// byte changed.
#[derive(Clone)]
pub struct Blob(Vec<u8>);

/// Readable, in what a failing test prints.
impl std::fmt::Debug for Blob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

#[derive(Clone, Debug)]
pub enum Step {
    Put {
        id: Blob,
        record: Blob,
    },
    Load {
        id: Blob,
        record: Blob,
    },
    Lease(Blob),
    Restore(Blob),
    /// And what users do in between.
    Advance(u64),
    Pop {
        ttr: Option<u64>,
        floor: u64,
    },
    Finish {
        id: Blob,
        lease: u64,
    },
    Delete {
        id: Blob,
    },
    AddByQueue {
        due: u64,
    },
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        10 => 0..6u64,
        2 => any::<u64>(),
        4 => (0..64u32, 0..3u64).prop_map(|(bits, less)| (1u64 << bits).wrapping_sub(less)),
        1 => Just(u64::MAX),
    ]
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..20u64, 1 => number()]
}

fn id() -> impl Strategy<Value = Blob> {
    let like_of_queue = (time(), number()).prop_map(|(time, n)| format!("{time}-{n}").into_bytes());
    prop_oneof![
        12 => (b'a'..b'f').prop_map(|letter| vec![letter]),
        4 => like_of_queue,
        1 => Just(Vec::new()),
        1 => (511..515usize).prop_map(|len| vec![0; len]),
    ]
    .prop_map(Blob)
}

fn blob(fields: impl Strategy<Value = Vec<u8>> + 'static) -> impl Strategy<Value = Blob> {
    let fields = fields.boxed();
    let changed = (fields.clone(), any::<prop::sample::Index>(), any::<u8>());
    let changed = changed.prop_map(|(mut bytes, place, byte)| {
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes
    });
    let any_bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![12 => fields, 2 => changed, 1 => any_bytes].prop_map(Blob)
}

fn bytes_of(value: impl serde::Serialize) -> Vec<u8> {
    rmp_serde::to_vec(&value).unwrap()
}

fn job_record() -> impl Strategy<Value = Blob> {
    let ttr = prop_oneof![8 => 1..9u64, 1 => number()];
    let attempts = prop_oneof![8 => 0..4u32, 1 => any::<u32>()];
    let attempt = prop_oneof![8 => 0..4u32, 1 => Just(u32::MAX)];
    let times = (time(), time(), ttr);
    let rest = (attempts, any::<u8>(), attempt, number(), 0..3u8, any::<bool>());
    blob((times, rest).prop_map(
        |((time, created, ttr), (attempts, priority, attempt, lease, stage, named))| {
            // Half of the jobs were never handed out, as most are.
            let (attempt, lease, stage) = if priority % 2 == 0 { (0, 0, 0) } else { (attempt, lease, stage) };
            bytes_of((time, created, ttr, attempts, priority, attempt, lease, stage, named))
        },
    ))
}

fn lease_records() -> impl Strategy<Value = Blob> {
    let id = id().prop_map(|id| serde_bytes::ByteBuf::from(id.0));
    blob(prop::collection::vec((id, number(), time()), 0..4).prop_map(bytes_of))
}

fn queue_record() -> impl Strategy<Value = Blob> {
    let totals = prop::array::uniform6(prop_oneof![9 => 0..9u64, 1 => number()]);
    blob((number(), time(), number(), totals).prop_map(bytes_of))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (id(), job_record()).prop_map(|(id, record)| Step::Put { id, record }),
        3 => (id(), job_record()).prop_map(|(id, record)| Step::Load { id, record }),
        4 => lease_records().prop_map(Step::Lease),
        1 => queue_record().prop_map(Step::Restore),
        3 => time().prop_map(Step::Advance),
        4 => (prop::option::of(1..9u64), number()).prop_map(|(ttr, floor)| Step::Pop { ttr, floor }),
        2 => (id(), number()).prop_map(|(id, lease)| Step::Finish { id, lease }),
        1 => id().prop_map(|id| Step::Delete { id }),
        2 => time().prop_map(|due| Step::AddByQueue { due }),
    ]
}

pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec(step(), 1..40)
}

/// Plays a step. What is refused must have changed nothing.
pub fn play(queue: &mut Queue, step: &Step) {
    let before = queue.clone();
    let result = match step {
        Step::Put { id, record } => {
            JobRecord::decode(&record.0).and_then(|record| queue.put(&id.0, b"body", &record).map(drop))
        }
        Step::Load { id, record } => {
            JobRecord::decode(&record.0).and_then(|record| queue.load(&id.0, b"body", &record).map(drop))
        }
        Step::Lease(records) => return lease_all(queue, &records.0),
        Step::Restore(record) => QueueRecord::decode(&record.0).and_then(|record| queue.restore(&record)),
        of_users => {
            play_of_users(queue, of_users);
            Ok(())
        }
    };
    if result.is_err() {
        assert!(queue.jobs().eq(before.jobs()));
        assert_eq!(queue.record(), before.record());
    }
    check_sums(queue);
}

fn lease_all(queue: &mut Queue, bytes: &[u8]) {
    for record in Vec::<LeaseRecord>::decode(bytes).unwrap_or_default() {
        let before = queue.record();
        if queue.lease(&record).is_err() {
            assert_eq!(queue.record(), before);
        }
        check_sums(queue);
    }
}

fn play_of_users(queue: &mut Queue, step: &Step) {
    let now = queue.advance(Time::ZERO);
    match step {
        Step::Advance(time) => {
            queue.advance(Time::new(*time).unwrap_or(Time::MAX));
        }
        Step::Pop { ttr, floor } => {
            let ttr = ttr.and_then(Millis::new);
            let ready = queue.counts().ready;
            if let Some(handout) = queue.pop(now, ttr, Lease::new(*floor)) {
                let job = queue.view(handout.slot).unwrap();
                assert_eq!((job.time, ready > 0), (handout.end, true));
            }
        }
        Step::Finish { id, lease } => {
            let claim = if *lease % 2 == 0 { Claim::Latest } else { Claim::Lease(Lease::new(*lease)) };
            Id::new(&id.0).map(|id| queue.finish(id, claim));
        }
        Step::Delete { id } => {
            Id::new(&id.0).map(|id| queue.delete(id));
        }
        Step::AddByQueue { due } => add_by_queue(queue, now, *due),
        Step::Put { .. } | Step::Load { .. } | Step::Lease(_) | Step::Restore(_) => {}
    }
}

fn add_by_queue(queue: &mut Queue, now: Time, due: u64) {
    let id = queue.next_id(now);
    let ttr = Millis::new(5).unwrap();
    let job = NewJob {
        id: Id::new(id.as_bytes()).unwrap(),
        body: b"",
        due: Due::At(Time::new(due).unwrap_or(Time::MAX)),
        policy: Policy { ttr, attempts: Attempts::new(3), priority: 128 },
        naming: Naming::ByQueue,
    };
    assert!(matches!(queue.add(now, &job, IfTaken::Refuse), Added::New(_)), "{id} is taken");
}
