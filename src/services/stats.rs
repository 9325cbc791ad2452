//! What the timer did.

use std::time::Duration;

/// What the timer did since the server started.
#[derive(Clone, Copy, Default)]
pub struct Stats {
    pub runs: u64,
    /// Runs that left something for the next run.
    pub budget_exceeded: u64,
    pub last: Duration,
    pub longest: Duration,
}

impl Stats {
    pub const NONE: Stats =
        Stats { runs: 0, budget_exceeded: 0, last: Duration::ZERO, longest: Duration::ZERO };

    pub fn count(&mut self, took: Duration, is_cut: bool) {
        self.runs += 1;
        self.budget_exceeded += u64::from(is_cut);
        self.last = took;
        self.longest = self.longest.max(took);
    }
}
