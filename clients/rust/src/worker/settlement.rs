//! The command that reports a job's outcome, and the one that takes its place when the server refuses
//! it.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::SystemTime;

use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::{Delivery, Job};
use crate::words::{Lease, State, Text, Words};
use crate::worker::hands::Hands;
use crate::worker::outcomes::{panic_text, Done, Failure, Kind};

const REASON_BYTES: usize = 512;
/// A server closes a connection with a longer word, by its own default.
const RESULT_BYTES: usize = 512 << 20;
/// The body of a job that failed comes back with the line of its failure, if it isn't longer.
const SHOWN_BYTES: usize = 64 << 10;

/// A job and its outcome.
pub(super) struct Settlement {
    pub(super) queue: Queue,
    pub(super) id: Text,
    pub(super) lease: Lease,
    /// The command that says so; None for one of a batch of FINISH.
    pub(super) words: Option<Words>,
    /// Whose lease is kept until the server knows.
    pub(super) hand: Option<(Arc<Hands>, u64)>,
    /// What is logged of a failed attempt.
    pub(super) failed: Option<Failed>,
    step: Step,
    attempt: i64,
    body_bytes: usize,
    result_bytes: usize,
}

/// Of a failed attempt.
pub(super) struct Failed {
    text: String,
}

/// What was tried so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// As the handler said it.
    Said,
    /// A BURY, as the same outcome would be refused after each attempt.
    Buried,
    /// A RELEASE in place of what was refused.
    Released,
}

impl Settlement {
    fn new(queue: &Queue, job: &Delivery, words: Option<Words>) -> Self {
        Self {
            queue: queue.clone(),
            id: job.id.clone(),
            lease: job.into(),
            words,
            hand: None,
            failed: None,
            step: Step::Said,
            attempt: job.attempt,
            body_bytes: job.payload.len(),
            result_bytes: 0,
        }
    }

    /// Of what a handler returned. A value that can't be written, or panics, is a failure.
    pub(super) fn of(
        queue: &Queue,
        job: &Delivery,
        ended: std::result::Result<Done, Failure>,
    ) -> Self {
        let done = match ended {
            Ok(done) => done,
            Err(failure) => return Self::of_failure(queue, job, &failure),
        };
        let said = catch_unwind(AssertUnwindSafe(|| Self::of_done(queue, job, done)));
        let why = match said {
            Ok(Ok(settlement)) => return settlement,
            Ok(Err(error)) => error.to_string(),
            Err(panic) => panic_text(panic),
        };
        Self::of_failure(queue, job, &Failure::retry(refusal(&why)))
    }

    fn of_done(queue: &Queue, job: &Delivery, done: Done) -> Result<Self> {
        let codec = queue.codec;
        let result = done.result.map(|value| value.encode(codec)).transpose()?;
        let result = result.filter(|bytes| !codec.is_nothing(bytes));
        if result.is_none() && done.keep_ms.is_none() && done.add.is_empty() {
            return Ok(Self::new(queue, job, None));
        }
        let result_bytes = result.as_ref().map_or(0, Vec::len);
        if result_bytes > RESULT_BYTES {
            let why =
                format!("the result has {result_bytes} bytes, at most {RESULT_BYTES} can be sent");
            return Ok(Self::of_failure(queue, job, &Failure::bury(refusal(&why))));
        }
        let mut words = Words::of("DQ.DONE", &queue.name);
        words.text(&job.id).lease(job.into());
        if let Some(bytes) = result {
            words.token("RESULT").0.push(bytes);
        }
        if let Some(ms) = done.keep_ms {
            words.token("KEEP").int(ms);
        }
        for each in &done.add {
            words.token("ADD").0.extend(each.told(queue)?);
        }
        Ok(Self { result_bytes, ..Self::new(queue, job, Some(words)) })
    }

    pub(super) fn of_failure(queue: &Queue, job: &Delivery, failure: &Failure) -> Self {
        let name = if failure.kind == Kind::Bury { "DQ.BURY" } else { "DQ.RELEASE" };
        let mut words = Words::of(name, &queue.name);
        words.text(&job.id).lease(job.into());
        // BURY has neither.
        if failure.kind != Kind::Bury {
            if let Some(ms) = failure.delay_ms {
                words.token("DELAY").int(ms);
            }
            if let Some(priority) = failure.priority {
                words.token("PRIORITY").int(priority);
            }
        }
        if let Some(reason) = &failure.reason {
            words.token("REASON").text(short(reason));
        }
        let failed = Some(Failed { text: format!("{failure}{}", failure.causes) });
        Self { failed, ..Self::new(queue, job, Some(words)) }
    }

    /// It goes back, and the attempt doesn't count.
    pub(super) fn unbegun(queue: &Queue, job: &Delivery) -> Self {
        let mut words = Words::of("DQ.RELEASE", &queue.name);
        words.text(&job.id).lease(job.into()).token("UNBEGUN");
        Self::new(queue, job, Some(words))
    }

    /// The command itself; not that of one of a batch of FINISH.
    pub(super) fn bytes(&self) -> usize {
        let words = self.words.as_ref().map_or(&[][..], |words| &words.0);
        words.iter().map(Vec::len).sum::<usize>() + self.id.as_bytes().len()
    }

    /// Whether what comes next is worth a look.
    pub(super) fn is_looked_at(&self) -> bool {
        self.failed.is_some() && self.body_bytes <= SHOWN_BYTES
    }

    /// What is said in place of what the server refused. None when it won't be given back either.
    pub(super) fn refused(mut self, error: &Error) -> Option<Self> {
        let (queue, id) = (&self.queue.name, &self.id);
        tracing::warn!("{queue:?} {id:?}: its outcome is refused: {error}");
        let is_too_long = error.message().is_some_and(|text| text.contains("dq.max-body-bytes"));
        let (name, step, why) = match self.step {
            Step::Said if is_too_long => {
                let why = match self.result_bytes {
                    0 => format!("the body of an added job is too long: {error}"),
                    bytes => format!("the result has {bytes} bytes, or an added job more: {error}"),
                };
                ("DQ.BURY", Step::Buried, why)
            }
            Step::Said | Step::Buried => ("DQ.RELEASE", Step::Released, error.to_string()),
            Step::Released => return None,
        };
        let reason = refusal(&why);
        let mut words = Words::of(name, &self.queue.name);
        words.text(&self.id).lease(self.lease).token("REASON").text(short(&reason));
        self.words = Some(words);
        self.step = step;
        self.failed = Some(Failed { text: reason });
        Some(self)
    }

    /// The one line of a failed attempt: what comes next is as the server shows it.
    pub(super) fn log_failure(&self, shown: Option<&Job>) {
        let Some(Failed { text }) = &self.failed else { return };
        let (queue, id, attempt) = (&self.queue.name, &self.id, self.attempt);
        let of = match shown {
            Some(job) if job.attempts > 0 => format!(" of {}", job.attempts),
            _ => String::new(),
        };
        let next = shown.map_or_else(String::new, |job| format!("; {}", what_follows(job)));
        tracing::warn!("{queue:?} {id:?}: attempt {attempt}{of} failed: {text}{next}");
    }
}

fn what_follows(job: &Job) -> String {
    match job.state {
        Some(State::Dead) => "it is dead".to_owned(),
        Some(State::Delayed) => {
            let wait = job.due.and_then(|due| due.duration_since(SystemTime::now()).ok());
            format!("again in {:.1?}", wait.unwrap_or_default())
        }
        Some(State::Ready | State::Reserved) => "again at once".to_owned(),
        state => format!("it is {}", state.map_or("gone", State::as_str)),
    }
}

fn refusal(why: &str) -> String {
    format!("outcome refused: {why}")
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
}
