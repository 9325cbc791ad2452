//! What a queue looks like in a file and in the replication stream, besides its jobs.

use serde::{Deserialize, Serialize};

use crate::queue::groups::record::GroupSerials;
use crate::queue::kernel::log_state::{Checksum, LogState};
use crate::queue::kernel::totals::Totals;
use crate::queue::value::ids::Lease;
use crate::queue::value::rate::{Tat, TatParts};
use crate::queue::value::record::{Record, RecordError};
use crate::queue::value::serial::Serial;
use crate::queue::value::settings::Settings;
use crate::queue::value::sink::Sink;
use crate::queue::value::time::{Millis, Time};

/// Everything about a queue but its jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub(in crate::queue) last_lease: Lease,
    pub(in crate::queue) serial: Serial,
    pub(in crate::queue) totals: Totals,
    /// Up to when the totals know what time did.
    pub(in crate::queue) counted: Time,
    pub(in crate::queue) paused_until: Time,
    pub(in crate::queue) settings: Settings,
    /// Where the queue stands in its log.
    pub(in crate::queue) log_state: LogState,
    /// Where its rate has got to; zero without one.
    pub(in crate::queue) arrival: TatParts,
    /// Where its groups have got to.
    pub(in crate::queue) groups: GroupSerials,
    #[serde(default, skip_serializing_if = "QueueExtra::is_none")]
    pub(in crate::queue) extra: QueueExtra,
}

/// What most queues don't have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::queue) struct QueueExtra {
    pub sink: Option<Sink>,
    /// How many jobs have records of edges.
    pub edges: u64,
    /// How many records tell what is pending.
    #[serde(skip_serializing_if = "is_zero")]
    pub pending: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl QueueExtra {
    fn is_none(&self) -> bool {
        *self == QueueExtra::default()
    }
}

impl QueueRecord {
    /// How many records of groups belong to this one.
    pub fn groups_len(&self) -> u64 {
        self.groups.0
    }

    /// How many jobs have records of edges.
    pub fn edges_len(&self) -> u64 {
        self.extra.edges
    }

    /// How many records of what is pending belong to this one.
    pub fn pending_len(&self) -> u64 {
        self.extra.pending
    }

    pub(in crate::queue) fn tat(&self) -> Result<Tat, RecordError> {
        let tat = match self.settings.rate {
            Some(rate) => rate.tat(self.arrival),
            None => (self.arrival == TatParts::default()).then(Tat::default),
        };
        tat.ok_or(RecordError::Impossible)
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        let has_sink = self.extra.sink.as_ref().is_none_or(Sink::is_possible);
        if self.settings.ttr == Some(Millis::ZERO) || !has_sink {
            return Err(RecordError::Impossible);
        }
        self.tat().map(drop)
    }

    /// The part that is the same on a primary and its replicas.
    pub fn without_totals(&self) -> QueueRecord {
        QueueRecord { totals: Totals::default(), counted: Time::ZERO, ..self.clone() }
    }

    /// What makes two queues the same that came to be so in different ways: also the check is left
    /// out, which depends on how.
    pub fn without_history(&self) -> QueueRecord {
        let log_state = LogState { check: Checksum::default(), ..self.log_state };
        QueueRecord { log_state, ..self.without_totals() }
    }
}

impl Record for QueueRecord {}
