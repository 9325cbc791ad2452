//! Occurrences of schedules that nobody took in time (LATE). The pop that comes to one passes over
//! it, and over all others that are too old as well: the job waits for the first that isn't, which
//! may be ready now. No timer does that, so until then such a job shows as ready. A pop passes over
//! a bounded number and asks the calendar a bounded number of times, and ends there: what it does
//! is one entry of the log, with the calendar's answers.

use crate::queue::groups::turns::NextJob;
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::{JobView, REASON_LATE, REASON_NO_ATTEMPTS_LEFT};
use crate::queue::kernel::operation::{Affected, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::transition::{Reason, Transition};
use crate::queue::lines::lanes::LaneCursor;
use crate::queue::memory::slab::Slot;
use crate::queue::value::policy::ends_after;
use crate::queue::value::recurrence::{Calendar, Cron, Following, Recurrence, RunState};
use crate::queue::value::state::Progress;
use crate::queue::value::time::Time;

/// A pop passes over at most so many jobs with a schedule that are too late. Part of what is
/// logged: it must stay as it is.
const PASSED_OVER_MAX: usize = 1_000;
/// It asks the calendar at most so many times: an expression that has to be read takes 8 µs, and a
/// long one 20. Likewise.
const QUESTIONS_MAX: usize = 250;

/// What a pop may still do besides delivering; and the calendar, which is part of that.
pub(in crate::queue) struct PopBudget<'c> {
    calendar: &'c mut dyn Calendar,
    questions: usize,
    pub passed_over: usize,
}

impl<'c> PopBudget<'c> {
    pub fn of(calendar: &'c mut dyn Calendar) -> PopBudget<'c> {
        PopBudget { calendar, questions: 0, passed_over: 0 }
    }

    pub fn is_used_up(&self) -> bool {
        self.questions >= QUESTIONS_MAX || self.passed_over >= PASSED_OVER_MAX
    }
}

impl Calendar for PopBudget<'_> {
    fn following(&mut self, cron: &Cron, from: Time, after: Time) -> Following {
        self.questions += 1;
        self.calendar.following(cron, from, after)
    }
}

/// Passes over what a pop would pass over before the first job that it delivers, and delivers
/// nothing. A bounded number: after 0, the first job isn't too late.
#[derive(Clone, Copy, Debug)]
pub struct PassOver;

impl Operation for PassOver {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, calendar: &mut dyn Calendar) -> Affected {
        let mut budget = PopBudget::of(calendar);
        if queue.store.schedules() > 0 && queue.lets_leave(now) {
            queue.first_in_time(now, &mut LaneCursor::default(), &mut budget);
        }
        Affected(budget.passed_over)
    }
}

/// What a run comes to that wasn't taken in time.
struct TooLate {
    /// `next` is what comes behind.
    run_state: RunState,
    reason: Option<&'static [u8]>,
}

impl Recurrence {
    /// All occurrences up to this one are too old. JITTER counts as if it always were as long as it
    /// may be: so those that are too old are before those that aren't.
    fn too_old(&self, now: Time) -> Option<Time> {
        let span = self.late.as_u64().saturating_add(self.jitter.as_u64());
        now.unix_ms().checked_sub(span).and_then(Time::new)
    }

    /// Behind this run_state, whose occurrence is too old, what is to come.
    fn behind(&self, run_state: RunState, too_old: Time, calendar: &mut dyn Calendar) -> RunState {
        let mut run_state = RunState { missed: run_state.missed.saturating_add(1), ..run_state };
        if let Some(next) = run_state.next() {
            // It was decided before, as for a job that was kicked.
            if next > too_old {
                return run_state;
            }
            run_state = RunState {
                occurrence: next,
                missed: run_state.missed.saturating_add(1),
                ..run_state
            };
        } else if run_state.is_decided() {
            return run_state;
        }
        let after = too_old.min(self.until.unwrap_or(Time::MAX)).max(run_state.occurrence);
        let Following { next, missed } = self.following(&run_state, after, calendar);
        RunState { missed: run_state.missed.saturating_add(missed), ..run_state.with_next(next) }
    }
}

impl JobView<'_> {
    /// What its run comes to, if that is too late.
    fn too_late(&self, now: Time, calendar: &mut dyn Calendar) -> Option<TooLate> {
        let rule = self.schedule.filter(|schedule| !schedule.rule.late.is_zero())?.rule;
        let has_failed = self.has_come_back(now);
        let run_state = self.run_state_at(now)?;
        if has_failed || self.progress.attempt == 0 {
            let reason = has_failed.then_some(REASON_NO_ATTEMPTS_LEFT);
            let too_old = rule.too_old(now)?;
            let is_too_old = run_state.occurrence <= too_old;
            return is_too_old
                .then(|| TooLate { run_state: rule.behind(run_state, too_old, calendar), reason });
        }
        // It waits for another attempt: for its own time, the run was begun.
        let is_too_late = ends_after(rule.late, self.due()).is_some_and(|time| time <= now);
        let run_state = RunState { failed: run_state.failed.saturating_add(1), ..run_state };
        is_too_late.then_some(TooLate { run_state, reason: Some(REASON_LATE) })
    }
}

impl Queue {
    /// As [`Queue::first_to_leave`], of the jobs that aren't too late. To be passed over is no turn
    /// of a group.
    pub(in crate::queue) fn first_in_time(
        &mut self,
        now: Time,
        lane: &mut LaneCursor,
        budget: &mut PopBudget,
    ) -> Option<NextJob> {
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
        let TooLate { run_state, reason } = job.too_late(now, calendar)?;
        // A note tells how far a run is, and that one is over.
        let is_note_over = job.has_come_back(now) || run_state.armed().is_some();
        let ready =
            |armed: &RunState| Some(job.schedule?.rule.ready_at(job.id, armed.occurrence).max(now));
        let armed = run_state.armed().and_then(|armed| Some((armed, ready(&armed)?)));
        if is_note_over {
            self.store.set_note(slot, None);
        }
        let Some((armed, ready)) = armed else {
            // There is none behind it: somebody has to see that it never ran.
            self.set_run_state(slot, run_state);
            self.mark_dead(slot, Cause::PassedOver, now, (Some(REASON_LATE), None));
            return Some(());
        };
        self.set_run_state(slot, armed);
        let reason = reason.map_or(Reason::Keep, Reason::Is);
        let transition = Transition::new(Cause::PassedOver, now, ready, &Progress::default());
        self.transition(slot, &transition.because(reason));
        Some(())
    }
}
