//! Jobs that come back: what operations do to a job with a schedule.

use super::change::Cause;
use super::job::REASON_NO_ATTEMPTS_LEFT;
use super::queue::Queue;
use super::totals::count;
use super::transition::{Reason, Transition};
use crate::queue::memory::slab::Slot;
use crate::queue::value::recurrence::{Calendar, RunState};
use crate::queue::value::state::{Progress, State};
use crate::queue::value::time::Time;

impl Queue {
    /// Must be called before the job gets another place, which depends on it.
    pub(in crate::queue) fn set_run_state(&mut self, slot: Slot, run_state: RunState) {
        let missed = self.store.set_run_state(slot, run_state);
        let (totals, _) = self.ledger.counters_mut();
        count(&mut totals.missed, missed as usize);
    }

    /// Starts a run of a job with a schedule that is about to be delivered. Returns its
    /// occurrence.
    pub(in crate::queue) fn begin_run(
        &mut self,
        now: Time,
        slot: Slot,
        calendar: &mut dyn Calendar,
    ) -> Option<Time> {
        let job = self.view(slot)?;
        let rule = job.schedule?.rule;
        let has_failed = job.has_come_back(now);
        let run_state = job.run_state_at(now)?;
        let is_first_attempt = has_failed || job.progress.attempt == 0;
        let run_state =
            if is_first_attempt { rule.begun(run_state, now, calendar) } else { run_state };
        if has_failed {
            // The last attempt has timed out. The job keeps its place, as it is about to be handed
            // out.
            self.store.begin_anew(slot);
        }
        self.set_run_state(slot, run_state);
        Some(run_state.occurrence)
    }

    /// The run is over: the job waits for its next occurrence, at `now` at the earliest. `None` if
    /// there is none, or if the job has no schedule.
    pub(in crate::queue) fn schedule_next_run(
        &mut self,
        now: Time,
        slot: Slot,
        cause: Cause,
    ) -> Option<()> {
        let transition = Transition::new(cause, now, now, &Progress::default());
        self.wait_for_next_run(slot, RunState::armed, transition)
    }

    /// As [`Queue::schedule_next_run`], of a run that has failed.
    pub(in crate::queue) fn schedule_next_run_after_failure(
        &mut self,
        now: Time,
        slot: Slot,
        reason: Option<&[u8]>,
        priority: Option<u8>,
    ) -> Option<()> {
        let reason = Reason::Is(reason.unwrap_or(REASON_NO_ATTEMPTS_LEFT));
        let transition = Transition::new(Cause::Released, now, now, &Progress::default());
        let transition = Transition { priority, ..transition.because(reason) };
        self.wait_for_next_run(slot, RunState::failed, transition)
    }

    fn wait_for_next_run(
        &mut self,
        slot: Slot,
        next: impl FnOnce(RunState) -> Option<RunState>,
        transition: Transition,
    ) -> Option<()> {
        let schedule = self.store.details_of(slot)?.schedule()?;
        let run_state = next(schedule.run_state)?;
        let ready = self.store.next_run(slot, schedule)?.max(transition.now);
        self.set_run_state(slot, run_state);
        // A note tells how far a run is, and this one is over.
        self.store.set_note(slot, None);
        self.transition(slot, &Transition { time: ready, ..transition });
        Some(())
    }

    /// Makes a job with a schedule ready now. A dead job begins its schedule again. A job that
    /// waits for its next occurrence gets an extra run. A job that waits for another attempt gets
    /// it now.
    pub(in crate::queue) fn kick_scheduled(
        &mut self,
        now: Time,
        slot: Slot,
        due: Time,
        cause: Cause,
    ) -> Option<()> {
        let job = self.view(slot)?;
        let (state, has_failed, attempt) =
            (job.state(now), job.has_come_back(now), job.progress.attempt);
        let run_state = job.run_state_at(now)?;
        match state {
            State::Dead => {
                self.set_run_state(slot, run_state.revived(due));
                self.transition(
                    slot,
                    &Transition::new(cause, now, due, &Progress::default()).because(Reason::None),
                );
            }
            State::Delayed if has_failed || attempt == 0 => {
                self.set_run_state(slot, run_state.kicked(now));
                if has_failed {
                    self.store.set_note(slot, None);
                }
                let reason =
                    if has_failed { Reason::Is(REASON_NO_ATTEMPTS_LEFT) } else { Reason::Keep };
                self.transition(
                    slot,
                    &Transition::new(cause, now, now, &Progress::default()).because(reason),
                );
            }
            // It waits for another attempt: that is now.
            State::Delayed => {
                let waiting = Progress { attempt, ..Progress::default() };
                self.transition(slot, &Transition::new(cause, now, now, &waiting));
            }
            State::Ready | State::Reserved | State::Done | State::Held => return None,
        }
        Some(())
    }

    /// The job was given back before a worker began: the run doesn't count.
    pub(in crate::queue) fn take_back_run(&mut self, slot: Slot) {
        let run_state = self.store.schedule_of(slot).map(|schedule| schedule.run_state);
        if let Some(run_state) = run_state {
            self.set_run_state(
                slot,
                RunState { runs: run_state.runs.saturating_sub(1), ..run_state },
            );
        }
    }
}
