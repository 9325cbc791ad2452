//! Finishing a job with a result, and going on with others, in one step.

use std::collections::BTreeSet;

use super::admission::Admission;
use super::produce::{Add, Added};
use super::work::Finishing;
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::value::ids::{Claim, Id};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::time::{Millis, Time};

/// An operation that adds more jobs would hold up the others. Part of what is logged: it must stay
/// as it is.
pub const DONE_ADDS_MAX: usize = 1_000;

/// Finishes a job, and adds others. All of it or nothing. O(log n) for each job.
#[derive(Clone, Debug)]
pub struct Done<'a> {
    pub claim: Claim<'a>,
    /// Kept with the job, if the job is kept.
    pub result: Option<&'a [u8]>,
    /// How long the job is kept; without it, as its ADD says.
    pub keep: Option<Millis>,
    /// At most [`DONE_ADDS_MAX`].
    pub adds: Vec<Add<'a>>,
}

/// What became of a [`Done`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoneOutcome {
    /// The lease isn't the job's. Nothing has happened.
    No,
    /// The job is finished. The id of each ADD; `None` where it left things as they were.
    Yes { ids: Vec<Option<Box<[u8]>>> },
    /// An ADD would have come to this, which is an error. Nothing has happened.
    Refused(Added),
}

impl Changed for DoneOutcome {
    fn has_changed(&self) -> bool {
        matches!(self, DoneOutcome::Yes { .. })
    }
}

impl Operation for Done<'_> {
    type Outcome = DoneOutcome;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> DoneOutcome {
        let Some(slot) = queue.finishable(now, &self.claim) else {
            return DoneOutcome::No;
        };
        if !self.adds.is_empty() {
            let mut admission = Admission::behind(queue, now, (self.claim.id, slot), self.keep);
            for add in &self.adds {
                if let Err(refused) = admission.admit(add.id, add, calendar) {
                    return DoneOutcome::Refused(refused);
                }
            }
        }
        let finishing = Finishing { result: self.result, keep: self.keep };
        if let Some(job) = queue.finish_claimed(now, slot, &finishing) {
            queue.store.removed_mut().add(job);
        }
        let given: BTreeSet<&[u8]> =
            self.adds.iter().filter_map(|add| add.id).map(|id| id.bytes()).collect();
        let is_given = |id: Id| given.contains(id.bytes());
        let add = |add| {
            let slot = queue.add_admitted(add, now, calendar, &is_given)?;
            queue.id_and_body(slot).map(|(id, _)| id.bytes().into())
        };
        DoneOutcome::Yes { ids: self.adds.iter().map(add).collect() }
    }
}
