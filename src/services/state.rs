//! What the services remember of one server, on its main thread. Not here: counters, which are
//! statics (`notify.rs`), and the values of configs.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::calendar::CronCache;
use super::hints::{Hints, Walk};
use super::leases::Leases;
use super::pace::Pace;
use super::pending::Undelivered;
use super::place::{KeyRef, Ticket};
use super::stats::Stats;
use super::sums::DataSets;
use super::value::QueueNumber;
use super::waiters::Waiters;
use crate::queue::{Lease, Time};

pub struct State<C> {
    pub waiters: Waiters<C>,
    /// Keys that may have something for those who wait at them.
    pub to_serve: BTreeSet<KeyRef>,
    /// Clients that are to be unblocked, and whether that is going to happen at the end of this
    /// turn.
    pub to_unblock: Vec<Ticket>,
    pub is_turn_end_awaited: bool,
    /// Behind this one are the next keys that are looked at for those who wait, while the timer is
    /// behind.
    pub looked_at: Option<KeyRef>,
    /// What consumers were assigned that have gone away, by the first lease of each: what left
    /// first is given back first.
    pub undelivered: BTreeMap<(Lease, KeyRef), Undelivered>,
    /// How many queues there have been.
    pub queues_made: u64,
    pub hints: Hints,
    /// The walk over the hints after slots have moved.
    pub moved: Walk,
    /// Those of a data set that is being loaded while another is served.
    pub async_load_hints: Option<Hints>,
    /// When the alarm goes off, by the server's uptime.
    pub alarm: Option<Duration>,
    /// What the wall clock and the uptime were when it went off last.
    pub clocks: Option<(Time, Duration)>,
    pub is_primary: bool,
    pub is_loading: bool,
    /// The last run of the timer was too short for what was due.
    pub is_behind: bool,
    pub stats: Stats,
    pub leases: Leases,
    pub sweep: Pace,
    pub sums: DataSets,
    pub cron_cache: CronCache,
    /// Queues that turned out other than in the log.
    pub diverged: u64,
    /// When that was last told.
    pub told_of_divergence: Option<Duration>,
}

impl<C: Copy> State<C> {
    pub const NEW: State<C> = State {
        waiters: Waiters::NONE,
        to_serve: BTreeSet::new(),
        to_unblock: Vec::new(),
        is_turn_end_awaited: false,
        looked_at: None,
        undelivered: BTreeMap::new(),
        queues_made: 0,
        hints: Hints::NONE,
        moved: Walk::NONE,
        async_load_hints: None,
        alarm: None,
        clocks: None,
        is_primary: false,
        is_loading: false,
        is_behind: false,
        stats: Stats::NONE,
        leases: Leases::NONE,
        sweep: Pace::NEW,
        sums: DataSets::NONE,
        cron_cache: CronCache::NONE,
        diverged: 0,
        told_of_divergence: None,
    };

    pub fn next_queue(&mut self) -> QueueNumber {
        self.queues_made += 1;
        QueueNumber(self.queues_made)
    }
}
