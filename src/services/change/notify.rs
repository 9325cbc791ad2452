//! What becomes known of a change: counters in INFO, and keyspace notifications: what a watcher of
//! a queue acts on, one event a command or timer run, however many jobs it is about. They are of
//! the class `d` (module types) of `notify-keyspace-events`, and cost nothing while that is off. A
//! replica, where nothing happens by itself, tells nothing.

use std::ffi::CStr;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::{
    Add, Added, Affected, Alter, Altered, Bury, Deliveries, Done, DoneOutcome, Effect, Events,
    Finish, ForgetGroups, KickJob, Operation, PassOver, Pause, Pop, PopById, Queue, Release,
    Remove, Renew, Resume, Resumed, Settle, Touch,
};
use crate::services::host::Host;
use crate::services::place::QueueKey;

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

/// What is to be said of a change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Announcement {
    event: Option<&'static CStr>,
    counts: [Option<(&'static AtomicU64, usize)>; 2],
}

impl Announcement {
    const NONE: Announcement = Announcement { event: None, counts: [None; 2] };

    fn event(event: &'static CStr) -> Announcement {
        Announcement { event: Some(event), ..Announcement::NONE }
    }

    fn count(self, counter: &'static AtomicU64, jobs: usize) -> Announcement {
        let [first, _] = self.counts;
        Announcement { counts: [Some((counter, jobs)), first], ..self }
    }
}

/// An operation of which is known what is to be said of it.
pub trait Announced: Operation {
    /// Then it has to be told up to where leases belong to others.
    const GIVES_LEASES: bool = false;

    /// Of an outcome that has changed something. Nothing, where nobody waits to hear of it.
    fn announce(_outcome: &Self::Outcome) -> Announcement {
        Announcement::NONE
    }

    /// What was handed out.
    fn deliveries(_outcome: &Self::Outcome) -> Option<&Deliveries> {
        None
    }
}

impl Announced for Add<'_> {
    fn announce(_: &Added) -> Announcement {
        Announcement::event(ADDED).count(&JOBS_ADDED, 1)
    }
}

impl Announced for Pop {
    const GIVES_LEASES: bool = true;

    fn announce(deliveries: &Deliveries) -> Announcement {
        announce_deliveries(deliveries)
    }

    fn deliveries(deliveries: &Deliveries) -> Option<&Deliveries> {
        Some(deliveries)
    }
}

impl Announced for PopById<'_> {
    const GIVES_LEASES: bool = true;

    fn announce(deliveries: &Deliveries) -> Announcement {
        announce_deliveries(deliveries)
    }

    fn deliveries(deliveries: &Deliveries) -> Option<&Deliveries> {
        Some(deliveries)
    }
}

fn announce_deliveries(deliveries: &Deliveries) -> Announcement {
    let counted = Announcement::NONE.count(&JOBS_POPPED, deliveries.len());
    if deliveries.are_finished() && !deliveries.is_empty() {
        Announcement { event: Some(FINISHED), ..counted.count(&JOBS_FINISHED, deliveries.len()) }
    } else {
        counted
    }
}

impl Announced for Finish<'_> {
    fn announce(finished: &Affected) -> Announcement {
        Announcement::event(FINISHED).count(&JOBS_FINISHED, finished.0)
    }
}

impl Announced for Done<'_> {
    fn announce(followed: &DoneOutcome) -> Announcement {
        let added = match followed {
            DoneOutcome::Yes { ids } => ids.iter().flatten().count(),
            DoneOutcome::No | DoneOutcome::Refused(_) => 0,
        };
        Announcement::event(FINISHED).count(&JOBS_FINISHED, 1).count(&JOBS_ADDED, added)
    }
}

impl Announced for Release<'_> {}

impl Announced for Touch<'_> {}

impl Announced for Renew<'_> {}

impl Announced for Bury<'_> {}

impl Announced for Remove<'_> {
    fn announce(removed: &Affected) -> Announcement {
        Announcement::event(DELETED).count(&JOBS_DELETED, removed.0)
    }
}

impl Announced for ForgetGroups {}

impl Announced for Settle<'_> {}

impl Announced for PassOver {}

impl Announced for KickJob<'_> {}

impl Announced for Pause<'_> {
    fn announce(_: &Altered) -> Announcement {
        Announcement::event(PAUSED)
    }
}

impl Announced for Resume<'_> {
    fn announce(_: &Resumed) -> Announcement {
        Announcement::event(RESUMED)
    }
}

impl Announced for Alter {}

impl Announced for Effect<'_> {}

pub fn count(announcement: &Announcement) {
    for (counter, jobs) in announcement.counts.iter().flatten() {
        counter.fetch_add(*jobs as u64, Ordering::Relaxed);
    }
}

/// What has happened in the queue. Whatever can't be is told to the operator.
pub fn events<H: Host>(host: H, queue: &mut Queue) -> Events {
    let news = queue.take_events();
    if let Some(what) = news.bug {
        host.bug(what);
    }
    news
}

/// Tells watchers what has just been done to the queue, if anything, and what time did to it.
pub fn publish<H: Host>(
    host: H,
    key: &impl QueueKey,
    queue: &mut Queue,
    done: Option<&Announcement>,
) {
    let Events { is_any_ready, is_any_dead, .. } = events(host, queue);
    let event = done.and_then(|announcement| announcement.event);
    if event.is_none() && !is_any_ready && !is_any_dead {
        return;
    }
    if !key.is_notifying() || !host.with(|state| state.is_primary) {
        return;
    }
    let events = [event, is_any_dead.then_some(DEAD), is_any_ready.then_some(READY)];
    events.into_iter().flatten().for_each(|event| key.notify(event));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Circumstances, Claim, Claims, Id, Ids, Mode, Removal};

    const ALL: [(&AtomicU64, &str); 4] = [
        (&JOBS_ADDED, "added"),
        (&JOBS_POPPED, "popped"),
        (&JOBS_FINISHED, "finished"),
        (&JOBS_DELETED, "deleted"),
    ];

    fn name_of(counter: &AtomicU64) -> &'static str {
        ALL.into_iter().find(|(one, _)| std::ptr::eq(*one, counter)).unwrap().1
    }

    fn said<O: Announced>(
        queue: &mut Queue,
        operation: &O,
    ) -> (Option<&'static str>, Vec<(&'static str, usize)>) {
        let outcome = queue.apply(&Circumstances::default(), operation);
        let Announcement { event, counts } = O::announce(&outcome);
        let counts = counts.into_iter().flatten().map(|(counter, jobs)| (name_of(counter), jobs));
        (event.map(|event| event.to_str().unwrap()), counts.collect())
    }

    #[test]
    fn each_change_is_counted_and_has_its_event() {
        let [a, b, c, d, e] = [b"a", b"b", b"c", b"d", b"e"].map(|name| Id::new(name).unwrap());
        let mut queue = Queue::new((1, 2));
        for id in [a, b, c, d, e] {
            assert_eq!(
                said(&mut queue, &Add::plain(id, b"x")),
                (Some("dq.added"), vec![("added", 1)])
            );
        }
        let claims = [a, b].map(|id| Claim { id, lease: None });
        assert_eq!(said(&mut queue, &Pop { count: 2, ..Pop::ONE }), (None, vec![("popped", 2)]));
        assert_eq!(
            said(&mut queue, &Finish { claims: Claims::from_slice(&claims) }),
            (Some("dq.finished"), vec![("finished", 2)])
        );
        let no_ack = Pop { mode: Mode::NoAck, ..Pop::ONE };
        assert_eq!(
            said(&mut queue, &no_ack),
            (Some("dq.finished"), vec![("finished", 1), ("popped", 1)])
        );
        let by_id = PopById { ids: &[d], ttr: None, mode: Mode::Lease };
        assert_eq!(said(&mut queue, &by_id), (None, vec![("popped", 1)]));
        assert_eq!(
            said(
                &mut queue,
                &Remove { ids: Ids::from_slice(&[d, e]), counted_as: Removal::Deleted }
            ),
            (Some("dq.deleted"), vec![("deleted", 2)])
        );
        let pause = Pause { group: None, span: None };
        assert_eq!(said(&mut queue, &pause), (Some("dq.paused"), vec![]));
        assert_eq!(said(&mut queue, &Resume::Queue), (Some("dq.resumed"), vec![]));
        assert_eq!(said(&mut queue, &no_ack), (None, vec![("popped", 0)]), "there is nothing left");
    }

    /// Other tests count at the same time.
    #[test]
    fn counters_count() {
        const MANY: usize = 1 << 40;
        for (times, (counter, name)) in ALL.into_iter().enumerate() {
            let most =
                |(counter, _): (&AtomicU64, _)| counter.load(Ordering::Relaxed) as usize / MANY;
            let before = ALL.map(most);
            let announcement = Announcement::NONE.count(counter, MANY);
            (0..=times).for_each(|_| count(&announcement));
            for (other, before) in ALL.into_iter().zip(before) {
                let expected = if other.1 == name { times + 1 } else { 0 };
                assert_eq!(most(other) - before, expected, "{} when {name} is counted", other.1);
            }
        }
    }
}
