//! What consumers do: take jobs, and say what became of them.

use super::job::{Claim, Id, Lease, Progress, Stage, State, REASON_BURIED};
use super::job_record::Cause;
use super::queue_record::count;
use super::slab::Slot;
use super::time::{Millis, Time};
use super::Queue;

/// Jobs whose life is over that one pop steps over, burying them: a few milliseconds. The timer buries the
/// rest; until then there is nothing for this pop.
const OVERDUE_MAX: usize = 16_384;

/// A job handed out. Its id and body are at [`Queue::id_and_body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handout {
    pub slot: Slot,
    pub lease: Lease,
    pub attempt: u32,
    /// When the lease runs out.
    pub end: Time,
    /// Since when the job was ready.
    pub due: Time,
    before: Before,
}

/// What a job was before it was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Before {
    time: Time,
    progress: Progress,
}

/// What became of a finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The claim isn't that to the job's latest delivery.
    No,
    /// The job is gone.
    Gone,
    /// It is kept as done.
    Kept(Slot),
}

impl Queue {
    /// Hands out the first ready job by (priority, due time, order of scheduling). Its lease lasts `ttr`
    /// or, without it, what the job itself says; its number is at least `floor`. O(log n).
    pub fn pop(&mut self, now: Time, ttr: Option<Millis>, floor: Lease) -> Option<Handout> {
        let now = self.advance(now);
        if self.paused_until > now {
            return None;
        }
        let (due, slot) = self.first_alive()?;
        let policy = self.policies.get(self.pool.get(slot)?.policy)?;
        let end = now.saturating_add(ttr.unwrap_or(policy.ttr));
        let lease = Lease::new(floor.number().max(self.last_lease.number().saturating_add(1)));
        if lease >= Lease::MAX {
            return None;
        }
        let progress = self.progress(slot)?;
        let time = match self.pool.get(slot).and_then(|job| self.trails.get(job.trail)) {
            Some(trail) => trail.time,
            None => due,
        };
        let attempt = self.hand_out(slot, lease, end)?;
        Some(Handout { slot, lease, attempt, end, due, before: Before { time, progress } })
    }

    /// Takes a job that was handed out from the queue: it is done. A lease stays good after its end, until
    /// the job is handed out again. O(log n).
    pub fn finish(&mut self, now: Time, id: Id, claim: Claim) -> Finished {
        let Some(slot) = self.held(id, claim) else {
            return Finished::No;
        };
        let keep =
            self.pool.get(slot).and_then(|job| self.policies.get(job.policy)).map(|policy| policy.keep);
        match keep.filter(|keep| !keep.is_zero()) {
            None => {
                self.remove(slot);
                count(&mut self.totals.finished, 1);
                Finished::Gone
            }
            Some(keep) => {
                let until = self.advance(now).saturating_add(keep);
                let attempt = self.progress(slot).unwrap_or_default().attempt;
                let done = Progress { stage: Stage::Done, attempt, ..Progress::default() };
                self.shift(slot, Cause::Finished, until, &done, None);
                Finished::Kept(slot)
            }
        }
    }

    /// Gives a job back: it waits for `delay` or, without it, its backoff. After its last attempt it is
    /// dead. O(log n).
    pub fn release(
        &mut self,
        now: Time,
        id: Id,
        claim: Claim,
        delay: Option<Millis>,
        reason: Option<&[u8]>,
    ) -> Option<Slot> {
        let now = self.advance(now);
        let slot = self.held_alive(id, claim)?;
        let progress = self.progress(slot)?;
        let policy = self.policies.get(self.pool.get(slot)?.policy)?;
        if policy.attempts.end_with(progress.attempt) {
            self.lay_dead(slot, Cause::Released, now, reason);
            return Some(slot);
        }
        let backoff = || policy.backoff.after(progress.attempt, progress.lease.unwrap_or_default());
        let due = now.saturating_add(delay.unwrap_or_else(backoff));
        let waiting = Progress { stage: Stage::Waiting, lease: None, ..progress };
        self.shift(slot, Cause::Released, due, &waiting, reason);
        Some(slot)
    }

    /// Gives a job back that nobody has begun to work on: it is ready at once, and the attempt isn't counted.
    /// O(log n).
    pub fn release_unbegun(
        &mut self,
        now: Time,
        id: Id,
        claim: Claim,
        reason: Option<&[u8]>,
    ) -> Option<Slot> {
        let now = self.advance(now);
        let slot = self.held_alive(id, claim)?;
        let progress = self.progress(slot)?;
        let attempt = progress.attempt.saturating_sub(1);
        let waiting = Progress { stage: Stage::Waiting, attempt, lease: None, ..progress };
        self.shift(slot, Cause::Released, now, &waiting, reason);
        Some(slot)
    }

    /// The lease lasts for `ttr` or, without it, the job's own TTR from now on. O(log n).
    pub fn touch(&mut self, now: Time, id: Id, claim: Claim, ttr: Option<Millis>) -> Option<Slot> {
        let now = self.advance(now);
        let slot = self.held_alive(id, claim)?;
        let policy = self.policies.get(self.pool.get(slot)?.policy)?;
        let progress = self.progress(slot)?;
        let end = now.saturating_add(ttr.unwrap_or(policy.ttr));
        self.shift(slot, Cause::Touched, end, &progress, None);
        Some(slot)
    }

    /// The job is dead. O(log n).
    pub fn bury(&mut self, now: Time, id: Id, claim: Claim, reason: Option<&[u8]>) -> Option<Slot> {
        let now = self.advance(now);
        let slot = self.held_alive(id, claim)?;
        let had_reason = self.pool.get(slot).and_then(|job| self.trails.get(job.trail)?.reason()).is_some();
        let reason = reason.or((!had_reason).then_some(REASON_BURIED));
        self.lay_dead(slot, Cause::Buried, now, reason);
        Some(slot)
    }

    /// Puts a job back to where it was before it was handed out, as if that hadn't been: who was to have
    /// it has gone away unheard. `None` when somebody else has to do with it by now.
    pub fn give_back(&mut self, id: Id, handout: &Handout) -> Option<Slot> {
        let slot = self.held(id, Claim::Lease(handout.lease))?;
        let Before { time, progress } = handout.before;
        self.shift(slot, Cause::Returned, time, &progress, None);
        Some(slot)
    }

    /// The next job to be handed out. Steps over those whose life is over.
    fn first_alive(&mut self) -> Option<(Time, Slot)> {
        for _ in 0..OVERDUE_MAX {
            let (due, slot) = self.schedule.first_ready()?;
            let dies = self.progress(slot)?.dies;
            if dies.is_none_or(|dies| dies > self.schedule.now()) {
                return Some((due, slot));
            }
            self.bury_overdue(slot);
        }
        None
    }

    /// Leases a job; says which attempt that is.
    pub(super) fn hand_out(&mut self, slot: Slot, lease: Lease, end: Time) -> Option<u32> {
        let before = self.progress(slot)?;
        let attempt = before.attempt.saturating_add(1);
        let progress = Progress { stage: Stage::Leased, attempt, lease: Some(lease), dies: before.dies };
        self.shift(slot, Cause::Popped, end, &progress, None);
        Some(attempt)
    }

    /// From now on; one that is dead already, since its last attempt has timed out, stays so since then.
    fn lay_dead(&mut self, slot: Slot, cause: Cause, now: Time, reason: Option<&[u8]>) {
        let since = self.view(slot).filter(|job| job.state(now) == State::Dead).map(|job| job.since(now));
        let attempt = self.progress(slot).unwrap_or_default().attempt;
        let dead = Progress { stage: Stage::Dead, attempt, ..Progress::default() };
        self.shift(slot, cause, since.unwrap_or(now), &dead, reason);
    }

    /// The job, if this is a claim to its latest delivery.
    fn held(&self, id: Id, claim: Claim) -> Option<Slot> {
        let slot = self.pool.find(id)?;
        let progress = self.progress(slot)?;
        let is_good = match claim {
            Claim::Latest => progress.stage == Stage::Leased,
            Claim::Lease(lease) => progress.stage == Stage::Leased && progress.lease == Some(lease),
        };
        is_good.then_some(slot)
    }

    /// As `held`; a life that is over can't be prolonged.
    fn held_alive(&self, id: Id, claim: Claim) -> Option<Slot> {
        let slot = self.held(id, claim)?;
        let dies = self.progress(slot)?.dies;
        dies.is_none_or(|dies| dies > self.schedule.now()).then_some(slot)
    }
}
