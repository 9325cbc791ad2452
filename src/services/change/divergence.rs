//! Queues that are not what they were where the log was written.

use std::time::Duration;

use crate::server::context;
use crate::server::logfile::warning;
use crate::services::host::Host;
use crate::services::live::LIVE;

/// The log has a line of it this often at most.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(1);

/// How often a queue was not what it was where the log was written.
pub fn times_diverged() -> u64 {
    LIVE.with(|state| state.diverged)
}

/// The queue at this key is not what it was where the log was written.
pub fn report(name: &[u8]) {
    let uptime = context::uptime();
    let is_due = LIVE.with(|state| {
        state.diverged += 1;
        let is_due = state
            .told_of_divergence
            .is_none_or(|last| uptime.saturating_sub(last) >= BETWEEN_WARNINGS);
        if is_due {
            state.told_of_divergence = Some(uptime);
        }
        is_due
    });
    if is_due {
        warning(&format!(
            "queue '{}' is not what it was where the log was written (dq_diverged). On a replica: \
             resynchronise it, or restart it from the primary's RDB file. On a primary, which loads an \
             AOF or is sent DQ.APPLY: what it holds now counts, and BGREWRITEAOF writes that down",
            name.escape_ascii()
        ));
    }
}
