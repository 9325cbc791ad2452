//! Jobs that come back: how one is added, and what the operations on a job come to when it has a
//! schedule.

use std::borrow::Cow;

use super::produce::{Add, Added, IfTaken};
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::JobView;
use crate::queue::kernel::pool::Lookup;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::policy::Policy;
use crate::queue::value::recurrence::{
    Calendar, Misfire, NewSchedule, Recurrence, RunState, ScheduleView, Starts,
};
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::time::{Millis, Time};

impl Add<'_> {
    /// Adds a job with a schedule, under this id.
    #[inline(never)]
    pub(in crate::queue) fn schedule(
        &self,
        queue: &mut Queue,
        now: Time,
        (id, found): (Id, Lookup),
        new: &NewSchedule,
        calendar: &mut dyn Calendar,
    ) -> Added {
        let (rule, starts) = (&*self.rule_for(queue, &new.rule), new.starts);
        let is_there = found.slot.filter(|slot| !queue.store.was_kept_until(*slot, now));
        if let (Some(_), Some(left)) = (is_there, self.if_taken.leaves()) {
            return left;
        }
        let dependents = is_there.map_or(0, |slot| queue.waiting_for(slot));
        if let Err(fault) = self.check_replaced(id, dependents) {
            return Added::Unconnected(Box::new(fault));
        }
        if let (Some(slot), IfTaken::Ensure) = (is_there, self.if_taken) {
            if let Some(added) = self.ensure(queue, now, (slot, found), (rule, starts), calendar) {
                return added;
            }
        }
        if found.slot.is_none() && queue.is_full() {
            return Added::Full;
        }
        let Some(run_state) = rule.first(now, starts, calendar) else {
            return match self.if_taken {
                IfTaken::Ensure => Added::Over { was_there: false },
                IfTaken::Refuse | IfTaken::Leave | IfTaken::Replace => Added::Never,
            };
        };
        let job = self.scheduled_job(queue, id, now, rule, run_state);
        match queue.put_job(&job, found, Cause::Added) {
            None => Added::Full,
            Some(slot) if is_there.is_some() => Added::Replaced { slot, due: job.time },
            Some(slot) => Added::New { slot, due: job.time },
        }
    }

    /// The rule with this ADD's LATE or, where it says none, the queue's.
    fn rule_for<'r>(&self, queue: &Queue, rule: &'r Recurrence) -> Cow<'r, Recurrence> {
        let late = self.late.unwrap_or(queue.limits.settings().late);
        if late == rule.late {
            Cow::Borrowed(rule)
        } else {
            Cow::Owned(Recurrence { late, ..rule.clone() })
        }
    }

    fn scheduled_job<'j>(
        &'j self,
        queue: &Queue,
        id: Id<'j>,
        created: Time,
        rule: &'j Recurrence,
        run_state: RunState,
    ) -> JobView<'j> {
        let policy = Policy {
            ttl: Millis::ZERO,
            keep: Millis::ZERO,
            late: Millis::ZERO,
            ..self.policy(queue)
        };
        let ready = rule.ready_at(id, run_state.occurrence);
        JobView {
            group: self.group,
            schedule: Some(ScheduleView { rule, run_state }),
            ..JobView::plain(id, self.body, ready, created, policy)
        }
    }

    /// The job is there already: it is as this ADD says from here on, and what has happened stays.
    /// `None`: it is done, and may be added anew.
    fn ensure(
        &self,
        queue: &mut Queue,
        now: Time,
        (slot, found): (Slot, Lookup),
        (rule, starts): (&Recurrence, Starts),
        calendar: &mut dyn Calendar,
    ) -> Option<Added> {
        let stored = queue.view(slot).filter(|job| job.progress.stage != Stage::Done)?;
        // What time has done so far is written down first: another rule must not undo it.
        let before = stored.resolved_at(now);
        let same = before.schedule.filter(|old| rule.is_as(old.rule, &old.run_state, starts));
        let run_state = match same {
            Some(old) => run_state_under(rule, old, &before, now, calendar),
            None => run_state_instead(rule, starts, &before, now, calendar),
        };
        // It waits, and the schedule has no time for it any more.
        let Some(run_state) = run_state else {
            queue.settle_as_gone(now, slot);
            queue.discard(slot, Cause::Deleted);
            return Some(Added::Over { was_there: true });
        };
        // The job is put in again under its id, so what it has is copied out of the store.
        let (id, reason) = (before.id.bytes().to_vec(), before.reason.map(<[u8]>::to_vec));
        let reason_stored = stored.reason.map(<[u8]>::to_vec);
        let [note, note_stored, result] =
            [before.note, stored.note, stored.result].map(|text| text.map(<[u8]>::to_vec));
        let mut job = self.scheduled_job(queue, Id::new(&id)?, before.created, rule, run_state);
        job.reason = reason.as_deref();
        job.tally = before.tally;
        (job.note, job.result) = (note.as_deref(), result.as_deref());
        // Only a job that waits under another schedule gets a new time. One that is worked on, or
        // waits under the same schedule, keeps its own.
        let is_rearmed =
            same.is_none() && matches!(before.progress.stage, Stage::Waiting | Stage::Held);
        if !is_rearmed {
            job.time = before.time;
            job.progress = Progress { expires_at: None, ..before.progress };
        }
        let texts = (reason_stored.as_deref(), note_stored.as_deref());
        job = with_the_lease_of(&stored, texts, job, now);
        // A service that starts says the same again: nothing changes, nothing is logged.
        if job == stored {
            return Some(Added::Unchanged { slot });
        }
        let due = job.time;
        Some(match queue.put_job(&job, found, Cause::Added) {
            None => Added::Full,
            Some(slot) => Added::Replaced { slot, due },
        })
    }
}

/// A lease is good until the job is delivered again, also one that has run out. So the job keeps
/// it where time makes the same of the job with the lease as was written down without.
fn with_the_lease_of<'j>(
    stored: &JobView,
    (reason, note): (Option<&'j [u8]>, Option<&'j [u8]>),
    job: JobView<'j>,
    now: Time,
) -> JobView<'j> {
    let has_failed = stored.has_come_back(now);
    let run_state = stored.schedule.map(|old| old.run_state).filter(|_| has_failed);
    let leased = JobView {
        time: stored.time,
        progress: Progress { expires_at: None, ..stored.progress },
        reason,
        note,
        tally: stored.tally,
        schedule: job
            .schedule
            .map(|new| ScheduleView { run_state: run_state.unwrap_or(new.run_state), ..new }),
        ..job
    };
    if leased.resolved_at(now) == job {
        leased
    } else {
        job
    }
}

/// The run state under new limits of the same schedule. `None`: the job waits for an occurrence that
/// they exclude.
fn run_state_under(
    rule: &Recurrence,
    old: ScheduleView,
    job: &JobView,
    now: Time,
    calendar: &mut dyn Calendar,
) -> Option<RunState> {
    let run_state = old.run_state;
    match job.progress.stage {
        Stage::Waiting if job.progress.attempt == 0 => {
            let is_over = !rule.allows(run_state.occurrence) || rule.ends_with(run_state.runs);
            let has_same_limits = (rule.until, rule.runs) == (old.rule.until, old.rule.runs);
            // What is ready has come by the limits of then, or was kicked.
            (!is_over || job.time <= now).then(|| match run_state.next() {
                // It was given back before a worker had begun, or kicked.
                Some(next) => run_state.with_next(Some(next).filter(|next| rule.allows(*next))),
                None if has_same_limits => run_state,
                None => run_state.undecided(),
            })
        }
        Stage::Waiting | Stage::Leased if rule.ends_with(run_state.runs) => {
            Some(run_state.with_next(None))
        }
        Stage::Waiting | Stage::Leased => Some(match run_state.next() {
            Some(next) => run_state.with_next(Some(next).filter(|next| rule.allows(*next))),
            None => {
                let after = match rule.misfire {
                    Misfire::One => now.max(run_state.occurrence),
                    Misfire::All => run_state.occurrence,
                };
                run_state.with_next(rule.following(&run_state, after, calendar).next)
            }
        }),
        Stage::Dead | Stage::Done | Stage::Held => Some(run_state),
    }
}

/// The run state under another schedule. A run that has begun goes on, and the new schedule's first
/// occurrence follows it. `None`: no run has begun, and the new schedule has no occurrence.
fn run_state_instead(
    rule: &Recurrence,
    starts: Starts,
    job: &JobView,
    now: Time,
    calendar: &mut dyn Calendar,
) -> Option<RunState> {
    let first = rule.first_after(now, starts, calendar);
    match job.progress.stage {
        Stage::Waiting | Stage::Held => first,
        Stage::Leased | Stage::Dead | Stage::Done => {
            let under_way = job.schedule.map_or(now, |old| old.run_state.occurrence);
            let run_state = RunState::new(first.map_or(now, |first| first.anchor), under_way);
            Some(run_state.with_next(first.map(|first| first.occurrence)))
        }
    }
}
