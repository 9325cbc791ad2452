//! What a handler says of its job.

use std::any::Any;
use std::fmt;
use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::codec::Body;
use crate::commands::NewJob;
use crate::errors::Error;
use crate::words::Millis;

/// Returned by a handler that has more to say than a result.
#[derive(Default)]
pub struct Done {
    pub(super) result: Option<Box<dyn Body + Send>>,
    pub(super) keep_ms: Option<i64>,
    pub(super) add: Vec<NewJob>,
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
    pub(super) kind: Kind,
    pub(super) reason: Option<String>,
    /// The causes of an error: for the log alone.
    pub(super) causes: String,
    pub(super) delay_ms: Option<i64>,
    pub(super) priority: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Retry,
    Bury,
    Lost,
}

impl Failure {
    fn new(kind: Kind, reason: Option<String>) -> Self {
        Self { kind, reason, causes: String::new(), delay_ms: None, priority: None }
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
        let mut causes = String::new();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.extend([": ", &cause.to_string()]);
            next = cause.source();
        }
        Self { causes, ..Self::new(kind, Some(error.to_string())) }
    }
}

/// What a panic said. Its value may panic again when it is dropped.
pub(super) fn panic_text(value: Box<dyn Any + Send>) -> String {
    let text = value.downcast_ref::<&str>().copied();
    let text = text.or(value.downcast_ref::<String>().map(String::as_str));
    let text = text.map_or("panicked".to_owned(), |text| format!("panicked: {text}"));
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        std::mem::forget(again);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_a_failure_with_its_text() {
        let failure = Failure::from(std::io::Error::other("no route"));
        assert_eq!((failure.to_string().as_str(), failure.is_lost()), ("no route", false));
        assert!(Failure::from(Error::LeaseLost).is_lost());
    }
}
