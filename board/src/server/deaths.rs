//! Why the dead jobs of a queue died: their reasons, counted by pattern.
//!
//! To find that out, all of them are read, with their bodies. So it is kept: until the queue's
//! totals say that other jobs are dead, and for as long as it took many times over.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::job::Job;
use super::jobs::{reach, Place};
use super::queue::{Info, State};
use super::walk::{Mark, Order, Walk};
use super::{Name, Result};
use crate::reasons::pattern;

/// What one request reads for, at most.
const READ_WITHIN: Duration = Duration::from_millis(500);
/// How many dead jobs are read of a queue, unless a reader asks for more.
pub const LOOK: u64 = 100_000;
/// How many patterns are told apart; jobs of further ones are counted together.
const PATTERNS_MAX: usize = 1_000;
/// How many queues' are kept.
const QUEUES_MAX: usize = 32;
/// What changes all the time is read anew after so long,
const FRESH: Duration = Duration::from_secs(3);
/// and so much of the time is spent with that at most.
const SHARE: u32 = 20;

/// The jobs that died of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub pattern: String,
    pub jobs: u64,
    pub first_ms: u64,
    pub last_ms: u64,
}

/// Reasons with their jobs, those of most jobs first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reasons {
    pub reasons: Vec<Reason>,
    /// Jobs of reasons beyond the first [`PATTERNS_MAX`].
    pub others: u64,
    pub looked: u64,
    /// Whether all dead jobs were looked at.
    pub is_whole: bool,
    /// Whether as many as were asked for were looked at.
    pub is_done: bool,
}

#[derive(Default)]
pub struct Deaths(Mutex<VecDeque<(Name, Arc<Entry>)>>);

#[derive(Default)]
struct Entry {
    reading: tokio::sync::Mutex<Reading>,
    /// What there is to show while a reader waits.
    shown: Mutex<Option<Arc<Reasons>>>,
}

/// The state of a queue in numbers: while it is the same, so are its dead jobs.
type Sign = [u64; 6];

fn sign(info: &Info) -> Sign {
    let totals = &info.totals;
    [info.counts.dead, totals.dead, totals.kicked, totals.deleted, totals.purged, totals.replaced]
}

/// A reading under way, or done.
struct Reading {
    by_pattern: HashMap<String, Reason>,
    others: u64,
    looked: u64,
    /// `None` when all were looked at.
    mark: Option<Mark>,
    most: u64,
    sign: Sign,
    took: Duration,
    at: Instant,
    is_done: bool,
}

impl Default for Reading {
    fn default() -> Reading {
        Reading {
            by_pattern: HashMap::new(),
            others: 0,
            looked: 0,
            mark: Some(Mark::first(State::Dead)),
            most: 0,
            sign: Sign::default(),
            took: Duration::ZERO,
            at: Instant::now(),
            is_done: false,
        }
    }
}

impl Deaths {
    /// What is known of the first `most` dead jobs after reading on for a moment.
    pub async fn read(&self, place: &Place<'_>, most: u64) -> Result<Arc<Reasons>> {
        let entry = self.entry(place.queue);
        let mut reading = match entry.reading.try_lock() {
            Ok(reading) => reading,
            // While another request reads, its last state will do; the first one is waited for.
            Err(_) => match entry.shown() {
                Some(shown) => return Ok(shown),
                None => {
                    let reading = entry.reading.lock().await;
                    match entry.shown() {
                        Some(shown) => return Ok(shown),
                        None => reading,
                    }
                }
            },
        };
        if reading.is_stale(place.info) {
            *reading = Reading { sign: sign(place.info), ..Reading::default() };
        }
        reading.go_on(place, most).await?;
        let mut shown = entry.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // A whole old one is better than the beginning of a new one.
        match shown.as_ref() {
            Some(old) if !reading.is_done && old.looked > reading.looked => Ok(old.clone()),
            _ => Ok(shown.insert(Arc::new(reading.reasons())).clone()),
        }
    }

    /// What was read last, if it was lately.
    pub fn known(&self, queue: &[u8]) -> Option<Arc<Reasons>> {
        let entries = self.entries();
        entries.iter().find(|(name, _)| **name == *queue)?.1.shown()
    }

    /// A reader has acted on them: what was read is of yesterday.
    pub fn forget(&self, queue: &[u8]) {
        self.entries().retain(|(name, _)| **name != *queue);
    }

    fn entry(&self, queue: &[u8]) -> Arc<Entry> {
        let mut entries = self.entries();
        let at = entries.iter().position(|(name, _)| **name == *queue);
        let entry = at.and_then(|at| entries.remove(at));
        let entry = entry.unwrap_or_else(|| (queue.into(), Arc::default()));
        let found = entry.1.clone();
        entries.push_back(entry);
        if entries.len() > QUEUES_MAX {
            entries.pop_front();
        }
        found
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, VecDeque<(Name, Arc<Entry>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry {
    fn shown(&self) -> Option<Arc<Reasons>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reading {
    fn is_stale(&self, info: &Info) -> bool {
        let is_old = self.at.elapsed() > FRESH.max(self.took * SHARE);
        self.most == 0 || (self.is_done && is_old && self.sign != sign(info))
    }

    async fn go_on(&mut self, place: &Place<'_>, most: u64) -> Result<()> {
        self.most = self.most.max(most);
        let began = Instant::now();
        let from = self.mark.clone();
        if let Some(from) = from.filter(|_| self.looked < self.most) {
            self.is_done = false;
            let mut walk = Walk::new(place, State::Dead, Order::Oldest, from, reach(place.info));
            while walk.mark.is_some() && self.looked < self.most && began.elapsed() < READ_WITHIN {
                let batch = walk.batch().await?;
                batch.iter().for_each(|job| self.count(job));
                self.mark = walk.mark.clone();
            }
            self.took += began.elapsed();
        }
        let is_done = self.mark.is_none() || self.looked >= self.most;
        if is_done && !self.is_done {
            self.at = Instant::now();
        }
        self.is_done = is_done;
        Ok(())
    }

    fn count(&mut self, job: &Job) {
        self.looked += 1;
        let died = job.since.unwrap_or(0);
        let pattern = pattern(job.reason.as_deref().unwrap_or_default());
        let has_room = self.by_pattern.len() < PATTERNS_MAX;
        match self.by_pattern.get_mut(&pattern) {
            Some(reason) => {
                reason.jobs += 1;
                reason.last_ms = died;
            }
            None if has_room => {
                let first = pattern.clone();
                let reason = Reason { pattern, jobs: 1, first_ms: died, last_ms: died };
                self.by_pattern.insert(first, reason);
            }
            None => self.others += 1,
        }
    }

    fn reasons(&self) -> Reasons {
        let mut reasons: Vec<Reason> = self.by_pattern.values().cloned().collect();
        reasons.sort_by(|a, b| b.jobs.cmp(&a.jobs).then_with(|| a.pattern.cmp(&b.pattern)));
        Reasons {
            reasons,
            others: self.others,
            looked: self.looked,
            is_whole: self.mark.is_none(),
            is_done: self.is_done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_counted_and_those_of_most_jobs_are_first() {
        let mut reading = Reading::default();
        for n in 0..30 {
            let reason = if n % 3 == 0 { "gone".into() } else { format!("took {n} ms") };
            reading.count(&Job { reason: Some(reason.into()), since: Some(n), ..Job::new() });
        }
        reading.count(&Job::new());
        let reasons = reading.reasons();
        let told: Vec<_> = reasons
            .reasons
            .iter()
            .map(|c| (c.pattern.as_str(), c.jobs, c.first_ms, c.last_ms))
            .collect();
        assert_eq!(told, [("took # ms", 20, 1, 29), ("gone", 10, 0, 27), ("", 1, 0, 0)]);
        assert_eq!((reasons.looked, reasons.others, reasons.is_whole), (31, 0, false));
    }

    #[test]
    fn a_queue_with_a_reason_for_each_job_takes_no_more_memory_than_others() {
        let word = |n: usize| -> String {
            (0..3).map(|place| char::from(b'a' + (n / 26_usize.pow(place) % 26) as u8)).collect()
        };
        let mut reading = Reading::default();
        for n in 0..PATTERNS_MAX + 500 {
            reading.count(&Job { reason: Some(word(n).into()), ..Job::new() });
        }
        let reasons = reading.reasons();
        assert_eq!((reasons.reasons.len(), reasons.others), (PATTERNS_MAX, 500));
    }

    #[test]
    fn the_queues_looked_at_last_are_kept() {
        let deaths = Deaths::default();
        let first = deaths.entry(b"first");
        for n in 0..QUEUES_MAX - 1 {
            deaths.entry(n.to_string().as_bytes());
        }
        assert!(Arc::ptr_eq(&first, &deaths.entry(b"first")));
        deaths.entry(b"another");
        assert!(Arc::ptr_eq(&first, &deaths.entry(b"first")));
        deaths.forget(b"first");
        assert!(!Arc::ptr_eq(&first, &deaths.entry(b"first")));
        assert_eq!(deaths.entries().len(), QUEUES_MAX);
    }
}
