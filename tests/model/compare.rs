//! Two queues, or a queue and the reference, side by side.

use std::collections::HashMap;

use dq::queue::*;

use crate::groups;
use crate::job;
use crate::operation::given_ids;
use crate::reference::Reference;
use crate::run_state;
use crate::subject::{at, id, sink};
use crate::told::{self, Bytes};

/// The queue stands as the reference does, wherever one looks.
pub fn compare(queue: &Queue, reference: &Reference) {
    compare_all_but_totals(queue, reference);
    assert_eq!(*queue.totals(), reference.totals, "totals");
}

/// As [`compare`], where less time has been seen to pass.
pub fn compare_all_but_totals(queue: &Queue, reference: &Reference) {
    let now = at(reference.horizon);
    assert_eq!(queue.counts(), reference.counts(), "counts");
    assert_eq!(queue.next_change(), reference.next_change().map(at), "next change");
    assert_eq!(queue.len(), reference.jobs.len(), "len");
    assert_eq!(queue.last_lease().map_or(0, Lease::number), reference.last_lease, "last lease");
    assert_eq!(
        queue.paused_until(now),
        Some(at(reference.paused_until)).filter(|until| *until > now)
    );
    assert_eq!(queue.sink().cloned(), reference.sink.map(sink), "sink");
    let oldest = reference.in_state(State::Ready).map(job::Job::due).min();
    assert_eq!(queue.oldest_ready(), oldest.map(at), "oldest");
    assert_eq!(queue.lingers_until(now, Millis::ZERO), oldest.map(at), "the first of a batch");
    let defaults = told::Defaults {
        ttr: queue.log_state().defaults.ttr.as_u64(),
        attempts: queue.log_state().defaults.attempts.limit(),
        backoff: backoff(queue.log_state().defaults.backoff),
    };
    let log_state = (queue.log_state().clock.unix_ms(), defaults);
    assert_eq!(log_state, (reference.clock, reference.defaults), "log_state");
    let in_order = queue.jobs().map(|job| job.id.bytes());
    assert!(in_order.eq(reference.in_order().iter().map(|job| &job.id[..])), "order");
    let by_id: HashMap<_, _> = reference.jobs.iter().map(|job| (&job.id[..], job)).collect();
    for job in queue.jobs() {
        check_job(&job, by_id[job.id.bytes()], reference.horizon);
        check_edges(queue, reference, by_id[job.id.bytes()]);
        assert_eq!(queue.get(job.id), Some(job));
    }
    assert_eq!(queue.held_behind_dead(), reference.held_behind_dead(), "held behind dead");
    assert_eq!(queue.settles_at(), reference.settles_at().map(at), "settles at");
    for bytes in given_ids() {
        assert_eq!(queue.get(id(&bytes)).is_some(), reference.get(&bytes).is_some());
    }
    for state in State::ALL {
        let peeked = queue.ids_of(&queue.peek(state, usize::MAX));
        let peeked: Vec<Bytes> = peeked.bytes().into_iter().map(Vec::from).collect();
        assert!(reference.are_the_first(&peeked, state, 0, usize::MAX), "peek {state:?}");
        check_pages(queue, state, &peeked);
    }
    check_groups(queue, reference);
    check_forecast(queue, reference);
    check_wake_at(queue, reference.next_upkeep());
}

/// What the job waits for is seen as it is, also in pieces; and how many wait for it.
fn check_edges(queue: &Queue, reference: &Reference, job: &job::Job) {
    let counts = EdgeCounts {
        after: job.edges().len(),
        pending: job.pending(),
        before: reference.dependents(&job.id),
        is_on_hold: job.is_on_hold(),
    };
    let seen = queue.edge_counts(id(&job.id)).unwrap_or_default();
    assert_eq!(seen, counts, "edges of {:?}", job.id);
    let expected: Vec<_> = job.edges().iter().map(|edge| reference.see_edge(edge)).collect();
    let seen = |from, at_most| {
        let (edges, next) = queue.edges_to(id(&job.id), from, at_most, at(reference.horizon));
        let edges = edges
            .iter()
            .map(|edge| (edge.id.bytes().to_vec(), edge.state.name(), edge.what.map(Vec::from)));
        (edges.collect::<Vec<_>>(), next)
    };
    assert_eq!(seen(0, usize::MAX), (expected.clone(), None), "edges to {:?}", job.id);
    if let [first, rest @ ..] = &expected[..] {
        let next = (!rest.is_empty()).then_some(1);
        assert_eq!(seen(0, 1), (vec![first.clone()], next));
        assert_eq!(seen(1, rest.len()), (rest.to_vec(), None));
    }
}

/// Each group is seen as it is, and no other.
fn check_groups(queue: &Queue, reference: &Reference) {
    assert_eq!(queue.groups_len(), reference.groups.all.len(), "groups");
    for group in &reference.groups.all {
        let name = groups::name(group.name);
        let seen = queue.group(id(&name)).unwrap();
        let seen = groups::Seen {
            ready: seen.ready,
            reserved: seen.reserved,
            delayed: seen.delayed,
            paused_until: seen.paused_until.map(Time::unix_ms),
            opens: seen.opens.map(Time::unix_ms),
        };
        assert_eq!(seen, reference.see_group(group), "group {}", group.name);
    }
}

/// In steps of several lengths, from now, from before and from later.
fn check_forecast(queue: &Queue, reference: &Reference) {
    let now = reference.horizon;
    for (from, step, steps) in
        [(now, 1, 12), (now.saturating_sub(3), 2, 9), (now + 5, 700, 5), (now + 1, 1 << 40, 2)]
    {
        let span = Millis::new(step).unwrap();
        let Some(forecast) = Time::new(from).and_then(|from| Forecast::new(from, span, steps))
        else {
            continue;
        };
        assert_eq!(
            queue.forecast(&forecast),
            reference.forecast(from, step, steps),
            "{step} ms from {from}"
        );
    }
}

/// Whoever goes on behind a job sees what is behind it; and at a time, what is at that time or
/// later.
fn check_pages(queue: &Queue, state: State, all: &[Bytes]) {
    let seen = |after: After| {
        let slots = queue.peek_after(state, &after, usize::MAX)?;
        Some(queue.ids_of(&slots).bytes().into_iter().map(Vec::from).collect::<Vec<Bytes>>())
    };
    let times: Vec<Time> =
        all.iter().map(|bytes| leaves(&queue.get(id(bytes)).unwrap(), state)).collect();
    // One of the first, one in the middle, the last: each costs a look at all of them.
    let places = [0, all.len() / 2, all.len().saturating_sub(1)];
    for (n, bytes) in places.into_iter().filter_map(|n| Some((n, all.get(n)?))) {
        let behind = Some(id(bytes));
        assert_eq!(
            seen(After { id: behind, time: None }).unwrap(),
            all[n + 1..],
            "behind {bytes:?}"
        );
        if state == State::Ready {
            continue;
        }
        let at_or_later = times.partition_point(|time| *time < times[n]);
        assert_eq!(seen(After { id: behind, time: Some(times[n]) }).unwrap(), all[n + 1..]);
        assert_eq!(seen(After { id: None, time: Some(times[n]) }).unwrap(), all[at_or_later..]);
        // It isn't there any more, or not at that time: from that time on.
        assert_eq!(
            seen(After { id: Some(id(b"gone")), time: Some(times[n]) }).unwrap(),
            all[at_or_later..]
        );
        let earlier = at(times[n].unix_ms().saturating_sub(1));
        let from = times.partition_point(|time| *time < earlier);
        let moved = After { id: behind, time: Some(earlier) };
        assert!(
            earlier == times[n] || seen(moved).unwrap() == all[from..],
            "moved since {earlier:?}"
        );
    }
    let stranger = queue.jobs().find(|job| !all.iter().any(|bytes| bytes == job.id.bytes()));
    if let Some(job) = stranger {
        assert_eq!(
            seen(After { id: Some(job.id), time: None }),
            None,
            "{:?} isn't {state:?}",
            job.id
        );
    }
}

/// The time of a job in the order of its state, from what DQ.GET shows of it.
fn leaves(job: &JobView, state: State) -> Time {
    let before_expiry =
        |time: Time| job.progress.expires_at.map_or(time, |expiry| expiry.min(time));
    match state {
        State::Ready | State::Delayed => before_expiry(job.due()),
        State::Reserved => before_expiry(job.time),
        State::Dead => job.since(Time::MAX),
        State::Done | State::Held => job.time,
    }
}

/// The timer comes in time, and finds out when to come again.
fn check_wake_at(queue: &Queue, needed: Option<u64>) {
    let mut found = queue.clone();
    // Where readers are asleep, both may name a time that the last change has passed already: which
    // one makes no difference.
    let by_then = |time: Time| time.max(queue.log_state().clock);
    assert_eq!(found.find_wake_at().map(by_then), needed.map(at).map(by_then), "upkeep");
    assert_eq!(by_then(found.wake_at()), by_then(needed.map_or(Time::MAX, at)));
    assert!(
        queue.wake_at() <= by_then(found.wake_at()),
        "{:?} is after {needed:?}",
        queue.wake_at()
    );
}

fn backoff(backoff: dq::queue::Backoff) -> told::Backoff {
    told::Backoff { base: backoff.base.as_u64(), max: backoff.max.as_u64() }
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
            backoff: backoff(policy.backoff),
            ttl: policy.ttl.as_u64(),
            keep: policy.keep.as_u64(),
            late: policy.late.as_u64(),
        },
        stage: match job.progress.stage {
            Stage::Waiting => job::Stage::Waiting,
            Stage::Leased => job::Stage::Leased,
            Stage::Dead => job::Stage::Dead,
            Stage::Done => job::Stage::Done,
            Stage::Held => job::Stage::Held,
        },
        attempt: job.progress.attempt,
        lease: job.progress.lease.map(Lease::number),
        time: job.time.unix_ms(),
        expires_at: job.progress.expires_at.map(Time::unix_ms),
        reason: job.reason.map(Vec::from),
        tally: tally(job.tally),
        // The order is compared as such.
        order: expected.order,
        group: expected.group,
        round: job.schedule.map(|schedule| round(&schedule)),
        note: job.note.map(Vec::from),
        result: job.result.map(Vec::from),
        // These are compared by what one sees of them.
        waits: expected.waits.clone(),
        is_known_dead: expected.is_known_dead,
    };
    assert_eq!(job.group.map(|name| name.bytes().to_vec()), expected.group.map(groups::name));
    assert_eq!(seen, *expected);
    assert_eq!(job.state(at(now)), expected.state(now));
    assert_eq!(tally(job.tally_at(at(now))), expected.tally_at(now));
    assert_eq!(job.note_at(at(now)), expected.note_at(now).map(|note| &note[..]));
}

fn tally(tally: Tally) -> job::Tally {
    let Tally { timed_out, released, buried, kicked } = tally;
    job::Tally { timed_out, released, buried, kicked }
}

fn round(schedule: &ScheduleView) -> run_state::RunState {
    let ScheduleView { rule, run_state: round } = schedule;
    run_state::RunState {
        rule: told::Rule {
            timing: match &rule.timing {
                Timing::Every(period) => told::Timing::Every(period.as_u64()),
                Timing::Cron(cron) => told::Timing::Cron(cron.expression.parse().unwrap()),
            },
            all: rule.misfire == Misfire::All,
            jitter: rule.jitter.as_u64(),
            runs: rule.runs,
            until: rule.until.map(Time::unix_ms),
            late: rule.late.as_u64(),
        },
        anchor: round.anchor.unix_ms(),
        occurrence: round.occurrence.unix_ms(),
        next: round.next().map(Time::unix_ms),
        is_decided: round.is_decided(),
        runs: round.runs,
        missed: round.missed,
        failed: round.failed,
    }
}

/// The same has happened to both, whatever anybody has looked at: they hold the same jobs in the
/// same order, and stand the same otherwise. What time did is counted by each for itself.
pub fn assert_same(one: &Queue, other: &Queue) {
    assert_eq!(one.log_state(), other.log_state());
    assert_eq!(one.record().without_totals(), other.record().without_totals());
    assert!(one.jobs().eq(other.jobs()), "the jobs, or their order");
    assert_eq!(one.group_records(), other.group_records(), "the groups");
    assert!(one.edge_records().eq(other.edge_records()), "the edges");
    assert!(one.pending_records().eq(other.pending_records()), "what is pending");
    let of_edges = |queue: &Queue| (queue.held_behind_dead(), queue.settles_at());
    assert_eq!(of_edges(one), of_edges(other), "held behind dead, settles at");
    let told = |queue: &Queue| Totals { timed_out: 0, died: 0, ..*queue.totals() };
    assert_eq!(told(one), told(other), "the totals of what was done");
}

/// What must be so in any queue, however it came about: the sums add up, and what is seen from one
/// side is seen from the other.
pub fn check_sums(queue: &Queue, now: Time) {
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
    let needed = queue.clone().find_wake_at().unwrap_or(Time::MAX);
    assert!(queue.wake_at() <= needed, "{:?} is after {needed:?}", queue.wake_at());
}

/// When the job's state changes, or it has been kept long enough: after `now`.
fn changes<'j>(job: JobView<'j>, now: Time) -> impl Iterator<Item = Time> + 'j {
    let moments =
        [Some(job.time), Some(job.due()), job.progress.expires_at, job.policy.late_at(job.due())];
    let moments = moments.into_iter().flatten().filter(move |time| *time > now);
    moments.filter(move |time| match job.progress.stage {
        Stage::Done => *time == job.time,
        Stage::Dead | Stage::Waiting | Stage::Leased | Stage::Held => {
            job.state(at(time.unix_ms() - 1)) != job.state(*time)
        }
    })
}
