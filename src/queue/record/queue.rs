//! What a queue looks like in a file and in the replication stream, besides its jobs.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use crate::queue::groups::record::GroupSerials;
use crate::queue::kernel::log_state::{Checksum, Defaults, LogState};
use crate::queue::kernel::totals::Totals;
use crate::queue::value::policy::{Attempts, Backoff};
use crate::queue::value::rate::{Rate, Tat};
use crate::queue::value::record::{lease, span, time, Record, RecordError};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Millis;

/// Everything about a queue but its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub(in crate::queue) last_lease: u64,
    pub(in crate::queue) serial_time: u64,
    pub(in crate::queue) serial_number: u64,
    pub(in crate::queue) totals: Totals,
    /// Up to when the totals know what time did.
    pub(in crate::queue) counted: u64,
    pub(in crate::queue) paused_until: u64,
    pub(in crate::queue) settings: SettingsRecord,
    /// Where the queue stands in its log.
    pub(in crate::queue) log_state: LogStateRecord,
    /// What most queues don't have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::queue) limits: Option<LimitsRecord>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::queue) struct LogStateRecord {
    clock: u64,
    default_ttr: u64,
    default_attempts: u32,
    check: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::queue) struct SettingsRecord {
    ttr: Option<u64>,
    attempts: Option<u32>,
    backoff_base: u64,
    backoff_max: u64,
    keep: u64,
    max_jobs: u64,
    dead_keep: u64,
    /// Most queues have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<u64>,
}

/// How many leases may be live, how fast jobs may leave, and where the rate has got to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::queue) struct LimitsRecord {
    /// 0: no limit.
    concurrency: u32,
    /// 0: no rate, and then all that follow are 0.
    jobs: u32,
    per: u64,
    burst: u32,
    /// The theoretical arrival time: milliseconds, and parts of one, of which there are `jobs`.
    arrival_ms: u64,
    arrival_parts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<GroupsRecord>,
}

/// What holds for each group, and where groups have got to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::queue) struct GroupsRecord {
    /// 0: no limit.
    concurrency: u32,
    /// 0: no rate, and then the two that follow are 0.
    jobs: u32,
    per: u64,
    burst: u32,
    /// How many records of groups there are.
    records: u64,
    last_serial: u64,
    swept: u64,
}

impl From<&Settings> for SettingsRecord {
    fn from(settings: &Settings) -> Self {
        SettingsRecord {
            ttr: settings.ttr.map(Millis::as_u64),
            attempts: settings.attempts.map(Attempts::limit),
            backoff_base: settings.backoff.base.as_u64(),
            backoff_max: settings.backoff.max.as_u64(),
            keep: settings.keep.as_u64(),
            max_jobs: settings.max_jobs.map_or(0, NonZeroU64::get),
            dead_keep: settings.dead_keep.as_u64(),
            late: Some(settings.late.as_u64()).filter(|late| *late > 0),
        }
    }
}

impl LimitsRecord {
    /// `None` where there are none.
    pub(in crate::queue) fn of(
        settings: &Settings,
        tat: Tat,
        serials: GroupSerials,
    ) -> Option<LimitsRecord> {
        let groups = GroupsRecord::of(settings, serials);
        let concurrency = settings.concurrency.map_or(0, NonZeroU32::get);
        let limits = settings.rate.map_or(
            LimitsRecord { concurrency, groups, ..Default::default() },
            |rate| {
                let (jobs, per, burst) = (rate.jobs(), rate.per().as_u64(), rate.burst());
                let (arrival_ms, arrival_parts) = rate.parts_of(tat);
                LimitsRecord { concurrency, jobs, per, burst, arrival_ms, arrival_parts, groups }
            },
        );
        (settings.is_limited() || groups.is_some()).then_some(limits)
    }

    fn rate(&self) -> Result<Option<(Rate, Tat)>, RecordError> {
        let LimitsRecord { jobs, per, burst, arrival_ms, arrival_parts, .. } = *self;
        if (jobs, per, burst, arrival_ms, arrival_parts) == Default::default() {
            return Ok(None);
        }
        let rate = Rate::new(jobs, span(per)?, burst).ok_or(RecordError::Limit)?;
        let tat = rate.tat((arrival_ms, arrival_parts)).ok_or(RecordError::Limit)?;
        Ok(Some((rate, tat)))
    }
}

impl GroupsRecord {
    fn of(
        settings: &Settings,
        (records, last_serial, swept): GroupSerials,
    ) -> Option<GroupsRecord> {
        let concurrency = settings.group_concurrency.map_or(0, NonZeroU32::get);
        let rate = settings.group_rate;
        let groups = GroupsRecord {
            concurrency,
            jobs: rate.map_or(0, |rate| rate.jobs()),
            per: rate.map_or(0, |rate| rate.per().as_u64()),
            burst: rate.map_or(0, |rate| rate.burst()),
            records,
            last_serial,
            swept,
        };
        (groups != GroupsRecord::default()).then_some(groups)
    }

    fn rate(&self) -> Result<Option<Rate>, RecordError> {
        let GroupsRecord { jobs, per, burst, .. } = *self;
        if (jobs, per, burst) == Default::default() {
            return Ok(None);
        }
        Ok(Some(Rate::new(jobs, span(per)?, burst).ok_or(RecordError::Limit)?))
    }
}

impl From<&LogState> for LogStateRecord {
    fn from(log_state: &LogState) -> Self {
        LogStateRecord {
            clock: log_state.clock.unix_ms(),
            default_ttr: log_state.defaults.ttr.as_u64(),
            default_attempts: log_state.defaults.attempts.limit(),
            check: log_state.check.0,
        }
    }
}

impl QueueRecord {
    pub(in crate::queue) fn log_state(&self) -> Result<LogState, RecordError> {
        let LogStateRecord { clock, default_ttr, default_attempts, check } = self.log_state;
        let defaults =
            Defaults { ttr: span(default_ttr)?, attempts: Attempts::new(default_attempts) };
        Ok(LogState { clock: time(clock)?, defaults, check: Checksum(check) })
    }

    pub(in crate::queue) fn settings(&self) -> Result<Settings, RecordError> {
        let SettingsRecord {
            ttr,
            attempts,
            backoff_base,
            backoff_max,
            keep,
            max_jobs,
            dead_keep,
            late,
        } = self.settings;
        let ttr = ttr.map(span).transpose()?;
        if ttr.is_some_and(Millis::is_zero) {
            return Err(RecordError::Span);
        }
        Ok(Settings {
            ttr,
            attempts: attempts.map(Attempts::new),
            backoff: Backoff { base: span(backoff_base)?, max: span(backoff_max)? },
            keep: span(keep)?,
            late: span(late.unwrap_or_default())?,
            max_jobs: NonZeroU64::new(max_jobs),
            dead_keep: span(dead_keep)?,
            concurrency: NonZeroU32::new(self.limits.map_or(0, |limits| limits.concurrency)),
            rate: self.rate()?.map(|(rate, _)| rate),
            group_concurrency: NonZeroU32::new(self.groups().concurrency),
            group_rate: self.groups().rate()?,
        })
    }

    fn groups(&self) -> GroupsRecord {
        self.limits.and_then(|limits| limits.groups).unwrap_or_default()
    }

    /// How many records of groups belong to this one.
    pub fn groups_len(&self) -> u64 {
        self.groups().records
    }

    pub(in crate::queue) fn group_serials(&self) -> (u64, u64) {
        (self.groups().last_serial, self.groups().swept)
    }

    pub(in crate::queue) fn tat(&self) -> Result<Tat, RecordError> {
        Ok(self.rate()?.map_or(Tat::default(), |(_, tat)| tat))
    }

    fn rate(&self) -> Result<Option<(Rate, Tat)>, RecordError> {
        self.limits.as_ref().map_or(Ok(None), LimitsRecord::rate)
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        time(self.serial_time)?;
        time(self.counted)?;
        time(self.paused_until)?;
        self.settings()?;
        self.log_state()?;
        lease(self.last_lease).map(drop)
    }

    /// The part that is the same on a primary and its replicas.
    pub fn without_totals(&self) -> QueueRecord {
        QueueRecord { totals: Totals::default(), counted: 0, ..*self }
    }

    /// What makes two queues the same that came to be so in different ways: also the check is left
    /// out, which depends on how.
    pub fn without_history(&self) -> QueueRecord {
        let log_state = LogStateRecord { check: 0, ..self.log_state };
        QueueRecord { log_state, ..self.without_totals() }
    }
}

impl Record for QueueRecord {}
