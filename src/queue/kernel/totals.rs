//! What became of jobs since the queue was made.

use serde::{Deserialize, Serialize};

/// How often what happened since the queue was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub added: u64,
    pub replaced: u64,
    /// Jobs handed out.
    pub popped: u64,
    /// Leases that ran out.
    pub timed_out: u64,
    pub finished: u64,
    pub deleted: u64,
    pub released: u64,
    pub buried: u64,
    /// Jobs that became dead, whatever the cause.
    pub died: u64,
    pub kicked: u64,
    /// Jobs removed by DQ.PURGE, or because they had been kept long enough.
    pub purged: u64,
    /// Occurrences of schedules that came as one with another, or were never handed out.
    pub missed: u64,
}

/// So many more. A record may have brought any number: the last one there is stays.
pub(in crate::queue) fn count(total: &mut u64, more: usize) {
    *total = total.saturating_add(more as u64);
}
