//! What a queue tells of jobs that are watched: of each that is gone, dead or done, whose lease is
//! void, or that dies at another time, and of no job that isn't watched.

use std::collections::BTreeMap;

use dq::queue::{JobNews, JobView, Lease, Queue, Stage, Time};

use crate::subject::id;
use crate::told::{Bytes, Command};

/// What a client that watches the job wants to hear of.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    lease: Option<Lease>,
    dies_at: Option<Time>,
    is_over: bool,
}

impl Seen {
    fn of(job: &JobView) -> Seen {
        Seen {
            lease: job.progress.lease,
            dies_at: job.dies_at(),
            is_over: matches!(job.progress.stage, Stage::Dead | Stage::Done),
        }
    }
}

/// Watches all jobs.
pub fn all(queue: &mut Queue) -> BTreeMap<Bytes, Seen> {
    let seen: BTreeMap<Bytes, Seen> =
        queue.jobs().map(|job| (job.id.bytes().to_vec(), Seen::of(&job))).collect();
    assert!(seen.keys().all(|name| queue.watch(id(name))));
    seen
}

/// After a command.
pub fn check(queue: &mut Queue, watched: &BTreeMap<Bytes, Seen>, command: &Command) {
    let news = queue.take_news();
    assert!(!queue.has_news());
    for (name, before) in watched {
        let after = queue.get(id(name)).map(|job| Seen::of(&job));
        // A first lease is nobody's news.
        let is_same = after.as_ref().is_some_and(|after| {
            let lease = before.lease.map_or(after.lease, Some);
            *after == Seen { lease, ..*before }
        });
        let of_it = |news: &&JobNews| news.id[..] == name[..];
        let told = news.iter().find(of_it);
        assert!(is_same || told.is_some(), "{command:?} made {after:?} of {before:?}");
        // The lease that it had is told, unless the same command gave it another before.
        let is_known = told.is_none_or(|told| told.lease == before.lease || before.lease.is_none());
        assert!(is_known, "{command:?} of {before:?}: {told:?}");
        let mut finished = news.iter().filter(of_it).filter_map(|news| news.finished.as_ref());
        if let (Command::Done { claim, finishing, .. }, Some(finished)) = (command, finished.next())
        {
            assert_eq!(claim.id, *name);
            assert_eq!(finished.result.as_deref(), finishing.result.as_deref());
        }
    }
    assert!(news.iter().all(|news| watched.contains_key(&news.id[..])), "{news:?}");
}
