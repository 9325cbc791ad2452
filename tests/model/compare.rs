//! Two queues, or a queue and the reference, side by side.

use std::collections::HashMap;

use dq::queue::*;

use crate::job;
use crate::operation::given_ids;
use crate::reference::Reference;
use crate::subject::{at, id};
use crate::told;

/// The queue stands as the reference does, wherever one looks.
pub fn compare(queue: &Queue, reference: &Reference) {
    let now = at(reference.now);
    assert_eq!(queue.counts(), reference.counts(), "counts");
    assert_eq!(queue.next_change(), reference.next_change().map(at), "next change");
    assert_eq!(queue.len(), reference.jobs.len(), "len");
    assert_eq!(queue.last_lease().map_or(0, Lease::number), reference.last_lease, "last lease");
    assert_eq!(*queue.totals(), reference.totals, "totals");
    assert_eq!(queue.paused_until(now), Some(at(reference.paused_until)).filter(|until| *until > now));
    let oldest = reference.in_state(State::Ready).map(job::Job::due).min();
    assert_eq!(queue.oldest_ready(), oldest.map(at), "oldest");
    let is_dead = |job: &JobView| job.state(now) == State::Dead;
    let in_order = queue.jobs().filter(|job| !is_dead(job)).map(|job| job.id.bytes());
    assert!(in_order.eq(reference.in_order().iter().map(|job| &job.id[..])), "order");
    let by_id: HashMap<_, _> = reference.jobs.iter().map(|job| (&job.id[..], job)).collect();
    for job in queue.jobs() {
        check_job(&job, by_id[job.id.bytes()], reference.now);
        assert_eq!(queue.get(job.id), Some(job));
    }
    for bytes in given_ids() {
        assert_eq!(queue.get(id(&bytes)).is_some(), reference.get(&bytes).is_some());
    }
    for state in State::ALL {
        let peeked = queue.ids_of(&queue.peek(state, usize::MAX));
        let peeked: Vec<Vec<u8>> = peeked.into_iter().map(Vec::from).collect();
        assert!(reference.are_the_first(&peeked, state, 0, usize::MAX), "peek {state:?}");
    }
}

fn check_job(job: &JobView, expected: &job::Job, now: u64) {
    let policy = &job.policy;
    let seen = job::Job {
        id: job.id.bytes().to_vec(),
        body: job.body.to_vec(),
        created: job.created.unix_ms(),
        policy: told::Policy {
            ttr: policy.ttr.as_u64(),
            attempts: policy.attempts.limit(),
            priority: policy.priority,
            backoff_base: policy.backoff.base.as_u64(),
            backoff_max: policy.backoff.max.as_u64(),
            ttl: policy.ttl.as_u64(),
            keep: policy.keep.as_u64(),
        },
        stage: match job.progress.stage {
            Stage::Waiting => job::Stage::Waiting,
            Stage::Leased => job::Stage::Leased,
            Stage::Dead => job::Stage::Dead,
            Stage::Done => job::Stage::Done,
        },
        attempt: job.progress.attempt,
        lease: job.progress.lease.map(Lease::number),
        time: job.time.unix_ms(),
        dies: job.progress.dies.map(Time::unix_ms),
        reason: job.reason.map(Vec::from),
        // The order is compared as such.
        order: expected.order,
    };
    assert_eq!(seen, *expected);
    assert_eq!(job.state(at(now)), expected.state(now));
}

/// Both hold the same jobs, those alive in the same order, and stand the same otherwise. Which of the dead
/// have been carried to where they belong is each one's own affair; and so is, where less time has passed,
/// what time did.
pub fn assert_same(one: &mut Queue, other: &mut Queue) {
    let now = one.advance(Time::ZERO).max(other.advance(Time::ZERO));
    let (one_alive, one_dead) = alive_and_dead(one, now);
    let (other_alive, other_dead) = alive_and_dead(other, now);
    assert!(one_alive == other_alive, "those alive, or their order");
    assert!(one_dead == other_dead, "the dead");
    assert_eq!(one.record().without_totals(), other.record().without_totals());
    assert_eq!(one.last_lease(), other.last_lease());
    assert_eq!(told_totals(one), told_totals(other));
}

pub fn alive_and_dead(queue: &Queue, now: Time) -> (Vec<JobView<'_>>, Vec<JobView<'_>>) {
    let (mut dead, alive): (Vec<_>, Vec<_>) = queue.jobs().partition(|job| job.state(now) == State::Dead);
    dead.sort_by_key(|job| job.id.bytes());
    (alive, dead)
}

/// The totals of what commands did.
fn told_totals(queue: &Queue) -> Totals {
    Totals { timed_out: 0, died: 0, ..*queue.totals() }
}

/// What must be so in any queue, however it came about: the sums add up, and what is seen from one side is
/// seen from the other.
pub fn check_sums(queue: &mut Queue) {
    let now = queue.advance(Time::ZERO);
    let mut states: HashMap<&'static str, Vec<Id>> = HashMap::new();
    for job in queue.jobs() {
        assert_eq!(queue.get(job.id), Some(job));
        states.entry(job.state(now).name()).or_default().push(job.id);
    }
    assert_eq!(queue.len(), queue.jobs().count());
    for state in State::ALL {
        let mut expected = states.remove(state.name()).unwrap_or_default();
        assert_eq!(queue.counts().of(state), expected.len(), "{state:?}");
        let peeked = queue.peek(state, usize::MAX);
        let mut peeked: Vec<Id> = peeked.iter().map(|slot| queue.view(*slot).unwrap().id).collect();
        peeked.sort_by_key(|id| id.bytes());
        expected.sort_by_key(|id| id.bytes());
        assert_eq!(peeked, expected, "peek {state:?}");
    }
    let next = queue.jobs().flat_map(|job| changes(job, now)).min();
    assert_eq!(queue.next_change(), next);
}

/// When the job's state changes, or would if it weren't dead or done: after `now`.
fn changes<'j>(job: JobView<'j>, now: Time) -> impl Iterator<Item = Time> + 'j {
    let moments = [Some(job.time), Some(job.due()), job.progress.dies];
    let moments = moments.into_iter().flatten().filter(move |time| *time > now);
    let is_at_rest = matches!(job.progress.stage, Stage::Dead | Stage::Done);
    moments.filter(move |time| {
        let before = at(time.unix_ms() - 1);
        if is_at_rest {
            *time == job.time
        } else {
            job.state(before) != job.state(*time)
        }
    })
}
