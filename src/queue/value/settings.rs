//! What an operator sets for a queue: defaults for the jobs that are added from then on, and
//! limits.

use std::num::{NonZeroU32, NonZeroU64};

use serde::{Deserialize, Serialize};

use super::policy::{Attempts, Backoff};
use super::rate::Rate;
use super::time::{Millis, Time};

/// What is not set follows the server's configs, or is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub ttr: Option<Millis>,
    pub attempts: Option<Attempts>,
    pub backoff: Backoff,
    pub keep: Millis,
    pub late: Millis,
    /// How many jobs the queue may hold, in whichever state.
    pub max_jobs: Option<NonZeroU64>,
    /// Jobs that have been dead for so long are purged; zero is never.
    pub dead_keep: Millis,
    /// How many leases may be live at the same time.
    pub concurrency: Option<NonZeroU32>,
    /// How fast jobs may leave.
    pub rate: Option<Rate>,
    /// The same, for each group.
    pub group_concurrency: Option<NonZeroU32>,
    pub group_rate: Option<Rate>,
}

impl Settings {
    /// Whether anything but a pause may hold back a job that is ready.
    #[inline]
    pub(in crate::queue) fn is_limited(&self) -> bool {
        self.concurrency.is_some() || self.rate.is_some()
    }

    /// When a job that died then has been kept for as long as dead ones are, if not for ever.
    pub(in crate::queue) fn forgets_dead_at(&self, died: Time) -> Option<Time> {
        (!self.dead_keep.is_zero()).then(|| died.saturating_add(self.dead_keep))
    }
}
