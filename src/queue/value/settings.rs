//! What DQ.ALTER sets for a queue: defaults for the jobs that are added from then on, and limits.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use super::policy::{Attempts, Backoff};
use super::rate::Rate;
use super::time::{Millis, Time};

/// A default that isn't set follows the server's configs. A limit that isn't set doesn't exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub ttr: Option<Millis>,
    pub attempts: Option<Attempts>,
    #[serde(with = "backoff_record")]
    pub backoff: Option<Backoff>,
    pub keep: Millis,
    pub late: Millis,
    /// How many jobs the queue may hold, in any state.
    pub max_jobs: Option<NonZeroU64>,
    /// For how long dead jobs are kept; zero: for ever.
    pub dead_keep: Millis,
    /// How many leases may be live at the same time.
    pub concurrency: Option<NonZeroU32>,
    /// How fast jobs may leave.
    pub rate: Option<Rate>,
    /// As `concurrency`, for each group.
    pub group_concurrency: Option<NonZeroU32>,
    pub group_rate: Option<Rate>,
}

/// A backoff that isn't set is two zeroes in a record. `nil` is one that is set, to none: no wait,
/// whatever the server's default is.
mod backoff_record {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Backoff;

    pub fn serialize<S: Serializer>(
        backoff: &Option<Backoff>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = match backoff {
            None => Some(Backoff::NONE),
            Some(backoff) => Some(*backoff).filter(|backoff| !backoff.is_none()),
        };
        stored.serialize(serializer)
    }

    pub fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<Option<Backoff>, D::Error> {
        Ok(match Option::deserialize(deserializer)? {
            None => Some(Backoff::NONE),
            Some(backoff) => Some(backoff).filter(|backoff: &Backoff| !backoff.is_none()),
        })
    }
}

impl Settings {
    /// Whether a limit may hold back a ready job. A pause is not a limit.
    #[inline]
    pub(in crate::queue) fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.rate.is_some()
    }

    /// When a job that died at `died` is purged; `None` if dead jobs are kept for ever.
    pub(in crate::queue) fn forgets_dead_at(&self, died: Time) -> Option<Time> {
        (!self.dead_keep.is_zero()).then(|| died.saturating_add(self.dead_keep))
    }
}
