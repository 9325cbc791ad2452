//! What is remembered of a stream that refuses the jobs of a queue.

use std::time::Duration;

use crate::queue::Millis;

/// How long to wait before the stream is tried again, at first and at most. A change of the queue
/// tries it at once.
const FIRST_WAIT: Millis = Millis::of_ms(10);
const LAST_WAIT: Millis = Millis::of_ms(1_000);
/// The log has a line of the same error this often at most.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct SinkTrouble {
    /// None when the stream takes jobs again.
    error: Option<String>,
    wait: Millis,
    /// What the log was told last, and when by the server's uptime.
    told: Option<(String, Duration)>,
}

impl SinkTrouble {
    /// Why the stream refuses jobs.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// It refuses one. Returns how long to wait.
    pub fn begin(&mut self, error: String) -> Millis {
        self.wait = self.wait.saturating_doubled(1).clamp(FIRST_WAIT, LAST_WAIT);
        self.error = Some(error);
        self.wait
    }

    /// It takes one.
    pub fn end(&mut self) {
        (self.error, self.wait) = (None, Millis::ZERO);
    }

    /// Whether the log has a line of this error; if not, it gets one now.
    pub fn has_been_told(&mut self, error: &str, uptime: Duration) -> bool {
        let is_told = self.told.as_ref().is_some_and(|(told, when)| {
            told == error && uptime.saturating_sub(*when) < BETWEEN_WARNINGS
        });
        if !is_told {
            self.told = Some((error.to_string(), uptime));
        }
        is_told
    }
}
