//! What is known of all queues, and what a reading adds to it.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::charts::{Charts, Step};
use super::history::History;
use super::Asked;
use crate::server::forecast::Due;
use crate::server::health::Health;
use crate::server::node::Node;
use crate::server::queue::{Counts, Info, Totals};
use crate::server::why::Seen;
use crate::server::Name;

/// Longer names don't fit into a URL: such queues are only counted.
const NAME_MAX: usize = 4_096;
/// Queues that have a small chart of the last hour: about a kilobyte each.
const HISTORIES_MAX: usize = 10_000;
/// A queue whose oldest ready job is so old is stuck: a worker that lives would have taken it.
const STUCK_MS: u64 = 60_000;
/// Rates are taken over at least so long.
const RATE_OVER: Duration = Duration::from_millis(1_500);

/// One queue.
#[derive(Debug)]
pub struct Reading {
    pub node: Arc<Node>,
    /// `None` until it is first read.
    pub info: Option<Info>,
    /// `None` until it is first read, and where our user may not ask.
    pub due: Option<Due>,
    pub rates: Option<Rates>,
    pub history: Option<Box<History>>,
    /// Our user may not look at it.
    pub is_denied: bool,
    /// How much it needs a look, as it stood at the end of the last turn: see [`Seen::illness`].
    pub illness: u32,
    read_at: Option<Instant>,
    base: Option<(Instant, Totals)>,
    /// It was made after all others had been found: all that it counts is news.
    is_new: bool,
    pass: u64,
}

/// Jobs a second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    pub added: f64,
    pub popped: f64,
}

/// All queues together.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    pub queues: usize,
    /// How many of them have been read.
    pub read: usize,
    /// How many of these our user may not look at.
    pub denied: usize,
    pub counts: Counts,
    /// Jobs that come back.
    pub schedules: u64,
    pub waiting_consumers: u64,
    pub rates: Rates,
    /// Of all queues.
    pub oldest_ready_ms: u64,
    /// Queues in which a job has long been ready and no pause is why.
    pub stuck: usize,
}

/// What `INFO` says of a server.
#[derive(Debug, Clone, Default)]
pub struct ServerFacts {
    pub address: String,
    pub version: String,
    pub dq_version: Option<String>,
    /// Whether it knows DQ's commands.
    pub has_dq: bool,
    pub evicts: bool,
    /// By how much its clock is ahead of ours, or behind.
    pub clock_ahead_ms: i64,
    pub health: Health,
    pub totals: ServerTotals,
}

/// All queues of a server, also those that aren't known one by one, since it started.
#[derive(Debug, Clone, Default)]
pub struct ServerTotals {
    pub counts: Counts,
    pub waiting_consumers: u64,
    pub watchers: u64,
    pub added: u64,
    pub popped: u64,
    pub finished: u64,
    pub deleted: u64,
    /// Jobs that left for the streams of sinks.
    pub sunk: u64,
    pub diverged: u64,
    pub bugs: u64,
}

#[derive(Debug)]
pub struct Known {
    queues: BTreeMap<Name, Reading>,
    max: usize,
    pass: u64,
    left_out: u64,
    left_out_in_pass: u64,
    histories: usize,
    pub has_passed: bool,
    pub sums: Sums,
    pub servers: Vec<ServerFacts>,
    pub charts: Charts,
    /// Queues that need a look, those that need it most first.
    ill: Vec<Name>,
}

impl Reading {
    pub fn is_fresh(&self, fresh: Duration) -> bool {
        self.read_at.is_some_and(|at| at.elapsed() < fresh)
    }

    /// Also tells what has happened since the last time, where that can be told.
    fn take(&mut self, info: Info, now: Instant, now_ms: u64) -> Option<Step> {
        let step = match &self.info {
            Some(was) => Step::between(was, &info),
            None => self.is_new.then(|| Step::from_start(&info)),
        };
        self.is_new = false;
        if let Some(history) = &mut self.history {
            let [_, popped, ..] = step.as_ref().map(|step| step.sums).unwrap_or_default();
            history.note(now_ms, info.counts.ready, popped);
        }
        match &self.base {
            // Deleted and made anew: it counts from 0 again.
            Some((_, base))
                if base.added > info.totals.added || base.popped > info.totals.popped =>
            {
                self.base = Some((now, info.totals.clone()));
                self.rates = None;
            }
            Some((at, base)) => {
                let over = now.duration_since(*at);
                if over >= RATE_OVER {
                    let rate =
                        |was: u64, is: u64| is.saturating_sub(was) as f64 / over.as_secs_f64();
                    self.rates = Some(Rates {
                        added: rate(base.added, info.totals.added),
                        popped: rate(base.popped, info.totals.popped),
                    });
                    self.base = Some((now, info.totals.clone()));
                }
            }
            None => self.base = Some((now, info.totals.clone())),
        }
        self.info = Some(info);
        self.is_denied = false;
        self.read_at = Some(now);
        step
    }
}

impl Known {
    pub fn new(max: usize, charts: Charts) -> Known {
        Known {
            queues: BTreeMap::new(),
            max,
            pass: 1,
            left_out: 0,
            left_out_in_pass: 0,
            histories: 0,
            has_passed: false,
            sums: Sums::default(),
            servers: Vec::new(),
            charts,
            ill: Vec::new(),
        }
    }

    pub fn get(&self, name: &[u8]) -> Option<&Reading> {
        self.queues.get(name)
    }

    /// By name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, &Reading)> {
        self.queues.iter()
    }

    /// All queues: those that need a look first, the others by name.
    pub fn ill_first(&self) -> impl Iterator<Item = &Name> {
        let well = self.iter().filter(|(_, reading)| reading.illness == 0).map(|(name, _)| name);
        self.ill.iter().filter(|name| self.queues.contains_key(*name)).chain(well)
    }

    /// Of one that hasn't told it, nothing is known.
    pub fn health(&self, node: &Node) -> Health {
        self.facts(node).map(|facts| facts.health.clone()).unwrap_or_default()
    }

    /// By how much the clock of a node is ahead of ours; 0 where that isn't known.
    pub fn clock_ahead_ms(&self, node: &Node) -> i64 {
        self.facts(node).map_or(0, |facts| facts.clock_ahead_ms)
    }

    fn facts(&self, node: &Node) -> Option<&ServerFacts> {
        self.servers.iter().find(|server| server.address == node.address)
    }

    /// Those behind a name, by name.
    pub fn behind(&self, name: Option<&Name>) -> impl Iterator<Item = (&Name, &Reading)> {
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        self.queues.range((from, Bound::Unbounded))
    }

    /// Queues that there are besides those known: beyond the limit, or with too long a name.
    pub fn left_out(&self) -> u64 {
        self.left_out.max(self.left_out_in_pass)
    }

    /// SCAN has found a queue.
    pub fn found(&mut self, name: Vec<u8>, node: &Arc<Node>, now_ms: u64) {
        let pass = self.pass;
        if let Some(reading) = self.queues.get_mut(name.as_slice()) {
            reading.pass = pass;
            if !Arc::ptr_eq(&reading.node, node) {
                reading.node = node.clone();
            }
        } else if name.len() > NAME_MAX || self.queues.len() >= self.max {
            self.left_out_in_pass += 1;
        } else {
            self.insert(Name::from(name), node, now_ms);
        }
    }

    /// A reading of a queue that was asked for at this time, `None` when there is no such queue any
    /// more.
    pub fn note(&mut self, name: &Name, info: Option<Info>, node: &Arc<Node>, asked: Asked) {
        let Some(info) = info else { return self.forget(name) };
        if !self.queues.contains_key(name) {
            if name.len() > NAME_MAX || self.queues.len() >= self.max {
                return;
            }
            self.insert(name.clone(), node, asked.ms);
        }
        let Some(reading) = self.queues.get_mut(name) else { return };
        if reading.read_at.is_some_and(|at| at > asked.at) {
            // A reader's page and the poller have asked at the same time: this is the older answer.
            return;
        }
        reading.node = node.clone();
        let step = reading.take(info, asked.at, asked.ms);
        if let Some(info) = &reading.info {
            self.charts.note(name, asked.ms, step.as_ref(), info);
        }
    }

    /// All queues as they stand, for their chart.
    pub fn note_sums(&mut self, now_ms: u64) {
        self.charts.see_all(now_ms, self.sums.counts.ready, self.sums.oldest_ready_ms);
    }

    pub fn note_due(&mut self, name: &[u8], due: Option<Due>) {
        if let Some(reading) = self.queues.get_mut(name) {
            reading.due = due;
        }
    }

    pub fn forget(&mut self, name: &[u8]) {
        if let Some(reading) = self.queues.remove(name) {
            self.histories -= usize::from(reading.history.is_some());
        }
    }

    pub fn deny(&mut self, name: &[u8]) {
        if let Some(reading) = self.queues.get_mut(name) {
            reading.info = None;
            reading.is_denied = true;
        }
    }

    /// SCAN has been through all nodes: what it didn't find is gone.
    pub fn end_pass(&mut self) {
        let pass = self.pass;
        self.queues.retain(|_, reading| reading.pass >= pass);
        self.histories = self.queues.values().filter(|reading| reading.history.is_some()).count();
        self.left_out = std::mem::take(&mut self.left_out_in_pass);
        self.pass += 1;
        self.has_passed = true;
    }

    /// Up to so many names behind one, and from the first again after the last.
    pub fn names_after(&self, name: Option<&Name>, at_most: usize) -> Vec<Name> {
        self.behind(name)
            .chain(self.queues.iter())
            .take(at_most.min(self.queues.len()))
            .map(|(name, _)| name.clone())
            .collect()
    }

    pub fn unread(&self, at_most: usize) -> Vec<Name> {
        if self.sums.read >= self.queues.len() && self.sums.queues == self.queues.len() {
            return Vec::new();
        }
        let unread =
            self.queues.iter().filter(|(_, reading)| reading.info.is_none() && !reading.is_denied);
        unread.take(at_most).map(|(name, _)| name.clone()).collect()
    }

    pub fn add_up(&mut self) {
        let mut sums = Sums { queues: self.queues.len(), ..Sums::default() };
        let mut ill = Vec::new();
        let unknown = Health::default();
        for (name, reading) in &mut self.queues {
            reading.illness = 0;
            sums.read += usize::from(reading.info.is_some() || reading.is_denied);
            sums.denied += usize::from(reading.is_denied);
            let Some(info) = &reading.info else { continue };
            let server = self.servers.iter().find(|server| server.address == reading.node.address);
            let health = server.map_or(&unknown, |server| &server.health);
            let popped = reading.rates.map(|rates| rates.popped);
            reading.illness = Seen { info, health, popped, held_back: None }.illness();
            if reading.illness > 0 {
                ill.push((std::cmp::Reverse(reading.illness), name.clone()));
            }
            sums.counts.add(&info.counts);
            sums.schedules += info.schedules;
            sums.waiting_consumers += info.waiting_consumers;
            sums.oldest_ready_ms = sums.oldest_ready_ms.max(info.oldest_ready_ms.unwrap_or(0));
            sums.stuck += usize::from(info.backlog_ms() >= STUCK_MS);
            let rates = reading.rates.unwrap_or_default();
            sums.rates.added += rates.added;
            sums.rates.popped += rates.popped;
        }
        ill.sort_unstable();
        self.ill = ill.into_iter().map(|(_, name)| name).collect();
        self.sums = sums;
    }

    fn insert(&mut self, name: Name, node: &Arc<Node>, now_ms: u64) {
        let history = (self.histories < HISTORIES_MAX).then(|| {
            let kept = self.charts.of(&name).map(History::of);
            Box::new(kept.unwrap_or_else(|| History::new(now_ms)))
        });
        self.histories += usize::from(history.is_some());
        let (node, pass) = (node.clone(), self.pass);
        let reading = Reading {
            node,
            info: None,
            due: None,
            rates: None,
            history,
            is_denied: false,
            illness: 0,
            read_at: None,
            base: None,
            is_new: self.has_passed && self.left_out() == 0,
            pass,
        };
        self.queues.insert(name, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::super::charts::{Figure, Span};
    use super::*;

    fn node() -> Arc<Node> {
        let client = redis::Client::open("redis://127.0.0.1:1").unwrap();
        Arc::new(Node::new("127.0.0.1:1".into(), client))
    }

    fn known_of(max: usize) -> Known {
        Known::new(max, Charts::new(0, 10))
    }

    fn asked(ms: u64) -> Asked {
        Asked { at: Instant::now() + Duration::from_millis(ms), ms }
    }

    fn names(known: &Known) -> Vec<&[u8]> {
        known.iter().map(|(name, _)| &name[..]).collect()
    }

    #[test]
    fn a_queue_that_a_whole_pass_has_not_found_is_gone() {
        let (mut known, node) = (known_of(10), node());
        known.found(b"a".to_vec(), &node, 0);
        known.found(b"b".to_vec(), &node, 0);
        known.end_pass();
        assert_eq!(names(&known), [b"a", b"b"]);
        known.found(b"b".to_vec(), &node, 0);
        known.found(b"c".to_vec(), &node, 0);
        known.end_pass();
        assert_eq!(names(&known), [b"b", b"c"]);
        known.note(&Name::from(&b"b"[..]), None, &node, asked(0));
        assert_eq!(names(&known), [b"c"]);
    }

    #[test]
    fn queues_beyond_the_limit_are_counted() {
        let (mut known, node) = (known_of(2), node());
        for name in ["a", "b", "c", "d"] {
            known.found(name.into(), &node, 0);
        }
        known.found(vec![b'x'; NAME_MAX + 1], &node, 0);
        assert_eq!((names(&known).len(), known.left_out()), (2, 3));
        known.end_pass();
        assert_eq!(known.left_out(), 3);
        known.end_pass();
        assert_eq!(known.left_out(), 0);
    }

    #[test]
    fn queues_are_read_in_rotation() {
        let (mut known, node) = (known_of(10), node());
        ["a", "b", "c"].into_iter().for_each(|name| known.found(name.into(), &node, 0));
        let after = |name: Option<&str>, many| {
            let name = name.map(|name| Name::from(name.as_bytes()));
            let names = known.names_after(name.as_ref(), many);
            names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(after(None, 2), ["a", "b"]);
        assert_eq!(after(Some("b"), 2), ["c", "a"]);
        assert_eq!(after(Some("b"), 9), ["c", "a", "b"]);
    }

    #[test]
    fn rates_are_of_the_time_between_two_readings_and_begin_anew_with_a_new_queue() {
        let mut reading = Reading {
            node: node(),
            info: None,
            due: None,
            rates: None,
            history: Some(Box::new(History::new(0))),
            is_denied: false,
            illness: 0,
            read_at: None,
            base: None,
            is_new: false,
            pass: 1,
        };
        let start = Instant::now();
        let mut read = |after_ms, added, popped| {
            let totals = Totals { added, popped, ..Totals::default() };
            let info = Info { totals, ..Info::default() };
            reading.take(info, start + Duration::from_millis(after_ms), after_ms);
            reading.rates
        };
        assert_eq!(read(0, 100, 50), None);
        assert_eq!(read(1_000, 200, 60), None);
        assert_eq!(read(2_000, 300, 90), Some(Rates { added: 100.0, popped: 20.0 }));
        assert_eq!(read(2_100, 900, 90), Some(Rates { added: 100.0, popped: 20.0 }));
        assert_eq!(read(4_000, 5, 5), None);
        assert_eq!(read(6_000, 7, 5), Some(Rates { added: 1.0, popped: 0.0 }));
        let popped: u32 =
            reading.history.unwrap().slots(6_000).filter_map(|slot| slot.popped.get()).sum();
        // What was handed out before the first reading, and around the queue's end, isn't known.
        assert_eq!(popped, 45);
    }

    fn added(known: &Known, queue: Option<&[u8]>) -> f64 {
        let chart = queue.map_or(Some(known.charts.all()), |queue| known.charts.of(queue));
        chart.map_or(0.0, |chart| {
            chart.table(Span::Hour, 60_000).column(Figure::Added).flatten().sum()
        })
    }

    fn info(added: u64) -> Option<Info> {
        Some(Info { totals: Totals { added, ..Totals::default() }, ..Info::default() })
    }

    #[test]
    fn a_queue_made_after_the_first_pass_counts_from_its_start() {
        let (mut known, node) = (known_of(10), node());
        let (old, new) = (Name::from(&b"old"[..]), Name::from(&b"new"[..]));
        known.found(old.to_vec(), &node, 0);
        known.note(&old, info(1_000), &node, asked(0));
        known.end_pass();
        known.note(&old, info(1_002), &node, asked(2_000));
        known.note(&new, info(5), &node, asked(2_000));
        assert_eq!((added(&known, Some(&old)), added(&known, Some(&new))), (2.0, 5.0));
        assert_eq!(added(&known, None), 7.0);
    }

    #[test]
    fn an_answer_that_comes_after_a_later_one_counts_nothing() {
        let (mut known, node) = (known_of(10), node());
        let queue = Name::from(&b"mail"[..]);
        known.note(&queue, info(10), &node, asked(0));
        known.note(&queue, info(14), &node, asked(2_000));
        known.note(&queue, info(12), &node, asked(1_000));
        known.note(&queue, info(15), &node, asked(3_000));
        assert_eq!(added(&known, Some(&queue)), 5.0);
    }
}
