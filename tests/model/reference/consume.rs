//! How jobs are taken, in the reference.

use dq::queue::State;

use super::{Delivery, Reference};
use crate::job::Stage;
use crate::told::{Bytes, Claim, Finishing, Handed, Outcome, LAST, LEASE_MAX};

impl Reference {
    pub(super) fn pop_all(
        &mut self,
        now: u64,
        count: usize,
        ttr: Option<u64>,
        no_ack: bool,
    ) -> Outcome {
        let mut passed_over = 0;
        let pops = (0..count).map_while(|_| self.pop(now, ttr, no_ack, &mut passed_over)).collect();
        self.check_rate();
        Outcome::HandedOut(pops, passed_over)
    }

    /// A pop that comes to nothing notices that the clock was set back.
    pub(super) fn or_set_back(&self, now: u64, outcome: Outcome) -> Outcome {
        let is_noticed = matches!(outcome, Outcome::HandedOut(..)) && !outcome.has_changed();
        if is_noticed && self.is_set_back_for_groups(now) {
            Outcome::SetBack
        } else {
            outcome
        }
    }

    fn may_one_leave(&self, now: u64, no_ack: bool) -> bool {
        let has_place = no_ack || self.has_free_place(now);
        self.paused_until <= now && has_place && self.rate_lets_one_leave(now)
    }

    /// The lease that one gets who asks now.
    fn next_lease(&self, now: u64) -> Option<u64> {
        Some((now << 11).max(self.last_lease + 1)).filter(|lease| *lease < LEASE_MAX)
    }

    fn pop(
        &mut self,
        now: u64,
        ttr: Option<u64>,
        no_ack: bool,
        passed_over: &mut usize,
    ) -> Option<Handed> {
        if !self.may_one_leave(now, no_ack) {
            return None;
        }
        *passed_over += self.pass_over(now);
        let lease = self.next_lease(now)?;
        let place = self.take_next(now)?;
        Some(self.hand_out(now, place, lease, ttr, no_ack))
    }

    /// As if somebody had kicked it, of which nobody hears, and it were the first.
    pub(super) fn pop_by_id(
        &mut self,
        now: u64,
        id: &Bytes,
        ttr: Option<u64>,
        no_ack: bool,
    ) -> Option<Handed> {
        if !self.may_one_leave(now, no_ack) {
            return None;
        }
        let lease = self.next_lease(now)?;
        if !self.may_leave_its_group(self.get(id)?, now) {
            return None;
        }
        if self.get(id)?.state(now) == State::Held {
            return None;
        }
        let kicks = (self.totals.kicked, self.get(id)?.tally.kicked);
        let is_kicked = self.kick_job(now, id, now);
        let place = self.jobs.iter().position(|job| job.id == *id)?;
        if is_kicked {
            (self.totals.kicked, self.jobs[place].tally.kicked) = kicks;
        }
        if self.jobs[place].state(now) != State::Ready {
            return None;
        }
        self.count_for_its_rate(self.jobs[place].group, now);
        Some(self.hand_out(now, place, lease, ttr, no_ack))
    }

    fn hand_out(
        &mut self,
        now: u64,
        place: usize,
        lease: u64,
        ttr: Option<u64>,
        no_ack: bool,
    ) -> Handed {
        let order = self.next_event();
        let job = &mut self.jobs[place];
        self.totals.popped += 1;
        self.last_lease = lease;
        let (missed_before, due) = (job.missed(), job.due());
        job.tally = job.tally_at(now);
        job.begin_run(now);
        self.totals.missed += job.missed() - missed_before;
        self.deliveries.push(Delivery { id: job.id.clone(), lease });
        job.stage = Stage::Leased;
        job.attempt += 1;
        job.lease = Some(lease);
        job.time = (now + ttr.unwrap_or(job.policy.ttr)).min(LAST);
        job.order = order;
        let (id, body) = (job.id.clone(), job.body.clone());
        let (attempt, end) = (job.attempt, job.time);
        self.record_life(now, &id);
        let handed = Handed { id, body, lease, attempt, end, due };
        self.one_has_left(now);
        if no_ack {
            let claim = Claim { id: handed.id.clone(), lease: Some(lease) };
            self.finish(now, &claim, &Finishing::default());
        }
        handed
    }
}
