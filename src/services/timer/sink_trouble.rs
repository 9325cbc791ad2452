//! What is remembered of a stream that refuses the jobs of a queue.

use std::time::Duration;

use crate::queue::Millis;

/// How long to wait before the stream is tried again, at first and at most. A change of the queue
/// tries it at once.
const FIRST_WAIT: Millis = Millis::of_ms(10);
const LAST_WAIT: Millis = Millis::of_ms(1_000);
/// The log has a line of the same refusal this often at most.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct SinkTrouble {
    /// None when the stream takes jobs again.
    refusal: Option<Refusal>,
    wait: Millis,
    /// What the log was told last, and when by the server's uptime.
    told: Option<(Refusal, Duration)>,
}

#[derive(Clone, PartialEq, Eq)]
struct Refusal {
    stream: Box<[u8]>,
    error: String,
}

impl SinkTrouble {
    /// Why this stream refuses jobs.
    pub fn error_of(&self, stream: &[u8]) -> Option<&str> {
        let refusal = self.refusal.as_ref().filter(|refusal| *refusal.stream == *stream)?;
        Some(&refusal.error)
    }

    /// The stream refuses a job. Returns how long to wait.
    pub fn begin(&mut self, stream: &[u8], error: &str) -> Millis {
        if self.error_of(stream).is_none() {
            self.wait = Millis::ZERO;
        }
        self.wait = self.wait.saturating_doubled(1).clamp(FIRST_WAIT, LAST_WAIT);
        self.refusal = Some(Refusal { stream: stream.into(), error: error.to_string() });
        self.wait
    }

    /// It takes one.
    pub fn end(&mut self) {
        (self.refusal, self.wait) = (None, Millis::ZERO);
    }

    /// Whether the log has a line of this refusal; if not, it gets one now.
    pub fn was_logged(&mut self, uptime: Duration) -> bool {
        let is_told = self.told.as_ref().is_some_and(|(told, when)| {
            Some(told) == self.refusal.as_ref() && uptime.saturating_sub(*when) < BETWEEN_WARNINGS
        });
        if !is_told {
            self.told = self.refusal.clone().map(|refusal| (refusal, uptime));
        }
        is_told
    }
}
