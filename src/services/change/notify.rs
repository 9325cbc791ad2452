//! What becomes known of a change: counters in INFO, and keyspace notifications: what a watcher of
//! a queue acts on, one event a command or timer run, however many jobs it is about. They are of
//! the class `d` (module types) of `notify-keyspace-events`, and cost nothing while that is off. A
//! replica, where nothing happens by itself, tells nothing.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::{Events, Queue};
use crate::services::host::Host;
use crate::services::key_ref::QueueKey;

const ADDED: &CStr = c"dq.added";
const READY: &CStr = c"dq.ready";
const FINISHED: &CStr = c"dq.finished";
const DEAD: &CStr = c"dq.dead";
const DELETED: &CStr = c"dq.deleted";
const PAUSED: &CStr = c"dq.paused";
const RESUMED: &CStr = c"dq.resumed";

/// What clients did since the server started.
pub static JOBS_ADDED: AtomicU64 = AtomicU64::new(0);
pub static JOBS_POPPED: AtomicU64 = AtomicU64::new(0);
pub static JOBS_FINISHED: AtomicU64 = AtomicU64::new(0);
pub static JOBS_DELETED: AtomicU64 = AtomicU64::new(0);
/// Jobs that left for a sink: they count among the others, too.
pub static JOBS_SUNK: AtomicU64 = AtomicU64::new(0);

/// What has happened in the queue since the last call, which the counters of INFO include from here
/// on. Whatever can't be is told to the operator.
pub fn events<H: Host>(host: H, queue: &mut Queue) -> Events {
    let events = queue.take_events();
    if let Some(what) = events.bug {
        host.bug(what);
    }
    count(&events);
    events
}

fn count(events: &Events) {
    let counts = [
        (&JOBS_ADDED, events.added),
        (&JOBS_POPPED, events.delivered),
        (&JOBS_FINISHED, events.finished),
        (&JOBS_DELETED, events.removed),
    ];
    for (counter, jobs) in counts {
        if jobs > 0 {
            counter.fetch_add(jobs.into(), Ordering::Relaxed);
        }
    }
}

/// Tells watchers what has been done to the queue, and what time did to it.
pub fn publish<H: Host>(host: H, key: &impl QueueKey, queue: &mut Queue) {
    let events = events(host, queue);
    let told = names(&events);
    if told.iter().all(Option::is_none) {
        return;
    }
    if !key.is_notifying() || !host.with(|state| state.is_primary) {
        return;
    }
    told.into_iter().flatten().for_each(|event| key.notify(event));
}

/// What watchers are told, in its order: first what was done, then what jobs have become.
fn names(events: &Events) -> [Option<&'static CStr>; 7] {
    [
        (events.added > 0).then_some(ADDED),
        (events.finished > 0).then_some(FINISHED),
        (events.removed > 0).then_some(DELETED),
        events.was_paused.then_some(PAUSED),
        events.was_resumed.then_some(RESUMED),
        events.is_any_dead.then_some(DEAD),
        events.is_any_ready.then_some(READY),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{
        Add, Circumstances, Claim, Claims, Done, Finish, Id, Ids, Mode, Operation, Pause, Pop,
        PopById, Removal, Remove, Resume,
    };

    const ALL: [&AtomicU64; 4] = [&JOBS_ADDED, &JOBS_POPPED, &JOBS_FINISHED, &JOBS_DELETED];

    /// The events of an operation; and how many jobs were added, popped, finished, deleted.
    fn said(queue: &mut Queue, operation: &impl Operation) -> (Vec<&'static str>, [u32; 4]) {
        queue.apply(&Circumstances::default(), operation);
        let events = queue.take_events();
        let names = names(&events).into_iter().flatten().map(|name| name.to_str().unwrap());
        let Events { added, delivered, finished, removed, .. } = events;
        (names.collect(), [added, delivered, finished, removed])
    }

    #[test]
    fn each_change_is_counted_and_has_its_event() {
        let [a, b, c, d, e] = [b"a", b"b", b"c", b"d", b"e"].map(|name| Id::new(name).unwrap());
        let mut queue = Queue::new((1, 2));
        for id in [a, b, c, d, e] {
            let added = said(&mut queue, &Add::plain(id, b"x"));
            assert_eq!(added, (vec!["dq.added", "dq.ready"], [1, 0, 0, 0]));
        }
        let claims = [a, b].map(|id| Claim { id, lease: None });
        assert_eq!(said(&mut queue, &Pop { count: 2, ..Pop::ONE }), (vec![], [0, 2, 0, 0]));
        let finish = Finish { claims: Claims::from_slice(&claims[..1]) };
        assert_eq!(said(&mut queue, &finish), (vec!["dq.finished"], [0, 0, 1, 0]));
        let adds = vec![Add::plain(a, b"x")];
        let done = Done { claim: claims[1], result: None, keep: None, adds };
        let events = vec!["dq.added", "dq.finished", "dq.ready"];
        assert_eq!(said(&mut queue, &done), (events, [1, 0, 1, 0]));
        let no_ack = Pop { mode: Mode::NoAck, ..Pop::ONE };
        assert_eq!(said(&mut queue, &no_ack), (vec!["dq.finished"], [0, 1, 1, 0]));
        let by_id = PopById { ids: &[d], ttr: None, mode: Mode::Lease };
        assert_eq!(said(&mut queue, &by_id), (vec![], [0, 1, 0, 0]));
        let remove = Remove { ids: Ids::from_slice(&[d, e, a]), counted_as: Removal::Deleted };
        assert_eq!(said(&mut queue, &remove), (vec!["dq.deleted"], [0, 0, 0, 3]));
        let pause = Pause { group: None, span: None };
        assert_eq!(said(&mut queue, &pause), (vec!["dq.paused"], [0; 4]));
        assert_eq!(said(&mut queue, &Resume::Queue), (vec!["dq.resumed"], [0; 4]));
        assert_eq!(said(&mut queue, &Resume::Queue), (vec![], [0; 4]), "it goes on already");
        assert_eq!(said(&mut queue, &no_ack), (vec![], [0; 4]), "there is nothing left");
    }

    /// Other tests count at the same time.
    #[test]
    fn counters_count() {
        const MANY: u32 = 1 << 30;
        let most = |counter: &AtomicU64| counter.load(Ordering::Relaxed) / u64::from(MANY);
        for counted in 0..ALL.len() {
            let before = ALL.map(most);
            let mut events = Events::default();
            let fields = [
                &mut events.added,
                &mut events.delivered,
                &mut events.finished,
                &mut events.removed,
            ];
            *fields.into_iter().nth(counted).unwrap() = MANY;
            count(&events);
            for (position, (other, before)) in ALL.into_iter().zip(before).enumerate() {
                assert_eq!(
                    most(other) - before,
                    u64::from(position == counted),
                    "{counted} {position}"
                );
            }
        }
    }
}
