//! What happened to a job on its way, for those who look at it. Nothing depends on it.
//!
//! A lease runs out by time alone, so that isn't written when it happens: it is added when the job
//! gets another place, and whoever looks before adds it for himself ([`super::JobView::tally_at`]).

use serde::{Deserialize, Serialize};

/// How often a job had what happen to it since it was added; each up to [`u16::MAX`], where it
/// stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// A lease ran out.
    pub timed_out: u16,
    /// A worker gave it back. UNBEGUN doesn't count: then it was as if nobody had had it.
    pub released: u16,
    pub buried: u16,
    pub kicked: u16,
}

impl Tally {
    pub(in crate::queue) fn with_time_out(self) -> Tally {
        Tally { timed_out: self.timed_out.saturating_add(1), ..self }
    }
}
