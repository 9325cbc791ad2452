//! What workers say of jobs that they were given: finished, released, touched, buried.

use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::Job;
use crate::queue::kernel::job::REASON_BURIED;
use crate::queue::kernel::operation::{Affected, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::transition::{Reason, Transition};
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Claim, Claims};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::{Millis, Time};

/// The work is done: takes delivered jobs from the queue, or keeps them as done. A lease
/// stays good after its end, until the job is delivered again. O(log n) each.
#[derive(Clone, Debug)]
pub struct Finish<'a> {
    pub claims: Claims<'a>,
}

/// How a job is finished.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::queue) struct Finishing<'a> {
    /// Kept with the job, if the job stays.
    pub result: Option<&'a [u8]>,
    /// How long the job is kept; without it, as its policy says.
    pub keep: Option<Millis>,
}

/// Gives a job back. After its last attempt it is dead. O(log n).
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    pub claim: Claim<'a>,
    pub when: WhenReleased,
    /// From now on; without it, the job keeps the one it has.
    pub priority: Option<u8>,
    pub reason: Option<&'a [u8]>,
    pub checkpoint: Checkpoint<'a>,
}

impl<'a> Release<'a> {
    /// After its backoff, with nothing said of it.
    pub const fn plain(claim: Claim<'a>) -> Release<'a> {
        Release {
            claim,
            when: WhenReleased::AfterBackoff,
            priority: None,
            reason: None,
            checkpoint: Checkpoint::NONE,
        }
    }
}

/// What a worker keeps with a job that goes on, so that whoever works on it next has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checkpoint<'a> {
    /// Instead of the body that it had.
    pub body: Option<&'a [u8]>,
    /// How far the job is, for people; an empty one takes the last one away.
    pub note: Option<&'a [u8]>,
}

/// When a job is ready again that is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenReleased {
    AfterBackoff,
    After(Millis),
    /// At once, and the attempt isn't counted: nobody has begun to work on it.
    Unbegun,
}

/// The work goes on: the lease lasts for `ttr` or, without it, the job's own TTR from now on. O(log
/// n).
#[derive(Clone, Copy, Debug)]
pub struct Touch<'a> {
    pub claim: Claim<'a>,
    pub ttr: Option<Millis>,
    pub checkpoint: Checkpoint<'a>,
}

impl Checkpoint<'_> {
    pub const NONE: Checkpoint<'static> = Checkpoint { body: None, note: None };
}

/// The work can't be done: the job is dead. O(log n).
#[derive(Clone, Copy, Debug)]
pub struct Bury<'a> {
    pub claim: Claim<'a>,
    pub reason: Option<&'a [u8]>,
}

impl Operation for Finish<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        Affected(self.claims.iter().filter_map(|claim| queue.finish(now, claim)).count())
    }
}

impl Operation for Release<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        Affected(queue.release(now, self).is_some().into())
    }
}

impl Operation for Touch<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        Affected(queue.touch(now, self).is_some().into())
    }
}

impl Operation for Bury<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        Affected(queue.bury(now, self).is_some().into())
    }
}

impl Queue {
    fn finish(&mut self, now: Time, claim: &Claim) -> Option<()> {
        let slot = self.finishable(now, claim)?;
        let finished = self.finish_plain(slot);
        let finished = finished.or_else(|| self.finish_claimed(now, slot, &Finishing::default()));
        if let Some(job) = finished {
            self.store.removed_mut().add(job);
        }
        Some(())
    }

    /// A job that is delivered is finished; given back unless it is kept as done, or comes back.
    pub(in crate::queue) fn finish_claimed(
        &mut self,
        now: Time,
        slot: Slot,
        finishing: &Finishing,
    ) -> Option<Job> {
        let stored = self.store.terms_and_details(slot).or_impossible("a job to finish is there");
        let (terms, details) = stored?;
        let has_schedule = details.is_some_and(|details| details.schedule().is_some());
        let keep = finishing.keep.unwrap_or(terms.keep);
        let cause = Cause::Finished { result: finishing.result };
        if has_schedule && self.schedule_next_run(now, slot, cause).is_some() {
            self.keep_result(slot, finishing.result);
            return None;
        }
        if self.edges.is_some() {
            self.settle_as_done(now, slot, finishing.result);
            self.drop_open_edges(slot);
        }
        if keep.is_zero() {
            return self.remove(slot, cause);
        }
        let attempt = self.store.progress(slot).attempt;
        let done = Progress { stage: Stage::Done, attempt, ..Progress::default() };
        let transition = Transition::new(cause, now, now.saturating_add(keep), &done);
        self.transition(slot, &Transition { keep: finishing.keep, ..transition });
        self.keep_result(slot, finishing.result);
        None
    }

    /// The result of this run is that of the job; without one, the job has none.
    fn keep_result(&mut self, slot: Slot, result: Option<&[u8]>) {
        self.store.set_result(slot, result);
        if let Some(result) = result {
            self.ledger.checksum_mut().attached(result);
        }
    }

    fn release(&mut self, now: Time, release: &Release) -> Option<()> {
        let slot = self.claimed_alive(now, &release.claim)?;
        self.keep_checkpoint(slot, &release.checkpoint);
        let progress = self.store.progress(slot);
        let policy = self.store.policy_of(slot)?;
        let is_unbegun = release.when == WhenReleased::Unbegun;
        if policy.attempts.end_with(progress.attempt) && !is_unbegun {
            if self
                .schedule_next_run_after_failure(now, slot, release.reason, release.priority)
                .is_some()
            {
                return Some(());
            }
            self.mark_dead(slot, Cause::Released, now, (release.reason, release.priority));
            return Some(());
        }
        let delay = match release.when {
            WhenReleased::AfterBackoff => {
                policy.backoff.after(progress.attempt, progress.lease.unwrap_or_default())
            }
            WhenReleased::After(delay) => delay,
            WhenReleased::Unbegun => Millis::ZERO,
        };
        let attempt = progress.attempt.saturating_sub(u32::from(is_unbegun));
        if attempt == 0 {
            self.take_back_run(slot);
        }
        let waiting = Progress { stage: Stage::Waiting, attempt, lease: None, ..progress };
        let cause = if is_unbegun { Cause::Unbegun } else { Cause::Released };
        let transition = Transition::new(cause, now, now.saturating_add(delay), &waiting);
        let transition = transition.because(Reason::given(release.reason));
        self.transition(slot, &Transition { priority: release.priority, ..transition });
        Some(())
    }

    pub(super) fn touch(&mut self, now: Time, touch: &Touch) -> Option<()> {
        let slot = self.claimed_alive(now, &touch.claim)?;
        let ttr = touch.ttr.unwrap_or(self.store.policy_of(slot)?.ttr);
        if !self.is_leased_at(slot, now) && self.limits.free_places(now, &self.lanes) == 0 {
            // Somebody else has its place.
            return None;
        }
        if !self.is_leased_at(slot, now) && !self.has_place_in_group(slot, now) {
            return None;
        }
        self.keep_checkpoint(slot, &touch.checkpoint);
        let progress = self.store.progress(slot);
        self.transition(
            slot,
            &Transition::new(Cause::Touched, now, now.saturating_add(ttr), &progress),
        );
        Some(())
    }

    fn keep_checkpoint(&mut self, slot: Slot, checkpoint: &Checkpoint) {
        let Checkpoint { body, note } = *checkpoint;
        if let Some(body) = body {
            self.store.set_body(slot, body);
            self.ledger.checksum_mut().attached(body);
        }
        if let Some(note) = note {
            self.store.set_note(slot, Some(note));
            self.ledger.checksum_mut().attached(note);
        }
    }

    fn bury(&mut self, now: Time, bury: &Bury) -> Option<()> {
        let slot = self.claimed_alive(now, &bury.claim)?;
        let had_reason =
            self.store.details_of(slot).is_some_and(|details| details.reason().is_some());
        let reason = bury.reason.or((!had_reason).then_some(REASON_BURIED));
        self.mark_dead(slot, Cause::Buried, now, (reason, None));
        Some(())
    }

    /// From now on; one that is dead already, since its last attempt has timed out, stays so since
    /// then.
    pub(in crate::queue) fn mark_dead(
        &mut self,
        slot: Slot,
        cause: Cause,
        now: Time,
        (reason, priority): (Option<&[u8]>, Option<u8>),
    ) {
        let since =
            self.view(slot).filter(|job| job.state(now) == State::Dead).map(|job| job.since(now));
        let attempt = self.store.progress(slot).attempt;
        let dead = Progress { stage: Stage::Dead, attempt, ..Progress::default() };
        let transition =
            Transition::new(cause, now, since.unwrap_or(now), &dead).because(Reason::given(reason));
        self.transition(slot, &Transition { priority, ..transition });
    }

    /// The job, if this is a claim to its latest delivery.
    #[inline]
    pub(in crate::queue) fn claimed(&self, claim: &Claim) -> Option<Slot> {
        let slot = self.store.find(claim.id)?;
        let progress = self.store.details_of(slot)?.progress();
        let is_valid = claim.lease.is_none_or(|lease| progress.lease == Some(lease));
        (progress.stage == Stage::Leased && is_valid).then_some(slot)
    }

    /// The same; or a held job, which anyone may finish: it is done without being delivered.
    #[inline]
    pub(in crate::queue) fn finishable(&self, now: Time, claim: &Claim) -> Option<Slot> {
        match self.claimed(claim) {
            None if claim.lease.is_none() && self.edges.is_some() => self.held_job(claim.id, now),
            slot => slot,
        }
    }

    /// Whether this job has a lease that hasn't run out.
    fn is_leased_at(&self, slot: Slot, now: Time) -> bool {
        self.store.details_of(slot).is_some_and(|details| details.time > now)
    }

    /// The job of this claim, unless its TTL is over: then FINISH alone counts.
    pub(super) fn claimed_alive(&self, now: Time, claim: &Claim) -> Option<Slot> {
        let slot = self.claimed(claim)?;
        let expires_at = self.store.progress(slot).expires_at;
        expires_at.is_none_or(|expires_at| expires_at > now).then_some(slot)
    }
}
