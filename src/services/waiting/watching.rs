//! Clients that wait for what becomes of a job (DQ.RESULT), or for a lease to become void
//! (DQ.RENEW). The queue notes what operations do to these jobs; after each of them, and when time
//! has passed, what is watched is looked at anew. Whoever has something to hear is unblocked at the
//! end of the turn, as the clients that wait for jobs are.
//!
//! Telling them writes nothing. So it is done in the middle of a transaction, too: what happened in
//! it is told, and not what is left behind it.

use std::sync::Arc;

use super::watchers::{JobOutcome, Subject, WatchedLease};
use super::wish::Wish;
use crate::queue::{Claim, FinalResult, Id, JobNews, Lease, Queue, State, Time};
use crate::services::host::Host;
use crate::services::key_ref::{Database, KeyRef, QueueKey};
use crate::services::keys::value::QueueValue;
use crate::services::timer::alarm::{arm, unblock_soon, TimeSlice};
use crate::services::timer::wakeup;

/// How many things are looked at between two looks at the clock: some tens of microseconds.
const STEP: usize = 100;

/// To copy so many bytes of a result takes as long as to look at something.
const BYTES_A_LOOK: usize = 4 << 10;

/// How many clients watch jobs or leases of the queue at this key.
pub fn watchers_at<H: Host>(host: H, key: &impl QueueKey) -> usize {
    let database = key.database();
    host.with(|state| state.waiters.watchers.len_at(database, key.name()))
}

/// What a client waits for that wants to know what becomes of this job. `None` if there is no such
/// job.
pub fn job_wish(queue: &mut Queue, key_ref: KeyRef, id: Id) -> Option<Wish> {
    queue.watch(id);
    let dies_at = queue.get(id)?.dies_at();
    Some(Wish::job(key_ref, id, dies_at))
}

/// What a client waits for that wants to know when one of these leases is void; or the places of
/// those that are void already. None of them is `*`.
pub fn leases_wish(
    queue: &mut Queue,
    key_ref: KeyRef,
    now: Time,
    claims: &[Claim],
) -> Result<Wish, Vec<usize>> {
    let is_void = |claim: &Claim| !queue.is_valid(now, claim);
    let void = claims.iter().enumerate().filter(|(_, claim)| is_void(claim));
    let void: Vec<usize> = void.map(|(position, _)| position).collect();
    if !void.is_empty() {
        return Err(void);
    }
    let leases = claims.iter().filter_map(|claim| {
        queue.watch(claim.id);
        let expires_at = queue.get(claim.id)?.progress.expires_at;
        Some(((claim.lease?, Arc::from(claim.id.bytes())), expires_at))
    });
    Ok(Wish::leases(key_ref, leases.collect()))
}

/// When time alone next changes something that is watched at this key.
pub fn next_check<H: Host>(host: H, key: &impl QueueKey) -> Option<Time> {
    let database = key.database();
    host.with(|state| state.waiters.watchers.next_check(database, key.name()))
}

/// Makes the timer come when time changes something that is watched here. For most of that it comes
/// anyway; but a dead job whose life is over too changes nothing.
pub fn plan<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue) {
    if let Some(time) = next_check(host, key) {
        wakeup::plan_by(host, value, time, key.database(), key.name());
    }
}

/// Tells clients what an operation has done to what they watch.
#[inline]
pub fn report<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue, now: Time) {
    if value.queue.has_news() {
        report_news(host, key, value, now);
    }
}

#[cold]
#[inline(never)]
fn report_news<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue, now: Time) {
    let mut news = value.queue.take_news();
    // What a log repeats is old.
    if host.with(|state| state.is_loading) {
        return;
    }
    // Jobs that were finished first: they may be gone by now.
    for JobNews { id, finished, .. } in &mut news {
        if let Some(FinalResult { result }) = finished.take() {
            end(host, key, id, JobOutcome::In(State::Done, result));
        }
    }
    for JobNews { id, lease, .. } in news {
        let (database, lease) = (key.database(), lease.map(|lease| (lease, Arc::from(&*id))));
        let (is_awaited, lease) = host.with(|state| {
            let (name, watchers) = (key.name(), &state.waiters.watchers);
            let lease = lease.filter(|lease| watchers.is_watched(database, name, lease));
            (watchers.is_awaited(database, name, &id), lease)
        });
        if is_awaited {
            look(host, key, &mut value.queue, now, &Subject::Job(id));
        }
        if let Some(lease) = lease {
            look(host, key, &mut value.queue, now, &Subject::Lease(lease));
        }
    }
    unblock_soon(host, []);
}

/// Tells clients what time has done to what they watch. False if the time slice was too short.
pub fn report_due<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: Time,
    slice: &TimeSlice,
) -> bool {
    if host.with(|state| state.waiters.watchers.is_empty()) {
        return true;
    }
    let (database, mut looks) = (key.database(), 0);
    let take = || host.with(|state| state.waiters.watchers.take_due(database, key.name(), now));
    while let Some(subject) = take() {
        looks += look(host, key, &mut value.queue, now, &subject);
        if looks >= STEP && slice.is_over(host) {
            unblock_soon(host, []);
            return false;
        }
        looks %= STEP;
    }
    unblock_soon(host, []);
    true
}

/// Looks at what is watched at this key, after `last`. Returns up to where, if the time slice was
/// too short.
pub fn check_all<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: Time,
    mut last: Option<Subject>,
    slice: &TimeSlice,
) -> Option<Subject> {
    let (database, mut looks) = (key.database(), 0);
    let behind = |last: Option<&Subject>| {
        host.with(|state| state.waiters.watchers.behind(database, key.name(), last, STEP))
    };
    let is_cut = 'looked: loop {
        let subjects = behind(last.as_ref());
        if subjects.is_empty() {
            break false;
        }
        for subject in subjects {
            looks += look(host, key, &mut value.queue, now, &subject);
            last = Some(subject);
            if looks >= STEP && slice.is_over(host) {
                break 'looked true;
            }
            looks %= STEP;
        }
    };
    unblock_soon(host, []);
    last.filter(|_| is_cut)
}

/// Something watched may have changed: tells those that watch it, or goes on watching. Returns how
/// many looks it counts for.
fn look<H: Host>(
    host: H,
    key: &impl QueueKey,
    queue: &mut Queue,
    now: Time,
    subject: &Subject,
) -> usize {
    match subject {
        Subject::Job(name) => {
            match Id::new(name).map_or(Some(JobOutcome::Gone), |id| ended(queue, id, now)) {
                Some(ended) => {
                    let bytes = ended.bytes();
                    end(host, key, name, ended);
                    return 1 + bytes / BYTES_A_LOOK;
                }
                None => go_on(host, key, queue, name),
            }
        }
        Subject::Lease(watched) => {
            let (lease, name) = watched;
            let id = Id::new(name).filter(|id| is_valid(queue, *id, *lease, now));
            if id.is_none_or(|id| !queue.watch(id)) {
                let database = key.database();
                host.with(|state| state.waiters.watchers.set_void(database, key.name(), watched));
            }
        }
    }
    1
}

fn is_valid(queue: &Queue, id: Id, lease: Lease, now: Time) -> bool {
    queue.is_valid(now, &Claim { id, lease: Some(lease) })
}

/// The places of the leases that are void now.
pub fn void_now(queue: &Queue, leases: &[WatchedLease], now: Time) -> Vec<usize> {
    let is_valid = |(lease, name): &WatchedLease| {
        Id::new(name).is_some_and(|id| is_valid(queue, id, *lease, now))
    };
    let void = leases.iter().enumerate().filter(|(_, lease)| !is_valid(lease));
    void.map(|(position, _)| position).collect()
}

fn go_on<H: Host>(host: H, key: &impl QueueKey, queue: &mut Queue, name: &[u8]) {
    let Some(id) = Id::new(name) else {
        return;
    };
    queue.watch(id);
    let (database, dies_at) = (key.database(), queue.get(id).and_then(|job| job.dies_at()));
    host.with(|state| state.waiters.watchers.set_death(database, key.name(), name, dies_at));
}

/// What became of this job; `None` while something may still become of it.
fn ended(queue: &Queue, id: Id, now: Time) -> Option<JobOutcome> {
    let Some(job) = queue.get(id) else {
        return Some(JobOutcome::Gone);
    };
    let (state, what) = job.outcome_at(now);
    let is_over = match state {
        State::Done | State::Dead => true,
        State::Delayed | State::Ready | State::Reserved | State::Held => false,
    };
    is_over.then(|| JobOutcome::In(state, what.map(Box::from)))
}

/// What a client is told of this job whose wait ends now, whatever became of it.
pub fn outcome_now(queue: &Queue, id: Id, now: Time) -> JobOutcome {
    queue.get(id).map_or(JobOutcome::Gone, |job| {
        let (state, what) = job.outcome_at(now);
        JobOutcome::In(state, what.map(Box::from))
    })
}

fn end<H: Host>(host: H, key: &impl QueueKey, name: &[u8], ended: JobOutcome) {
    let database = key.database();
    let tickets = host.with(|state| state.waiters.watchers.tell(database, key.name(), name, ended));
    unblock_soon(host, tickets);
}

/// The queue leaves this key: its jobs and leases are gone. In a cluster it may go to another node:
/// the timer will look.
pub fn on_leaving<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.is_empty()) {
        return;
    }
    if host.is_in_cluster() {
        check_soon(host, database, name);
    } else {
        on_gone_from(host, database, name);
    }
}

/// There is no queue at this key: its jobs and leases are gone.
pub fn on_gone_from<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.is_empty() || state.is_loading) {
        return;
    }
    host.with(|state| state.waiters.watchers.clear(database, name));
    unblock_soon(host, []);
}

/// Another queue may be at this key: the timer will look.
pub fn check_soon<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.len_at(database, name)) > 0 {
        host.with(|state| state.to_check.insert((database, name.into()), None));
        arm(host, None);
    }
}

/// Other queues may be at the keys of this database, or of all.
pub fn check_all_soon<H: Host>(host: H, database: Option<Database>) {
    host.with(|state| {
        let places = state.waiters.watchers.places(database);
        state.to_check.extend(places.into_iter().map(|key_ref| (key_ref, None)));
    });
}
