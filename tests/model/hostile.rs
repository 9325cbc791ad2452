//! Records that nobody of good will would send.

use dq::queue::*;
use proptest::prelude::*;

use crate::compare::check_sums;

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
    Move(Blob),
    Drop(Blob),
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
    /// Release, touch, bury or kick.
    Alter {
        id: Blob,
        how: u8,
    },
    Kick,
    Upkeep,
    Purge(State),
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

/// Backoff, TTL, keep, end of life, reason.
type Extra = (u64, u64, u64, u64, Option<u64>, Option<serde_bytes::ByteBuf>);

fn extra() -> impl Strategy<Value = Extra> {
    let span = || prop_oneof![8 => 0..9u64, 1 => number()];
    let reason =
        prop::option::of(prop::collection::vec(any::<u8>(), 0..4).prop_map(serde_bytes::ByteBuf::from));
    (span(), span(), span(), span(), prop::option::of(time()), reason)
}

/// Stage, attempt and lease: most often such as there are.
fn progress() -> impl Strategy<Value = (u8, u32, u64)> {
    let attempt = || prop_oneof![8 => 0..4u32, 1 => Just(u32::MAX)];
    prop_oneof![
        4 => Just((0, 0, 0)),
        4 => (prop::sample::select(vec![0u8, 2, 3]), attempt()).prop_map(|(stage, attempt)| (stage, attempt, 0)),
        6 => (attempt(), number()).prop_map(|(attempt, lease)| (1, attempt, lease)),
        1 => (0..5u8, attempt(), number()),
    ]
}

fn job_record() -> impl Strategy<Value = Blob> {
    let ttr = prop_oneof![8 => 1..9u64, 1 => number()];
    let attempts = prop_oneof![8 => 0..4u32, 1 => any::<u32>()];
    let times = (time(), time(), ttr);
    let rest = (attempts, any::<u8>(), progress(), any::<bool>(), prop::option::of(extra()));
    blob((times, rest).prop_map(
        |((time, created, ttr), (attempts, priority, (stage, attempt, lease), named, extra))| match extra {
            None => bytes_of((time, created, ttr, attempts, priority, attempt, lease, stage, named)),
            Some(_) => {
                bytes_of((time, created, ttr, attempts, priority, attempt, lease, stage, named, extra))
            }
        },
    ))
}

fn lease_records() -> impl Strategy<Value = Blob> {
    blob(prop::collection::vec((id_bytes(), number(), time()), 0..4).prop_map(bytes_of))
}

fn move_records() -> impl Strategy<Value = Blob> {
    let record = (id_bytes(), 0..8u8, time(), progress(), extra());
    let record = record.prop_map(|(id, cause, time, (stage, attempt, lease), (.., dies, reason))| {
        (id, cause, time, stage, attempt, lease, dies, reason)
    });
    blob(prop::collection::vec(record, 0..4).prop_map(bytes_of))
}

fn drop_record() -> impl Strategy<Value = Blob> {
    blob((0..4u8, prop::collection::vec(id_bytes(), 0..4)).prop_map(bytes_of))
}

fn id_bytes() -> impl Strategy<Value = serde_bytes::ByteBuf> {
    id().prop_map(|id| serde_bytes::ByteBuf::from(id.0))
}

fn queue_record() -> impl Strategy<Value = Blob> {
    let total = || prop_oneof![9 => 0..9u64, 1 => number()];
    let totals = (prop::array::uniform6(total()), prop::array::uniform5(total()));
    let totals = totals.prop_map(|(a, b)| [&a[..], &b].concat());
    let span = || prop_oneof![6 => 0..9u64, 1 => number()];
    let settings =
        (prop::option::of(1..9u64), prop::option::of(0..4u32), span(), span(), span(), span(), span());
    let record = (number(), time(), number(), totals, time(), time(), settings);
    // What came later may be missing.
    blob((record, any::<bool>()).prop_map(
        |((lease, time, number, totals, counted, paused, settings), whole)| match whole {
            true => bytes_of((lease, time, number, totals, counted, paused, settings)),
            false => bytes_of((lease, time, number, &totals[..6])),
        },
    ))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (id(), job_record()).prop_map(|(id, record)| Step::Put { id, record }),
        3 => (id(), job_record()).prop_map(|(id, record)| Step::Load { id, record }),
        4 => lease_records().prop_map(Step::Lease),
        5 => move_records().prop_map(Step::Move),
        1 => drop_record().prop_map(Step::Drop),
        1 => queue_record().prop_map(Step::Restore),
        3 => time().prop_map(Step::Advance),
        4 => (prop::option::of(1..9u64), number()).prop_map(|(ttr, floor)| Step::Pop { ttr, floor }),
        2 => (id(), number()).prop_map(|(id, lease)| Step::Finish { id, lease }),
        1 => id().prop_map(|id| Step::Delete { id }),
        4 => (id(), any::<u8>()).prop_map(|(id, how)| Step::Alter { id, how }),
        1 => Just(Step::Kick),
        2 => Just(Step::Upkeep),
        1 => prop::sample::select(State::ALL.to_vec()).prop_map(Step::Purge),
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
        Step::Move(records) => return move_all(queue, &records.0),
        Step::Drop(record) => {
            DropRecord::decode(&record.0).and_then(|record| queue.drop_jobs(&record).map(drop))
        }
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

fn move_all(queue: &mut Queue, bytes: &[u8]) {
    for record in Vec::<MoveRecord>::decode(bytes).unwrap_or_default() {
        let before = queue.record();
        let is_possible = record.check().is_ok();
        assert_eq!(queue.move_job(&record).is_ok(), is_possible);
        if !is_possible {
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
            Id::new(&id.0).map(|id| queue.finish(now, id, claim));
        }
        Step::Delete { id } => {
            Id::new(&id.0).map(|id| queue.delete(id));
        }
        Step::Alter { id, how } => {
            if let Some(id) = Id::new(&id.0) {
                alter(queue, now, id, *how);
            }
        }
        Step::Kick => drop(queue.kick(now, 3)),
        Step::Upkeep => {
            while !queue.bury_the_overdue(2) {}
            let slots = queue.to_forget(now, 3);
            queue.purge(&slots);
            queue.next_upkeep();
        }
        Step::Purge(state) => {
            let slots = queue.to_purge(now, *state, Millis::new(3).unwrap(), 3);
            queue.purge(&slots);
        }
        Step::AddByQueue { due } => add_by_queue(queue, now, *due),
        Step::Put { .. } | Step::Load { .. } | Step::Lease(_) => {}
        Step::Move(_) | Step::Drop(_) | Step::Restore(_) => {}
    }
}

fn alter(queue: &mut Queue, now: Time, id: Id, how: u8) {
    let delay = Millis::new(u64::from(how / 8)).filter(|delay| !delay.is_zero());
    match how % 4 {
        0 => queue.release(now, id, Claim::Latest, delay, None),
        1 => queue.touch(now, id, Claim::Latest, delay),
        2 => queue.bury(now, id, Claim::Latest, Some(b"why")),
        _ => queue.kick_job(now, id),
    };
}

fn add_by_queue(queue: &mut Queue, now: Time, due: u64) {
    let id = queue.next_id(now);
    let ttr = Millis::new(5).unwrap();
    let job = NewJob {
        id: Id::new(id.as_bytes()).unwrap(),
        body: b"",
        due: Due::At(Time::new(due).unwrap_or(Time::MAX)),
        policy: Policy {
            attempts: Attempts::new(3),
            ttl: Millis::new(due % 9).unwrap(),
            ..Policy::plain(ttr)
        },
        naming: Naming::ByQueue,
    };
    let is_full = queue.settings().max_jobs.is_some_and(|max| queue.len() as u64 >= max.get());
    match queue.add(now, &job, IfTaken::Refuse) {
        Added::New(_) => assert!(!is_full),
        Added::Full => assert!(is_full),
        Added::Replaced(_) | Added::Taken => panic!("{id} is taken"),
    }
}
