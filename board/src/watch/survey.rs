//! The jobs that come back, of all queues: found by DQ.SCAN … SCHEDULED, a part each time that a
//! page asks, and kept in memory within a bound. Only queues whose DQ.INFO tells of schedules are
//! gone through. While no page asks, nothing is done.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use redis::Pipeline;

use super::Watch;
use crate::server::deployment::outcome;
use crate::server::job::Job;
use crate::server::jobs::SEEK_WITHIN;
use crate::server::node::Node;
use crate::server::replies::scanned;
use crate::server::{Name, Result, Trouble};

/// How many are kept: about 200 bytes each.
const ROWS_MAX: usize = 100_000;
/// Queues that are begun in one go, and how many jobs of each are looked at then.
const QUEUES_AT_ONCE: usize = 50;
const FIRST_LOOK: usize = 200;
/// How many jobs a later DQ.SCAN looks at, where it finds schedules and where it doesn't.
const LOOK: usize = 1_000;
const LOOK_MAX: usize = 10_000;
/// Jobs come with their bodies: so many in one go.
const GETS_AT_ONCE: usize = 100;
/// After a pass there is a rest, so many times as long as the pass took, and at least so long.
const REST: u32 = 5;
const REST_MIN: Duration = Duration::from_secs(1);

/// A job of a queue.
pub type Key = (Name, Name);

/// What a job is sorted by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rank {
    /// `None` when it won't run by itself.
    pub next: Option<u64>,
    pub failed: u64,
    pub missed: u64,
    pass: u64,
}

impl Rank {
    fn of(job: &Job, pass: u64) -> Option<Rank> {
        let schedule = job.schedule.as_deref()?;
        let (failed, missed) = (schedule.failed_runs, schedule.missed);
        Some(Rank { next: job.next_run(), failed, missed, pass })
    }
}

/// How far it is.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// All queues have been gone through at least once.
    pub has_passed: bool,
    /// No pass is under way: what was found is all that there was.
    pub is_resting: bool,
    /// Jobs that were looked at in this pass.
    pub looked: u64,
    /// The queue that is gone through now, when that takes long.
    pub queue: Option<Name>,
    /// There are more than are kept.
    pub is_full: bool,
    /// The server refused to tell of some, for want of a right.
    pub refused: Option<Trouble>,
}

#[derive(Debug, Default)]
pub struct Found {
    pub rows: BTreeMap<Key, Rank>,
    pub progress: Progress,
}

#[derive(Default)]
pub struct Survey {
    found: Mutex<Found>,
    walk: tokio::sync::Mutex<Walk>,
}

/// Where a pass is.
#[derive(Default)]
struct Walk {
    pass: u64,
    /// The last queue that was begun.
    behind: Option<Name>,
    unfinished: VecDeque<Part>,
    /// Schedules that this pass has found.
    found: usize,
    refused: Option<Trouble>,
    took: Duration,
    ended: Option<Instant>,
}

/// A queue that is not gone through yet.
struct Part {
    name: Name,
    node: Arc<Node>,
    cursor: u64,
    look: usize,
    /// Schedules that DQ.INFO tells of, and those found.
    there: u64,
    found: u64,
}

impl Walk {
    /// What was heard, or nothing.
    fn heard<T: Default>(&mut self, heard: Result<T>) -> T {
        heard.unwrap_or_else(|trouble| {
            if trouble.is("NOPERM") {
                self.refused.get_or_insert(trouble);
            }
            T::default()
        })
    }
}

impl Survey {
    pub fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A job that was just read for a page, or is gone.
    pub fn note(&self, key: &Key, job: Option<&Job>) {
        let mut found = self.found();
        let pass = found.rows.get(key).map_or(u64::MAX, |row| row.pass);
        match job.and_then(|job| Rank::of(job, pass)) {
            Some(row) if found.rows.contains_key(key) => {
                found.rows.insert(key.clone(), row);
            }
            Some(_) => {}
            None => {
                found.rows.remove(key);
            }
        }
    }

    /// Goes on for a while. One reader's page does it for all.
    pub async fn go_on(&self, watch: &Watch) {
        let Ok(mut walk) = self.walk.try_lock() else { return };
        if walk.ended.is_some_and(|ended| ended.elapsed() < REST_MIN.max(walk.took * REST)) {
            return;
        }
        if walk.ended.take().is_some() {
            *walk = Walk { pass: walk.pass + 1, ..Walk::default() };
            let mut found = self.found();
            (found.progress.looked, found.progress.is_resting) = (0, false);
        }
        let began = Instant::now();
        while began.elapsed() < SEEK_WITHIN && walk.ended.is_none() {
            // A server that doesn't answer now is asked again when the page is.
            if self.step(&mut walk, watch).await.is_err() {
                break;
            }
        }
        walk.took += began.elapsed();
        let mut found = self.found();
        found.progress.queue = walk.unfinished.front().map(|part| part.name.clone());
    }

    async fn step(&self, walk: &mut Walk, watch: &Watch) -> Result<()> {
        let mut parts = match walk.unfinished.pop_front() {
            Some(part) => vec![part],
            None => begin(walk, watch),
        };
        let is_full = walk.found >= ROWS_MAX;
        if parts.is_empty() || is_full {
            let known = watch.known();
            let has_read = known.has_passed && known.sums.read >= known.sums.queues;
            drop(known);
            self.end(walk, is_full, has_read);
            return Ok(());
        }
        let heard = self.look(walk, &mut parts).await;
        if heard.is_err() {
            // The pass begins anew: so none is taken for gone that wasn't seen.
            *walk = Walk { pass: walk.pass, ..Walk::default() };
            self.found().progress.looked = 0;
            return heard;
        }
        let is_open = |part: &Part| part.cursor != 0 && part.found < part.there;
        walk.unfinished.extend(parts.into_iter().filter(is_open));
        Ok(())
    }

    /// One DQ.SCAN of each, and what it finds.
    async fn look(&self, walk: &mut Walk, parts: &mut [Part]) -> Result<()> {
        let Some(node) = parts.first().map(|part| part.node.clone()) else { return Ok(()) };
        let mut commands = Pipeline::new();
        for part in parts.iter() {
            let scan = commands.cmd("DQ.SCAN").arg(&part.name[..]).arg(part.cursor);
            scan.arg("SCHEDULED").arg("COUNT").arg(part.look);
        }
        let replies = node.ask(&mut commands).await?;
        let mut keys = Vec::new();
        for (part, reply) in parts.iter_mut().zip(replies) {
            // One that is gone, or has moved to another server, is found there in the next pass.
            let scanned = outcome(Some(reply)).and_then(scanned);
            let (next, ids) = walk.heard(scanned);
            self.found().progress.looked += part.look as u64;
            part.cursor = next;
            part.found += ids.len() as u64;
            part.look = if ids.is_empty() { LOOK_MAX } else { LOOK };
            keys.extend(ids.into_iter().map(|id| (part.name.clone(), Name::from(id))));
        }
        for keys in keys.chunks(GETS_AT_ONCE) {
            let jobs = get(&node, keys).await?;
            let mut found = self.found();
            for (key, job) in keys.iter().zip(jobs) {
                let job = walk.heard(job);
                if let Some(row) = job.and_then(|job| Rank::of(&job, walk.pass)) {
                    walk.found += 1;
                    found.rows.insert(key.clone(), row);
                }
            }
        }
        Ok(())
    }

    /// What this pass hasn't seen is gone, if it has seen all.
    fn end(&self, walk: &mut Walk, is_full: bool, has_read: bool) {
        let mut found = self.found();
        found.rows.retain(|_, row| row.pass == walk.pass);
        found.progress.is_full = is_full;
        found.progress.refused = walk.refused.take();
        // Before all queues are known, a pass goes through few of them.
        found.progress.has_passed |= has_read;
        found.progress.is_resting = true;
        walk.unfinished.clear();
        walk.ended = Some(Instant::now());
    }
}

/// The next queues that have schedules, of one server.
fn begin(walk: &mut Walk, watch: &Watch) -> Vec<Part> {
    let known = watch.known();
    let mut parts: Vec<Part> = Vec::new();
    for (name, reading) in known.behind(walk.behind.as_ref()) {
        let there = reading.info.as_ref().map_or(0, |info| info.schedules);
        if there == 0 {
            walk.behind = Some(name.clone());
            continue;
        }
        let is_other = parts.first().is_some_and(|part| !Arc::ptr_eq(&part.node, &reading.node));
        if is_other || parts.len() >= QUEUES_AT_ONCE {
            break;
        }
        walk.behind = Some(name.clone());
        let node = reading.node.clone();
        parts.push(Part { name: name.clone(), node, cursor: 0, look: FIRST_LOOK, there, found: 0 });
    }
    parts
}

/// Jobs of queues of one server; `None` for one that is gone.
async fn get(node: &Node, keys: &[Key]) -> Result<Vec<Result<Option<Job>>>> {
    let mut commands = Pipeline::new();
    keys.iter().for_each(|(queue, id)| {
        commands.add_command(Job::command(queue, id));
    });
    let replies = node.ask(&mut commands).await?;
    Ok(replies.into_iter().map(|reply| outcome(Some(reply)).and_then(Job::read)).collect())
}

impl Watch {
    /// Jobs for a page, as they are now; those that are gone are left out, and forgotten.
    pub async fn scheduled(&self, keys: &[Key]) -> Vec<(Key, Job)> {
        let mut jobs = Vec::with_capacity(keys.len());
        for (key, job) in self.asked(keys).await {
            if let Err(Trouble::Unreachable { .. } | Trouble::Unanswered { .. }) = job {
                continue;
            }
            let job = job.ok().flatten();
            self.survey.note(&key, job.as_ref());
            jobs.extend(job.filter(|job| job.schedule.is_some()).map(|job| (key, job)));
        }
        jobs
    }

    /// Jobs of any queues, those of a server in one go; `None` where there is none. Queues that are
    /// gone are left out.
    pub async fn asked(&self, keys: &[Key]) -> Vec<(Key, Result<Option<Job>>)> {
        let mut jobs = Vec::with_capacity(keys.len());
        let mut by_node: Vec<(Arc<Node>, Vec<Key>)> = Vec::new();
        for key in keys {
            let Some(node) = self.node_of(&key.0) else { continue };
            match by_node.iter_mut().find(|(other, _)| Arc::ptr_eq(other, &node)) {
                Some((_, keys)) => keys.push(key.clone()),
                None => by_node.push((node, vec![key.clone()])),
            }
        }
        for (node, keys) in by_node {
            match get(&node, &keys).await {
                Ok(read) => jobs.extend(keys.into_iter().zip(read)),
                Err(trouble) => {
                    jobs.extend(keys.into_iter().map(|key| (key, Err(trouble.clone()))));
                }
            }
        }
        jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::deployment::Deployment;
    use crate::server::queue::Info;

    /// What the pass before has found is shown while the next one is under way, also when that was
    /// as much as is kept.
    #[tokio::test]
    async fn a_pass_does_not_end_for_what_the_one_before_has_found() {
        let certificates = redis::TlsCertificates { client_tls: None, root_cert: None };
        let deployment = Deployment::new("redis://127.0.0.1:1", &[], certificates).unwrap();
        let client = redis::Client::open("redis://127.0.0.1:1").unwrap();
        let node = Arc::new(Node::new("127.0.0.1:1".into(), client));
        let watch = Watch::new(String::new(), deployment, 10, 10);
        let info = Info { schedules: 2 * ROWS_MAX as u64, ..Info::default() };
        let queue = Name::from(&b"mail"[..]);
        watch.note_for_tests(&queue, info, &node);

        let row =
            |n: usize| ((queue.clone(), Name::from(n.to_string().into_bytes())), Rank::default());
        watch.survey.found().rows.extend((0..ROWS_MAX).map(row));
        let mut walk = Walk { pass: 1, ..Walk::default() };
        assert!(watch.survey.step(&mut walk, &watch).await.is_err(), "nobody answers there");
        assert_eq!(watch.survey.found().rows.len(), ROWS_MAX);

        let mut walk = Walk { pass: 1, found: ROWS_MAX, ..Walk::default() };
        assert!(watch.survey.step(&mut walk, &watch).await.is_ok());
        assert!(walk.ended.is_some() && watch.survey.found().progress.is_full);
    }
}
