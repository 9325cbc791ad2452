//! How often a job timed out, was released, buried and kicked, for readers. Nothing depends on it.
//!
//! A lease runs out by time alone, so nothing is written when it does. It is counted at the
//! job's next transition; a reader before that adds it to what is stored
//! ([`JobView::tally_at`](crate::queue::JobView::tally_at)).

use serde::{Deserialize, Serialize};

/// Counts since the job was added. Each stops at [`u16::MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// A lease ran out.
    pub timed_out: u16,
    /// A worker gave it back. UNBEGUN doesn't count: then the job is as before its delivery.
    pub released: u16,
    pub buried: u16,
    pub kicked: u16,
}

impl Tally {
    pub(in crate::queue) fn with_time_out(self) -> Tally {
        Tally { timed_out: self.timed_out.saturating_add(1), ..self }
    }
}
