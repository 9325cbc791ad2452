//! DQ.INFO: a queue's settings, counts, totals and lateness.

use std::time::{Duration, SystemTime};

use crate::reading::structure;
use crate::words::Text;

structure! {
    /// A queue: its settings, counts, totals and lateness. `docs/commands/info.md` says what the
    /// fields mean.
    Info {
        /// `default-ttr` of DQ.INFO.
        default_ttr: Duration = "default-ttr",
        /// `default-attempts` of DQ.INFO.
        default_attempts: i64 = "default-attempts",
        /// `default-backoff-base` of DQ.INFO.
        default_backoff_base: Duration = "default-backoff-base",
        /// `default-backoff-max` of DQ.INFO.
        default_backoff_max: Duration = "default-backoff-max",
        /// `default-keep` of DQ.INFO.
        default_keep: Duration = "default-keep",
        /// `default-late` of DQ.INFO.
        default_late: Duration = "default-late",
        /// `max-jobs` of DQ.INFO.
        max_jobs: i64 = "max-jobs",
        /// `dead-keep` of DQ.INFO.
        dead_keep: Duration = "dead-keep",
        /// `concurrency` of DQ.INFO.
        concurrency: i64 = "concurrency",
        /// `rate` of DQ.INFO.
        rate: i64 = "rate",
        /// `rate-per-ms` of DQ.INFO.
        rate_per: Duration = "rate-per-ms",
        /// `rate-burst` of DQ.INFO.
        rate_burst: i64 = "rate-burst",
        /// `group-concurrency` of DQ.INFO.
        group_concurrency: i64 = "group-concurrency",
        /// `group-rate` of DQ.INFO.
        group_rate: i64 = "group-rate",
        /// `group-rate-per-ms` of DQ.INFO.
        group_rate_per: Duration = "group-rate-per-ms",
        /// `group-rate-burst` of DQ.INFO.
        group_rate_burst: i64 = "group-rate-burst",
        /// Whether it hands out no jobs.
        paused: bool = "paused",
        /// `paused-until` of DQ.INFO.
        paused_until: Option<SystemTime> = "paused-until",
        /// `rate-left` of DQ.INFO.
        rate_left: Option<i64> = "rate-left",
        /// `blocked-until` of DQ.INFO.
        blocked_until: Option<SystemTime> = "blocked-until",
        /// Of all states.
        jobs: i64 = "jobs",
        /// `delayed` of DQ.INFO.
        delayed: i64 = "delayed",
        /// `ready` of DQ.INFO.
        ready: i64 = "ready",
        /// `reserved` of DQ.INFO.
        reserved: i64 = "reserved",
        /// `dead` of DQ.INFO.
        dead: i64 = "dead",
        /// `done` of DQ.INFO.
        done: i64 = "done",
        /// `held` of DQ.INFO.
        held: i64 = "held",
        /// Held jobs that wait for a dead one.
        held_behind_dead: i64 = "held-behind-dead",
        /// `groups` of DQ.INFO.
        groups: i64 = "groups",
        /// `waiting-consumers` of DQ.INFO.
        waiting_consumers: i64 = "waiting-consumers",
        /// How long the oldest ready job has been ready.
        oldest_ready: Option<Duration> = "oldest-ready-ms",
        /// `next-due` of DQ.INFO.
        next_due: Option<SystemTime> = "next-due",
        /// `last-lease` of DQ.INFO.
        last_lease: Option<i64> = "last-lease",
        /// Bytes.
        memory: i64 = "memory",
        /// `total-added` of DQ.INFO.
        total_added: i64 = "total-added",
        /// `total-replaced` of DQ.INFO.
        total_replaced: i64 = "total-replaced",
        /// `total-popped` of DQ.INFO.
        total_popped: i64 = "total-popped",
        /// `total-finished` of DQ.INFO.
        total_finished: i64 = "total-finished",
        /// `total-released` of DQ.INFO.
        total_released: i64 = "total-released",
        /// `total-timed-out` of DQ.INFO.
        total_timed_out: i64 = "total-timed-out",
        /// `total-buried` of DQ.INFO.
        total_buried: i64 = "total-buried",
        /// `total-dead` of DQ.INFO.
        total_dead: i64 = "total-dead",
        /// `total-kicked` of DQ.INFO.
        total_kicked: i64 = "total-kicked",
        /// `total-deleted` of DQ.INFO.
        total_deleted: i64 = "total-deleted",
        /// `total-purged` of DQ.INFO.
        total_purged: i64 = "total-purged",
        /// `lateness-p50-ms` of DQ.INFO.
        lateness_p50: Option<Duration> = "lateness-p50-ms",
        /// `lateness-p90-ms` of DQ.INFO.
        lateness_p90: Option<Duration> = "lateness-p90-ms",
        /// `lateness-p99-ms` of DQ.INFO.
        lateness_p99: Option<Duration> = "lateness-p99-ms",
        /// `lateness-p999-ms` of DQ.INFO.
        lateness_p999: Option<Duration> = "lateness-p999-ms",
        /// `lateness-max-ms` of DQ.INFO.
        lateness_max: Option<Duration> = "lateness-max-ms",
        /// `schedules` of DQ.INFO.
        schedules: i64 = "schedules",
        /// `total-missed` of DQ.INFO.
        total_missed: i64 = "total-missed",
        /// How many jobs were delivered at most 1 ms late.
        lateness_within_1_ms: i64 = "lateness-within-1-ms",
        /// How many jobs were delivered at most 10 ms late.
        lateness_within_10_ms: i64 = "lateness-within-10-ms",
        /// How many jobs were delivered at most 100 ms late.
        lateness_within_100_ms: i64 = "lateness-within-100-ms",
        /// How many jobs were delivered at most 1000 ms late.
        lateness_within_1000_ms: i64 = "lateness-within-1000-ms",
        /// How many jobs were delivered at most 10000 ms late.
        lateness_within_10000_ms: i64 = "lateness-within-10000-ms",
        /// How many jobs were delivered at most 60000 ms late.
        lateness_within_60000_ms: i64 = "lateness-within-60000-ms",
        /// How many jobs were delivered at most 600000 ms late.
        lateness_within_600000_ms: i64 = "lateness-within-600000-ms",
        /// How many jobs were delivered at most 3600000 ms late.
        lateness_within_3600000_ms: i64 = "lateness-within-3600000-ms",
        /// `lateness-count` of DQ.INFO.
        lateness_count: i64 = "lateness-count",
        /// `lateness-sum-ms` of DQ.INFO.
        lateness_sum: Duration = "lateness-sum-ms",
        /// Clients that wait for a result, or by RENEW.
        watchers: i64 = "watchers",
        /// The stream to which jobs are added.
        sink: Option<Text> = "sink",
        /// `sink-maxlen` of DQ.INFO.
        sink_maxlen: Option<i64> = "sink-maxlen",
        /// Why that fails now.
        sink_error: Option<Text> = "sink-error",
    }
}
