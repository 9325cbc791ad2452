//! What happened to jobs since the queue was created.

use serde::{Deserialize, Serialize};

/// Counts since the queue was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub added: u64,
    pub replaced: u64,
    /// Jobs delivered.
    pub popped: u64,
    /// Leases that ran out.
    pub timed_out: u64,
    pub finished: u64,
    pub deleted: u64,
    pub released: u64,
    pub buried: u64,
    /// Jobs that died, whatever the cause.
    pub died: u64,
    pub kicked: u64,
    /// Jobs removed by DQ.PURGE, or because their KEEP was over.
    pub purged: u64,
    /// Occurrences of schedules that were merged with another, or were never delivered.
    pub missed: u64,
}

/// Adds `more` to a total. A saved total may be any number, so it stops at the maximum.
pub(in crate::queue) fn count(total: &mut u64, more: usize) {
    *total = total.saturating_add(more as u64);
}
