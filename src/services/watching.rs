//! Clients that wait for what becomes of a job (DQ.RESULT), or for a lease to become void
//! (DQ.RENEW). The queue notes what operations do to these jobs; after each of them, and when time
//! has passed, what is watched is looked at anew. Whoever has something to hear is unblocked at the
//! end of the turn, as the clients that wait for jobs are.
//!
//! Telling them writes nothing. So it is done in the middle of a transaction, too: what happened in
//! it is told, and not what is left behind it.

use std::collections::BTreeMap;

use super::alarm::{arm, unblock_soon, TimeSlice};
use super::host::Host;
use super::place::{Database, KeyRef, QueueKey, Ticket};
use super::value::QueueValue;
use super::wakeup;
use super::watchers::{Ended, Subject};
use super::wish::Wish;
use crate::queue::{Claim, Finished, Id, JobNews, Lease, Queue, State, Time};

/// How many things are looked at between two looks at the clock: some tens of microseconds.
const STEP: usize = 100;

/// The leases of each client that have just become void.
type Voided = BTreeMap<Ticket, Vec<Lease>>;

/// How many clients watch jobs or leases of the queue at this key.
pub fn watchers_at<H: Host>(host: H, key: &impl QueueKey) -> usize {
    let database = key.database();
    host.with(|state| state.waiters.watchers.len_at(database, key.name()))
}

/// What a client waits for that wants to know what becomes of this job. `None` if there is no such
/// job.
pub fn job_wish(queue: &mut Queue, place: KeyRef, id: Id) -> Option<Wish> {
    queue.watch(id);
    let dies_at = queue.get(id)?.dies_at();
    Some(Wish::job(place, id, dies_at))
}

/// What a client waits for that wants to know when one of these leases is void; or the places of
/// those that are void already. None of them is `*`.
pub fn leases_wish(
    queue: &mut Queue,
    place: KeyRef,
    now: Time,
    claims: &[Claim],
) -> Result<Wish, Vec<usize>> {
    let is_void = |claim: &Claim| !queue.is_good(now, claim);
    let void = claims.iter().enumerate().filter(|(_, claim)| is_void(claim));
    let void: Vec<usize> = void.map(|(place, _)| place).collect();
    if !void.is_empty() {
        return Err(void);
    }
    let held = claims.iter().filter_map(|claim| {
        queue.watch(claim.id);
        let expires_at = queue.get(claim.id)?.progress.expires_at;
        Some((claim.lease?, Box::from(claim.id.bytes()), expires_at))
    });
    Ok(Wish::leases(place, held.collect()))
}

/// When time alone next changes something that is watched at this key.
pub fn next_look<H: Host>(host: H, key: &impl QueueKey) -> Option<Time> {
    let database = key.database();
    host.with(|state| state.waiters.watchers.next_look(database, key.name()))
}

/// Makes the timer come when time changes something that is watched here. For most of that it comes
/// anyway; but a dead job whose life is over too changes nothing.
pub fn plan<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue) {
    if let Some(time) = next_look(host, key) {
        wakeup::plan_by(host, value, time, key.database(), key.name());
    }
}

/// Tells clients what an operation has done to what they watch.
#[inline]
pub fn tell<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue, now: Time) {
    if value.queue.has_news() {
        tell_news(host, key, value, now);
    }
}

#[cold]
#[inline(never)]
fn tell_news<H: Host>(host: H, key: &impl QueueKey, value: &mut QueueValue, now: Time) {
    let (mut news, mut void) = (value.queue.take_news(), Voided::new());
    // What a log repeats is old.
    if host.with(|state| state.is_loading) {
        return;
    }
    // Jobs that were finished first: they may be gone by now.
    for JobNews { id, finished, .. } in &mut news {
        if let Some(Finished { result }) = finished.take() {
            end(host, key, id, Ended::In(State::Done, result));
        }
    }
    for JobNews { id, lease, .. } in news {
        let database = key.database();
        let (is_awaited, holders) = host.with(|state| {
            let watchers = &state.waiters.watchers;
            let holders = lease.map(|lease| watchers.holders_of(database, key.name(), lease));
            (watchers.is_awaited(database, key.name(), &id), holders.unwrap_or_default())
        });
        if is_awaited {
            look(host, key, &mut value.queue, now, &Subject::Job(id), &mut void);
        }
        for (lease, ticket) in
            lease.into_iter().flat_map(|lease| holders.iter().map(move |ticket| (lease, *ticket)))
        {
            look(host, key, &mut value.queue, now, &Subject::Lease(lease, ticket), &mut void);
        }
    }
    end_leases(host, void);
}

/// Tells clients what time has done to what they watch. False if the time slice was too short.
pub fn tell_due<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: Time,
    slice: &TimeSlice,
) -> bool {
    if host.with(|state| state.waiters.watchers.is_empty()) {
        return true;
    }
    let (database, mut void, mut steps) = (key.database(), Voided::new(), 0);
    let take = || host.with(|state| state.waiters.watchers.take_due(database, key.name(), now));
    while let Some(subject) = take() {
        look(host, key, &mut value.queue, now, &subject, &mut void);
        steps += 1;
        if steps % STEP == 0 && slice.is_over(host) {
            end_leases(host, void);
            return false;
        }
    }
    end_leases(host, void);
    true
}

/// Looks at what is watched at this key, after `last`. Returns up to where, if the time slice was
/// too short.
pub fn look_at_all<H: Host>(
    host: H,
    key: &impl QueueKey,
    value: &mut QueueValue,
    now: Time,
    mut last: Option<Subject>,
    slice: &TimeSlice,
) -> Option<Subject> {
    let (database, mut void) = (key.database(), Voided::new());
    loop {
        let subjects = host
            .with(|state| state.waiters.watchers.behind(database, key.name(), last.as_ref(), STEP));
        for subject in &subjects {
            look(host, key, &mut value.queue, now, subject, &mut void);
        }
        let is_cut = !subjects.is_empty() && slice.is_over(host);
        last = subjects.into_iter().last();
        if is_cut || last.is_none() {
            end_leases(host, void);
            return last;
        }
    }
}

/// Something watched may have changed: tells those that watch it, or goes on watching.
fn look<H: Host>(
    host: H,
    key: &impl QueueKey,
    queue: &mut Queue,
    now: Time,
    subject: &Subject,
    void: &mut Voided,
) {
    match subject {
        Subject::Job(name) => {
            match Id::new(name).map_or(Some(Ended::Gone), |id| ended(queue, id, now)) {
                Some(ended) => end(host, key, name, ended),
                None => go_on(host, key, queue, name),
            }
        }
        Subject::Lease(lease, ticket) => {
            let name = host.with(|state| state.waiters.name_of(*ticket, *lease));
            let Some(id) = name.as_deref().and_then(Id::new) else {
                return;
            };
            if queue.is_good(now, &Claim { id, lease: Some(*lease) }) {
                queue.watch(id);
            } else {
                void.entry(*ticket).or_default().push(*lease);
            }
        }
    }
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
fn ended(queue: &Queue, id: Id, now: Time) -> Option<Ended> {
    let Some(job) = queue.get(id) else {
        return Some(Ended::Gone);
    };
    let (state, what) = job.outcome_at(now);
    let is_over = match state {
        State::Done | State::Dead => true,
        State::Delayed | State::Ready | State::Reserved | State::Held => false,
    };
    is_over.then(|| Ended::In(state, what.map(Box::from)))
}

/// What a client is told of this job whose wait ends now, whatever became of it.
pub fn told_now(queue: &Queue, id: Id, now: Time) -> Ended {
    queue.get(id).map_or(Ended::Gone, |job| {
        let (state, what) = job.outcome_at(now);
        Ended::In(state, what.map(Box::from))
    })
}

fn end<H: Host>(host: H, key: &impl QueueKey, name: &[u8], ended: Ended) {
    let database = key.database();
    let tickets = host.with(|state| state.waiters.watchers.tell(database, key.name(), name, ended));
    unblock_soon(host, tickets);
}

fn end_leases<H: Host>(host: H, void: Voided) {
    let tickets: Vec<Ticket> = host.with(|state| {
        let told =
            void.into_iter().filter(|(ticket, leases)| state.waiters.tell_void(*ticket, leases));
        told.map(|(ticket, _)| ticket).collect()
    });
    unblock_soon(host, tickets);
}

/// The queue leaves this key: its jobs and leases are gone. In a cluster it may go to another node:
/// the timer will look.
pub fn on_leaving<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.is_empty()) {
        return;
    }
    if host.is_in_cluster() {
        look_soon(host, database, name);
    } else {
        on_gone_from(host, database, name);
    }
}

/// There is no queue at this key: its jobs and leases are gone.
pub fn on_gone_from<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.is_empty() || state.is_loading) {
        return;
    }
    let tickets = host.with(|state| state.waiters.tell_all_gone(database, name));
    unblock_soon(host, tickets);
}

/// Another queue may be at this key: the timer will look.
pub fn look_soon<H: Host>(host: H, database: Database, name: &[u8]) {
    if host.with(|state| state.waiters.watchers.len_at(database, name)) > 0 {
        host.with(|state| state.to_look_at.insert((database, name.into()), None));
        arm(host, None);
    }
}

/// Other queues may be at the keys of this database, or of all.
pub fn look_at_all_soon<H: Host>(host: H, database: Option<Database>) {
    host.with(|state| {
        let places = state.waiters.watchers.places(database);
        state.to_look_at.extend(places.into_iter().map(|place| (place, None)));
    });
}
