//! A log of version 0.1, which told what jobs came to: replicas of such a primary, and its AOFs, hold the same.

use dq::queue::*;
use proptest::prelude::*;

use crate::cases;
use crate::draw::{clock, turns};
use crate::log::Entry;
use crate::operation::{Floor, Operation};
use crate::pair::Pair;
use crate::subject::{at, id};
use crate::told::{Alteration, Bytes, Command, Outcome};
use crate::{OTHER_SEED, TURNS};

/// An entry, as bytes.
#[derive(Debug)]
enum Legacy {
    Put {
        id: Bytes,
        body: Bytes,
        record: Bytes,
    },
    Lease(Bytes),
    Move(Bytes),
    Drop(Bytes),
    Queue(Bytes),
    /// Plain commands, whose result doesn't depend on time.
    Finish(Bytes, Option<u64>),
    Delete(Vec<Bytes>),
}

/// What version 0.1 told of it: one thing that one command did, which is where the queue now is.
fn legacy(entry: &Entry, queue: &Queue) -> Vec<Legacy> {
    let job = |bytes: &Bytes| queue.get(id(bytes)).unwrap();
    let all_moved = |cause, ids: &[Bytes]| {
        Legacy::Move(ids.iter().map(|bytes| job(bytes).move_record(cause)).collect::<Vec<_>>().encode())
    };
    let moved = |cause, bytes: &Bytes| all_moved(cause, std::slice::from_ref(bytes));
    let dropped = |leave, ids: &[Bytes]| {
        Legacy::Drop(DropRecord::new(leave, ids.iter().map(|bytes| id(bytes))).encode())
    };
    vec![match (&entry.command, &entry.outcome) {
        (Command::Add(add), Outcome::Added { id, .. }) => {
            let naming = if add.id.is_some() { Naming::Given } else { Naming::ByQueue };
            let record = JobRecord::of(&job(id), naming).encode();
            Legacy::Put { id: id.clone(), body: job(id).body.to_vec(), record }
        }
        (Command::Pop { no_ack, .. }, Outcome::HandedOut(handed, _)) => {
            let lease =
                |one: &crate::told::Handed| LeaseRecord::new(id(&one.id), Lease::new(one.lease), at(one.end));
            let leases = Legacy::Lease(handed.iter().map(lease).collect::<Vec<_>>().encode());
            let finished = handed.iter().map(|one| match queue.get(id(&one.id)) {
                Some(_) => moved(Cause::Finished, &one.id),
                None => dropped(Exit::Finished, std::slice::from_ref(&one.id)),
            });
            return std::iter::once(leases).chain(finished.filter(|_| *no_ack)).collect();
        }
        (Command::Finish { claims }, _) => match queue.get(id(&claims[0].id)) {
            Some(_) => moved(Cause::Finished, &claims[0].id),
            None => Legacy::Finish(claims[0].id.clone(), claims[0].lease),
        },
        (Command::Release { claim, .. }, _) => moved(Cause::Released, &claim.id),
        (Command::Touch { claim, .. }, _) => moved(Cause::Touched, &claim.id),
        (Command::Bury { claim, .. }, _) => moved(Cause::Buried, &claim.id),
        (Command::KickJob { ids }, _) => all_moved(Cause::Kicked, ids),
        (Command::Forget { ids }, _) => dropped(Exit::Purged, ids),
        (Command::Delete { ids }, _) => Legacy::Delete(ids.clone()),
        (Command::Pause { .. } | Command::Resume { .. } | Command::Alter(_), _) => {
            Legacy::Queue(without_heading(queue))
        }
        other => panic!("{other:?}"),
    }]
}

/// The record as version 0.1 wrote it: an array of one field less.
fn without_heading(queue: &Queue) -> Bytes {
    let Heading { clock, defaults, check } = queue.heading();
    let heading = (clock.unix_ms(), defaults.ttr.as_u64(), defaults.attempts.limit(), check);
    let (whole, last) = (queue.record().encode(), rmp_serde::to_vec(&heading).unwrap());
    let fields = whole.strip_suffix(&last[..]).unwrap();
    assert_eq!(fields[0], 0x98);
    [&[0x97], &fields[1..]].concat()
}

fn apply(effect: &Legacy, queue: &mut Queue) {
    // Whatever it is told besides: all is in the effect.
    let told = Circumstances { now: at(7), ..Circumstances::default() };
    let effect = match effect {
        Legacy::Put { id, body, record } => {
            Effect::Put { id, body, record: JobRecord::decode(record).unwrap() }
        }
        Legacy::Lease(records) => Effect::Lease(Record::decode(records).unwrap()),
        Legacy::Move(records) => Effect::Move(Record::decode(records).unwrap()),
        Legacy::Drop(record) => Effect::Drop(Record::decode(record).unwrap()),
        Legacy::Queue(record) => Effect::Queue(Record::decode(record).unwrap()),
        Legacy::Finish(bytes, lease) => {
            let claim = Claim { id: id(bytes), lease: lease.map(Lease::new) };
            assert_eq!(queue.apply(&told, &Finish { claims: &[claim] }), Finished { jobs: 1 });
            return;
        }
        Legacy::Delete(ids) => {
            let ids: Vec<Id> = ids.iter().map(|bytes| id(bytes)).collect();
            assert!(queue.apply(&told, &Delete { ids: &ids }).has_changed());
            return;
        }
    };
    queue.apply(&told, &effect).unwrap();
}

/// Version 0.1 gave nothing back that was finished, and knew no schedules, no limits, no LATE, no groups and not all that a POP or a
/// RELEASE can say since.
fn is_of_version_0_1(operation: &Operation) -> bool {
    match operation {
        Operation::Schedule { .. } | Operation::PopById { .. } => return false,
        Operation::Release { priority: Some(_), .. }
        | Operation::Pause { group: Some(_), .. }
        | Operation::Resume { group: Some(_) } => return false,
        Operation::Add { options, .. } | Operation::AddMany { options, .. } => {
            return options.late.is_none() && options.group.is_none();
        }
        Operation::Alter(alteration) => {
            let Alteration { concurrency, rate, late, group_concurrency, group_rate, .. } = alteration;
            let of_groups = group_concurrency.is_some() || group_rate.is_some();
            return concurrency.is_none() && rate.is_none() && late.is_none() && !of_groups;
        }
        _ => {}
    }
    true
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_log_of_version_0_1_makes_the_same_jobs(clock in clock(), mut turns in turns(TURNS)) {
        let mut primary = Pair::new(clock);
        let mut replica = Queue::new(OTHER_SEED);
        for turn in &mut turns {
            turn.floor = Floor::None;
            turn.operation.make_single();
            turn.operation.leave_out_groups();
            if !is_of_version_0_1(&turn.operation) {
                continue;
            }
            for entry in primary.play(turn) {
                for effect in legacy(&entry, &primary.subject.queue) {
                    apply(&effect, &mut replica);
                }
            }
            let queue = &primary.subject.queue;
            assert_eq!(queue.len(), replica.len());
            for (job, heard) in queue.jobs().zip(replica.jobs()) {
                // Version 0.1 left a job its reason when it was kicked, and said nothing of leases that had run out.
                let (reason, tally) = (job.reason.and(heard.reason), job.tally);
                prop_assert_eq!(job, JobView { reason, tally, ..heard });
            }
            prop_assert_eq!(queue.last_lease(), replica.last_lease());
            prop_assert_eq!(queue.settings(), replica.settings());
        }
    }
}
