//! What workers say of the jobs that they hold, in the reference.

use dq::queue::State;

use crate::job::{Job, Stage};
use crate::reference::Reference;
use crate::told::{Bytes, Checkpoint, Claim, Finishing, Outcome, When, LAST};

impl Reference {
    pub fn finish(&mut self, now: u64, claim: &Claim, finishing: &Finishing) -> bool {
        let Some(place) = self.finishable(now, claim) else {
            return false;
        };
        self.record_death_by(now, &claim.id);
        self.totals.finished += 1;
        self.jobs[place].tally = self.jobs[place].tally_at(now);
        let keep = finishing.keep.unwrap_or(self.jobs[place].policy.keep);
        self.jobs[place].result = finishing.result.clone();
        if self.arm(now, place, None) {
            return true;
        }
        self.settle_as_done(now, &claim.id, finishing.result.as_ref());
        self.jobs[place].drop_open_edges();
        self.jobs[place].policy.keep = keep;
        if keep == 0 {
            self.jobs.remove(place);
        } else {
            self.end(place, Stage::Done, (now + keep).min(LAST));
            self.record_life(now, &claim.id);
        }
        true
    }

    pub fn release(
        &mut self,
        now: u64,
        claim: &Claim,
        when: When,
        priority: Option<u8>,
        reason: Option<&Bytes>,
        checkpoint: &Checkpoint,
    ) -> Outcome {
        let Some(place) = self.claimed_alive(now, claim) else {
            return Outcome::No;
        };
        self.record_death_by(now, &claim.id);
        self.jobs[place].goes_on_from(checkpoint);
        self.totals.released += 1;
        let job = &mut self.jobs[place];
        job.tally = job.tally_at(now);
        job.tally.released += u16::from(!matches!(when, When::Unbegun));
        job.policy.priority = priority.unwrap_or(job.policy.priority);
        let wait = match when {
            When::Unbegun => 0,
            When::AfterBackoff | When::After(_) if job.is_at_its_last_attempt() => {
                if self.arm(now, place, Some(reason)) {
                    return Outcome::Yes;
                }
                self.mark_dead(now, place, reason);
                return Outcome::Yes;
            }
            When::AfterBackoff => job.backoff(job.lease.unwrap()),
            When::After(delay) => delay,
        };
        job.attempt -= u32::from(matches!(when, When::Unbegun));
        if let Some(round) = job.round.as_mut().filter(|_| job.attempt == 0) {
            round.runs = round.runs.saturating_sub(1);
        }
        self.wait(place, (now + wait).min(LAST));
        self.give_reason(place, reason);
        Outcome::Yes
    }

    pub fn touch(
        &mut self,
        now: u64,
        claim: &Claim,
        ttr: Option<u64>,
        checkpoint: &Checkpoint,
    ) -> Outcome {
        let Some(place) = self.claimed_alive(now, claim) else {
            return Outcome::No;
        };
        let job = &self.jobs[place];
        if job.time <= now && !(self.has_free_place(now) && self.has_place_in_group(job, now)) {
            return Outcome::No;
        }
        self.record_death_by(now, &claim.id);
        let order = self.next_event();
        let job = &mut self.jobs[place];
        job.goes_on_from(checkpoint);
        job.tally = job.tally_at(now);
        job.time = (now + ttr.unwrap_or(job.policy.ttr)).min(LAST);
        job.order = order;
        self.record_life(now, &claim.id);
        Outcome::Yes
    }

    pub fn bury(&mut self, now: u64, claim: &Claim, reason: Option<&Bytes>) -> Outcome {
        let Some(place) = self.claimed_alive(now, claim) else {
            return Outcome::No;
        };
        self.record_death_by(now, &claim.id);
        self.totals.buried += 1;
        self.jobs[place].tally = self.jobs[place].tally_at(now);
        self.jobs[place].tally.buried += 1;
        let no_reason = b"buried".to_vec();
        let had_none = self.jobs[place].reason.is_none();
        self.mark_dead(now, place, reason.or(had_none.then_some(&no_reason)));
        Outcome::Yes
    }

    fn held(&self, claim: &Claim) -> Option<usize> {
        let is_good = |lease| claim.lease.is_none() || claim.lease == lease;
        let is_held = |job: &Job| job.stage == Stage::Leased && is_good(job.lease);
        self.jobs.iter().position(|job| job.id == claim.id && is_held(job))
    }

    /// One that waits is finished by whoever says so.
    fn finishable(&self, now: u64, claim: &Claim) -> Option<usize> {
        let is_it = |job: &Job| job.id == claim.id && job.state(now) == State::Held;
        let waits = || self.jobs.iter().position(is_it).filter(|_| claim.lease.is_none());
        self.held(claim).or_else(waits)
    }

    /// Nobody prolongs a life.
    fn claimed_alive(&self, now: u64, claim: &Claim) -> Option<usize> {
        let is_alive =
            |place: &usize| self.jobs[*place].expires_at.is_none_or(|expiry| expiry > now);
        self.held(claim).filter(is_alive)
    }
}

impl Job {
    fn goes_on_from(&mut self, checkpoint: &Checkpoint) {
        if let Some(body) = &checkpoint.body {
            self.body = body.clone();
        }
        if let Some(note) = &checkpoint.note {
            self.note = Some(note.clone()).filter(|note| !note.is_empty());
        }
    }
}
