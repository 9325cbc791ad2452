//! Occurrences of schedules that nobody took in time (LATE). The pop that comes to one passes over
//! it, and over all others that are too old as well: the job waits for the first that isn't, which
//! may be ready now. No timer does that, so until then such a job shows as ready. A pop passes over
//! a bounded number and asks the calendar a bounded number of times, and ends there: what it does
//! is one entry of the log, with the calendar's answers.

use crate::queue::groups::turns::Turn;
use crate::queue::kernel::job::{JobView, REASON_LATE, REASON_NO_ATTEMPTS_LEFT};
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::shift::{Cause, Reason, Shift};
use crate::queue::lines::lanes::FromLane;
use crate::queue::memory::slab::Slot;
use crate::queue::value::policy::ends_after;
use crate::queue::value::recurrence::{Calendar, Cron, Following, Recurrence, Round};
use crate::queue::value::state::Progress;
use crate::queue::value::time::Time;

/// A pop passes over at most so many jobs with a schedule that are too late. Part of what is
/// logged: it must stay as it is.
const PASSED_OVER_MAX: usize = 1_000;
/// It asks the calendar at most so many times: an expression that has to be read takes 8 µs, and a
/// long one 20. Likewise.
const QUESTIONS_MAX: usize = 250;

/// What a pop may still do besides handing out; and the calendar, which is part of that.
pub(in crate::queue) struct Budget<'c> {
    calendar: &'c mut dyn Calendar,
    questions: usize,
    pub passed_over: usize,
}

impl<'c> Budget<'c> {
    pub fn of(calendar: &'c mut dyn Calendar) -> Budget<'c> {
        Budget { calendar, questions: 0, passed_over: 0 }
    }

    pub fn is_used_up(&self) -> bool {
        self.questions >= QUESTIONS_MAX || self.passed_over >= PASSED_OVER_MAX
    }
}

impl Calendar for Budget<'_> {
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        self.questions += 1;
        self.calendar.following(cron, from, after)
    }
}

/// What a run comes to that wasn't taken in time.
struct TooLate {
    /// `next` is what comes behind.
    round: Round,
    reason: Option<&'static [u8]>,
}

impl Recurrence {
    /// All occurrences up to this one are too old. JITTER counts as if it always were as long as it
    /// may be: so those that are too old are before those that aren't.
    fn too_old(&self, now: Time) -> Option<Time> {
        let span = self.late.as_u64().saturating_add(self.jitter.as_u64());
        now.unix_ms().checked_sub(span).and_then(Time::new)
    }

    /// Behind this round, whose occurrence is too old, what is to come.
    fn behind(&self, round: Round, too_old: Time, calendar: &mut dyn Calendar) -> Round {
        let mut round = Round { missed: round.missed.saturating_add(1), ..round };
        if let Some(next) = round.next() {
            // It was decided before, as for a job that was kicked.
            if next > too_old {
                return round;
            }
            round = Round { occurrence: next, missed: round.missed.saturating_add(1), ..round };
        } else if round.is_decided() {
            return round;
        }
        let after = too_old.min(self.until.unwrap_or(Time::MAX)).max(round.occurrence);
        let Following { next, missed } = self.following(&round, after, calendar);
        Round { missed: round.missed.saturating_add(missed), ..round.with_next(next) }
    }
}

impl JobView<'_> {
    /// What its run comes to, if that is too late.
    fn too_late(&self, now: Time, calendar: &mut dyn Calendar) -> Option<TooLate> {
        let rule = self.schedule.filter(|schedule| !schedule.rule.late.is_zero())?.rule;
        let has_failed = self.has_come_back(now);
        let round = self.round_at(now)?;
        if has_failed || self.progress.attempt == 0 {
            let reason = has_failed.then_some(REASON_NO_ATTEMPTS_LEFT);
            let too_old = rule.too_old(now)?;
            let is_too_old = round.occurrence <= too_old;
            return is_too_old
                .then(|| TooLate { round: rule.behind(round, too_old, calendar), reason });
        }
        // It waits for another attempt: for its own time, the run was begun.
        let is_too_late = ends_after(rule.late, self.due()).is_some_and(|time| time <= now);
        let round = Round { failed: round.failed.saturating_add(1), ..round };
        is_too_late.then_some(TooLate { round, reason: Some(REASON_LATE) })
    }
}

impl Queue {
    /// As [`Queue::first_to_leave`], of the jobs that aren't too late. To be passed over is no turn
    /// of a group.
    pub(in crate::queue) fn first_in_time(
        &mut self,
        now: Time,
        lane: &mut FromLane,
        budget: &mut Budget,
    ) -> Option<Turn> {
        while !budget.is_used_up() {
            let turn = self.first_to_leave(now, lane)?;
            if self.pass_over(now, turn.slot, budget).is_none() {
                return Some(turn);
            }
            budget.passed_over += 1;
        }
        None
    }

    /// `None`: it isn't too late, or has no schedule.
    fn pass_over(&mut self, now: Time, slot: Slot, calendar: &mut dyn Calendar) -> Option<()> {
        self.store.details_of(slot)?.schedule()?;
        let job = self.view(slot)?;
        let TooLate { round, reason } = job.too_late(now, calendar)?;
        let Some(armed) = round.armed() else {
            // There is none behind it: somebody has to see that it never ran.
            self.set_round(slot, round);
            self.lay_dead(slot, Cause::Popped, now, (Some(REASON_LATE), None));
            return Some(());
        };
        let ready = job.schedule?.rule.ready_at(job.id, armed.occurrence).max(now);
        self.set_round(slot, armed);
        let reason = reason.map_or(Reason::Keep, Reason::Is);
        let shift = Shift::new(Cause::Popped, now, ready, &Progress::default());
        self.shift(slot, &shift.because(reason));
        Some(())
    }
}
