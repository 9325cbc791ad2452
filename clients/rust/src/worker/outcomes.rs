//! What came of a job: the words of a handler, and the commands that say it.

use std::fmt;

use crate::codec::Body;
use crate::commands::NewJob;
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::Delivery;
use crate::words::{Lease, Millis, Text, Words};

const REASON_BYTES: usize = 512;

// ---- words of a handler ----------------------------------------------------------------------------

/// Returned by a handler that has more to say than a result.
#[derive(Default)]
pub struct Done {
    result: Option<Box<dyn Body + Send>>,
    keep_ms: Option<i64>,
    add: Vec<NewJob>,
}

impl Done {
    /// It is finished.
    pub fn new() -> Self {
        Self::default()
    }

    /// With this result, for those who ask by `result`.
    pub fn result(mut self, value: impl Body + Send + 'static) -> Self {
        self.result = Some(Box::new(value));
        self
    }

    /// How long the job and its result are kept, in place of the job's own KEEP.
    pub fn keep(mut self, keep: impl Millis) -> Self {
        self.keep_ms = Some(keep.millis());
        self
    }

    /// A job that is added in the same step.
    #[allow(clippy::should_implement_trait)]
    pub fn add(mut self, job: NewJob) -> Self {
        self.add.push(job);
        self
    }
}

/// What a handler can return: [`Done`], or a value, which is the job's result. `()` and `None` are
/// none.
pub trait Returned {
    /// The same as [`Done`].
    fn into_done(self) -> Done;
}

impl Returned for Done {
    fn into_done(self) -> Done {
        self
    }
}

impl<T: serde::Serialize + Send + 'static> Returned for T {
    fn into_done(self) -> Done {
        Done::new().result(self)
    }
}

/// Returned by a handler that failed: another attempt may succeed, after the job's backoff. Any error
/// becomes one by `?`, with its text as the reason.
#[derive(Clone, Debug)]
pub struct Failure {
    kind: Kind,
    reason: Option<String>,
    delay_ms: Option<i64>,
    priority: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Retry,
    Bury,
    Lost,
}

impl Failure {
    fn new(kind: Kind, reason: Option<String>) -> Self {
        Self { kind, reason, delay_ms: None, priority: None }
    }

    /// Another attempt may succeed.
    pub fn retry(reason: impl Into<String>) -> Self {
        Self::new(Kind::Retry, Some(reason.into()))
    }

    /// No attempt ever will succeed: the job is dead.
    pub fn bury(reason: impl Into<String>) -> Self {
        Self::new(Kind::Bury, Some(reason.into()))
    }

    /// The next attempt is in this time, in place of the job's backoff.
    pub fn after(mut self, delay: impl Millis) -> Self {
        self.delay_ms = Some(delay.millis());
        self
    }

    /// The job's priority from now on.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Whether the job wasn't this worker's any more: nothing is said of it.
    pub fn is_lost(&self) -> bool {
        self.kind == Kind::Lost
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason.as_deref().unwrap_or("failed"))
    }
}

impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let known = (&error as &dyn std::error::Error).downcast_ref::<Error>();
        let kind = match known {
            Some(Error::LeaseLost) => Kind::Lost,
            _ => Kind::Retry,
        };
        Self::new(kind, Some(error.to_string()))
    }
}

// ---- what is told ----------------------------------------------------------------------------------

/// A job, and what came of it.
pub(super) struct Settlement {
    pub(super) queue: Queue,
    pub(super) id: Text,
    pub(super) lease: Lease,
    /// The command that says so; None for one of a batch of FINISH.
    pub(super) words: Option<Words>,
    /// A DONE may be refused: its result is too long, the id of one of its jobs is taken.
    pub(super) is_done: bool,
}

impl Settlement {
    fn new(queue: &Queue, job: &Delivery, words: Option<Words>) -> Self {
        let (id, lease) = (job.id.clone(), Lease::from(job));
        Self { queue: queue.clone(), id, lease, words, is_done: false }
    }

    /// Of what a handler returned.
    pub(super) fn of(queue: &Queue, job: &Delivery, ended: Result<Done, Failure>) -> Self {
        let told = ended.and_then(|done| Self::of_done(queue, job, done).map_err(Failure::from));
        told.unwrap_or_else(|failure| Self::of_failure(queue, job, &failure))
    }

    fn of_done(queue: &Queue, job: &Delivery, done: Done) -> Result<Self> {
        let codec = queue.codec;
        let result = done.result.map(|value| value.encode(codec)).transpose()?;
        let result = result.filter(|bytes| !codec.is_nothing(bytes));
        if result.is_none() && done.keep_ms.is_none() && done.add.is_empty() {
            return Ok(Self::new(queue, job, None));
        }
        let mut words = Words::of("DQ.DONE", &queue.name);
        words.text(&job.id).lease(job.into());
        if let Some(bytes) = result {
            words.token("RESULT").text(bytes);
        }
        if let Some(ms) = done.keep_ms {
            words.token("KEEP").int(ms);
        }
        for each in &done.add {
            words.token("ADD").0.extend(each.told(queue)?);
        }
        Ok(Self { is_done: true, ..Self::new(queue, job, Some(words)) })
    }

    fn of_failure(queue: &Queue, job: &Delivery, failure: &Failure) -> Self {
        let name = if failure.kind == Kind::Bury { "DQ.BURY" } else { "DQ.RELEASE" };
        let mut words = Words::of(name, &queue.name);
        words.text(&job.id).lease(job.into());
        if let Some(ms) = failure.delay_ms {
            words.token("DELAY").int(ms);
        }
        if let Some(priority) = failure.priority {
            words.token("PRIORITY").int(priority);
        }
        if let Some(reason) = &failure.reason {
            words.token("REASON").text(short(reason));
        }
        Self::new(queue, job, Some(words))
    }

    /// It goes back, and the attempt doesn't count.
    pub(super) fn unbegun(queue: &Queue, job: &Delivery) -> Self {
        let mut words = Words::of("DQ.RELEASE", &queue.name);
        words.text(&job.id).lease(job.into()).token("UNBEGUN");
        Self::new(queue, job, Some(words))
    }

    /// The job comes back, since its DONE was refused.
    pub(super) fn refused(self, error: &Error) -> Self {
        let mut words = Words::of("DQ.RELEASE", &self.queue.name);
        words.text(&self.id).lease(self.lease).token("REASON").text(short(&error.to_string()));
        Self { words: Some(words), is_done: false, ..self }
    }
}

/// As much of it as the server takes.
fn short(reason: &str) -> &str {
    let mut end = reason.len().min(REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_cut_between_two_characters() {
        assert_eq!(short("no route"), "no route");
        assert_eq!(short(&"ö".repeat(300)), "ö".repeat(256));
        assert_eq!(short(&format!("x{}", "ö".repeat(300))).len(), 511);
    }

    #[test]
    fn an_error_is_a_failure_with_its_text() {
        let failure = Failure::from(std::io::Error::other("no route"));
        assert_eq!((failure.to_string().as_str(), failure.is_lost()), ("no route", false));
        assert!(Failure::from(Error::LeaseLost).is_lost());
    }
}
