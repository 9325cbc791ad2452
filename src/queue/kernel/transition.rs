//! How a job that stays in the queue gets another place. Every operation on such a job uses this,
//! except the most frequent delivery (`plain_lease.rs`).

use super::change::Cause;
use super::details::{Details, RareDetails};
use super::queue::Queue;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::Progress;
use crate::queue::value::tally::Tally;
use crate::queue::value::time::{Millis, Time};

/// What happens to the reason that a worker gave for a job.
#[derive(Clone, Copy)]
pub(in crate::queue) enum Reason<'r> {
    /// It is replaced by this one.
    Is(&'r [u8]),
    /// The job keeps its reason, if any.
    Keep,
    None,
}

/// Another place for a job, and why it gets it.
#[derive(Clone, Copy)]
pub(in crate::queue) struct Transition<'r> {
    pub cause: Cause<'r>,
    pub now: Time,
    pub time: Time,
    pub progress: Progress,
    pub reason: Reason<'r>,
    /// `None`: the job keeps its priority.
    pub priority: Option<u8>,
    /// How long a finished job is kept; `None`: as its policy says.
    pub keep: Option<Millis>,
}

impl<'r> Transition<'r> {
    pub fn new(cause: Cause<'r>, now: Time, time: Time, progress: &Progress) -> Transition<'r> {
        let progress = *progress;
        Transition { cause, now, time, progress, reason: Reason::Keep, priority: None, keep: None }
    }

    pub fn because(self, reason: Reason<'r>) -> Transition<'r> {
        Transition { reason, ..self }
    }

    /// The rare details after this transition, of a job that had `details`.
    fn extras_of(&self, details: Option<Details>) -> Option<Box<RareDetails>> {
        let has_timed_out = details.as_ref().is_some_and(|details| details.has_timed_out(self.now));
        let extras = details.and_then(Details::into_extras);
        let extras = match self.reason {
            Reason::Keep => extras,
            Reason::Is(reason) => RareDetails::with_reason(extras, Some(reason)),
            Reason::None => RareDetails::with_reason(extras, None),
        };
        let before = extras.as_ref().map_or(Tally::default(), |extras| extras.tally());
        let by_time = if has_timed_out { before.with_time_out() } else { before };
        let tally = self.cause.counted_in(by_time);
        if tally == before {
            extras
        } else {
            RareDetails::with_tally(extras, tally)
        }
    }
}

impl<'r> Reason<'r> {
    pub fn given(reason: Option<&'r [u8]>) -> Reason<'r> {
        reason.map_or(Reason::Keep, Reason::Is)
    }
}

impl Queue {
    /// Gives a job another progress, time and place. Every operation on a job that stays uses this.
    pub(in crate::queue) fn transition(&mut self, slot: Slot, transition: &Transition) {
        let Transition { cause, time, progress, .. } = *transition;
        let before = self.former(slot, time, &progress);
        let extras = transition.extras_of(self.unplace(slot));
        let (priority, keep) = (transition.priority, transition.keep);
        if priority.is_some() || keep.is_some() {
            let changed = |policy: Policy| Policy {
                priority: priority.unwrap_or(policy.priority),
                keep: keep.unwrap_or(policy.keep),
                ..policy
            };
            if self.store.change_policy(slot, changed).is_none() {
                impossible("a job's policy could not be changed");
            }
        }
        self.place(slot, (cause, before), time, &progress, extras);
    }
}
