//! What the services remember of one server, on its main thread. Counters are statics instead
//! (`change/notify.rs`), and so are config values.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::calendar::occurrences::CronCache;
use super::change::leases::Leases;
use super::key_ref::{KeyRef, Ticket};
use super::keys::pace::Pace;
use super::keys::sums::DataSets;
use super::keys::value::QueueNumber;
use super::timer::hints::{Hints, Walk};
use super::waiting::pending::Undelivered;
use super::waiting::waiters::Waiters;
use super::waiting::watchers::Subject;
use crate::queue::{Lease, Time};

pub struct State<C> {
    pub waiters: Waiters<C>,
    /// Keys that may have jobs for their waiting clients.
    pub to_serve: BTreeSet<KeyRef>,
    /// Keys at which what clients watch is to be looked at; what is behind this, if anything.
    pub to_check: BTreeMap<KeyRef, Option<Subject>>,
    /// Of these the slots are on their way to another node: the server will send their clients
    /// there. They are looked at again at this uptime.
    pub leaving: Vec<KeyRef>,
    pub retry_checks_at: Duration,
    /// Clients to unblock; and whether the end of this turn is awaited for that.
    pub to_unblock: VecDeque<Ticket>,
    pub is_turn_end_awaited: bool,
    /// While the timer is behind, it looks at keys with waiting clients; it continues after this
    /// one.
    pub looked_at: Option<KeyRef>,
    /// Jobs delivered to clients that have gone away, by the first lease of each: what was handed
    /// out first is given back first.
    pub undelivered: BTreeMap<(Lease, KeyRef), Undelivered>,
    /// How many queues there have been in this process.
    pub queues_made: u64,
    pub hints: Hints,
    /// The walk over the hints after slots have moved.
    pub moved: Walk,
    /// The hints of an async load, if one is in progress.
    pub async_load_hints: Option<Hints>,
    /// When the alarm goes off, by the server's uptime.
    pub alarm: Option<Duration>,
    /// The wall clock and the uptime when the alarm last went off.
    pub clocks: Option<(Time, Duration)>,
    pub is_primary: bool,
    pub is_loading: bool,
    /// The last run of the timer was too short for everything that was due.
    pub is_behind: bool,
    /// Bytes of the jobs that this run of the timer has removed.
    pub removed_bytes: usize,
    pub stats: Stats,
    pub leases: Leases,
    pub sweep: Pace,
    pub sums: DataSets,
    pub cron_cache: CronCache,
    /// How often a queue differed from the log.
    pub diverged: u64,
    /// When the log last reported that, by the server's uptime.
    pub told_of_divergence: Option<Duration>,
}

impl<C: Copy> State<C> {
    pub const NEW: State<C> = State {
        waiters: Waiters::NONE,
        to_serve: BTreeSet::new(),
        to_check: BTreeMap::new(),
        leaving: Vec::new(),
        retry_checks_at: Duration::ZERO,
        to_unblock: VecDeque::new(),
        is_turn_end_awaited: false,
        looked_at: None,
        undelivered: BTreeMap::new(),
        queues_made: 0,
        hints: Hints::NONE,
        moved: Walk { is_under_way: false, reached: None },
        async_load_hints: None,
        alarm: None,
        clocks: None,
        is_primary: false,
        is_loading: false,
        is_behind: false,
        removed_bytes: 0,
        stats: Stats::NONE,
        leases: Leases::NONE,
        sweep: Pace::NEW,
        sums: DataSets::NONE,
        cron_cache: CronCache::NONE,
        diverged: 0,
        told_of_divergence: None,
    };

    /// Whether this server is a primary that isn't loading.
    pub fn is_active(&self) -> bool {
        self.is_primary && !self.is_loading
    }

    /// Whether clients are to be unblocked, or chores may find some.
    pub fn has_to_unblock(&self) -> bool {
        !self.to_unblock.is_empty() || self.waiters.watchers.has_chores()
    }

    pub fn next_queue(&mut self) -> QueueNumber {
        self.queues_made += 1;
        QueueNumber(self.queues_made)
    }
}

/// What the timer did since the server started.
#[derive(Clone, Copy)]
pub struct Stats {
    pub runs: u64,
    /// Runs that left something for the next run.
    pub budget_exceeded: u64,
    pub last: Duration,
    pub longest: Duration,
}

impl Stats {
    pub const NONE: Stats =
        Stats { runs: 0, budget_exceeded: 0, last: Duration::ZERO, longest: Duration::ZERO };

    pub fn count(&mut self, took: Duration, is_cut: bool) {
        self.runs += 1;
        self.budget_exceeded += u64::from(is_cut);
        self.last = took;
        self.longest = self.longest.max(took);
    }
}
