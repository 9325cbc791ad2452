//! Adding many jobs that are alike, in one step.

use super::admission::Admission;
use super::produce::{Add, Added};
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Id;
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::time::{Millis, Time};

/// More at once would hold up the others. Part of what is logged: it must stay as it is.
pub const ADD_MANY_MAX: usize = 10_000;

/// Adds jobs in this order: all of them, or none. O(log n) each, and for each edge.
#[derive(Clone, Debug)]
pub struct AddMany<'a> {
    /// What is said of all of them. Its id and its body count for nothing, and it has no schedule.
    pub like: Add<'a>,
    /// At most [`ADD_MANY_MAX`].
    pub jobs: Vec<OneOfMany<'a>>,
    pub times: Times,
}

/// Of one of the jobs. Without an id, the queue makes one.
#[derive(Clone, Copy, Debug)]
pub struct OneOfMany<'a> {
    pub id: Option<Id<'a>>,
    pub body: &'a [u8],
}

/// When the jobs are due.
#[derive(Clone, Debug)]
pub enum Times {
    /// All as `like` is.
    Same,
    /// Each at its own time.
    Each(Vec<Due>),
    /// The first as `like` is, the others evenly over this span behind it.
    SpreadOver(Millis),
}

/// What became of an [`AddMany`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddedMany {
    /// The jobs; `None` where the id was taken, and that was asked for (`IfTaken::Leave`).
    Yes(Vec<Option<Slot>>),
    /// The job at this place, from 0, can't be added. Nothing has happened.
    Refused { position: usize, why: Refusal },
}

/// Why one of the jobs can't be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// One before it has this id, too.
    Twice(Box<[u8]>),
    /// An [`Add`] of it would come to this.
    As(Added),
}

impl Changed for AddedMany {
    fn has_changed(&self) -> bool {
        match self {
            AddedMany::Yes(slots) => slots.iter().any(Option::is_some),
            AddedMany::Refused { .. } => false,
        }
    }
}

impl Operation for AddMany<'_> {
    type Outcome = AddedMany;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> AddedMany {
        if let Some(slots) = self.run_plain(queue, now) {
            return AddedMany::Yes(slots);
        }
        let given = self.given();
        if let Err((position, why)) = self.check(queue, now, &given, calendar) {
            return AddedMany::Refused { position, why };
        }
        let is_given = |id: Id| given.binary_search_by_key(&id.bytes(), |(id, _)| *id).is_ok();
        let mut add = self.like.clone();
        let slots = self.jobs.iter().enumerate().map(|(position, job)| {
            (add.id, add.body, add.due) = (job.id, job.body, self.due(position, now));
            queue.add_admitted(&add, now, calendar, &is_given)
        });
        AddedMany::Yes(slots.collect())
    }
}

impl<'a> AddMany<'a> {
    /// Adds jobs that have nothing but a time, under given ids, if all of these are free: most often.
    /// `None`, with nothing done, otherwise.
    fn run_plain(&self, queue: &mut Queue, now: Time) -> Option<Vec<Option<Slot>>> {
        let policy = self.like.policy(queue);
        let are_named = self.jobs.iter().all(|job| job.id.is_some());
        let have_room = self.jobs.len() as u64 <= queue.room_beside(0);
        if !self.like.is_plain(&policy) || !are_named || !have_room {
            return None;
        }
        let jobs = self.jobs.iter().map(|job| (job.id.unwrap_or(Id::NONE), job.body));
        let due = |position| self.due(position, now).counted_from(now);
        let slots = queue.put_all_plain(jobs, due, policy)?;
        Some(slots.into_iter().map(Some).collect())
    }

    /// The ids that are given, with their places: sorted.
    fn given(&self) -> Vec<(&'a [u8], usize)> {
        let ids = self.jobs.iter().enumerate();
        let mut given: Vec<_> =
            ids.filter_map(|(position, job)| Some((job.id?.bytes(), position))).collect();
        given.sort_unstable();
        given
    }

    /// The first job that can't be added behind those before it, and why.
    fn check(
        &self,
        queue: &Queue,
        now: Time,
        given: &[(&[u8], usize)],
        calendar: &mut dyn Calendar,
    ) -> Result<(), (usize, Refusal)> {
        let is_same =
            |pair: &&[(&[u8], usize)]| matches!(pair, [(one, _), (other, _)] if one == other);
        let second = |pair: &[(&[u8], usize)]| pair.last().map(|(_, position)| *position);
        let twice = given.windows(2).filter(is_same).filter_map(second).min();
        let before = self.jobs.iter().take(twice.unwrap_or(usize::MAX)).map(|job| job.id);
        let mut admission = Admission::new(queue, now);
        let mut refused = |id| match &self.like.edges {
            // None names another, so what those before it do to edges makes no difference.
            None => admission.admit_id(id, &self.like).filter(|added| *added != Added::Left),
            Some(_) => admission.admit(id, &self.like, calendar).err(),
        };
        let found = before
            .enumerate()
            .find_map(|(position, id)| Some((position, Refusal::As(refused(id)?))));
        let twice = twice.and_then(|position| Some((position, self.jobs.get(position)?.id?)));
        match found.or(twice.map(|(position, id)| (position, Refusal::Twice(id.bytes().into())))) {
            Some(refused) => Err(refused),
            None => Ok(()),
        }
    }

    fn due(&self, position: usize, now: Time) -> Due {
        match &self.times {
            Times::Same => self.like.due,
            Times::Each(times) => times.get(position).copied().unwrap_or(self.like.due),
            Times::SpreadOver(span) => {
                let behind = span.share(position, self.jobs.len());
                match self.like.due {
                    // Of a held job it counts from when it is held no more.
                    Due::In(delay) => Due::In(delay.saturating_add(behind)),
                    Due::At(time) => Due::At(time.max(now).saturating_add(behind)),
                }
            }
        }
    }
}
