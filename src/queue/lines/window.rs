//! From when to when a job is in the state that its line is searched for.

use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// When a job in a line is in the state that its line is searched for: from `opens` to `closes`. A
/// job that waits for its backoff is delayed once its lease is over (`opens`); one with a TTL is
/// ready until it expires (`closes`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub opens: Time,
    pub closes: Time,
}

impl Window {
    pub const ALWAYS: Window = Window { opens: Time::ZERO, closes: Time::MAX };

    pub fn is_open(self, now: Time) -> bool {
        self.opens <= now && (now < self.closes || self.closes == Time::MAX)
    }
}

/// Looks up the windows of jobs.
pub trait Windows {
    fn window_of(&self, slot: Slot) -> Window;
}
