//! When a job is due.

use super::time::{Millis, Time};

/// When a job is due, counted from a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    In(Millis),
    /// In the past, this is now.
    At(Time),
}

impl Due {
    pub fn counted_from(self, now: Time) -> Time {
        match self {
            Due::In(delay) => now.saturating_add(delay),
            Due::At(time) => time.max(now),
        }
    }
}
