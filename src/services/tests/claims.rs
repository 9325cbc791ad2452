//! What workers say of their jobs, in the world's account.

use super::account::{mark_dead, Account, Job, Stage, State};
use super::operation::{Bytes, Left, When};

impl Account {
    /// The job of a delivery, if that is its latest.
    fn held(&mut self, id: &[u8], lease: Option<u64>) -> Option<&mut Job> {
        let is_it = |job: &&mut Job| job.new.id == id && job.stage == Stage::Leased;
        self.jobs.iter_mut().find(is_it).filter(|job| lease.is_none() || job.lease == lease)
    }

    fn claimed_alive(&mut self, now: u64, id: &[u8], lease: Option<u64>) -> Option<&mut Job> {
        self.held(id, lease).filter(|job| job.expires_at.is_none_or(|expiry| expiry > now))?;
        self.record_death(now, id);
        self.held(id, lease)
    }

    pub fn finish(
        &mut self,
        now: u64,
        (id, lease): (&[u8], Option<u64>),
        (result, keep): (Option<Bytes>, Option<u64>),
    ) -> bool {
        let order = self.next_event();
        let waits = self.job(id).is_some_and(|job| job.state(now) == State::Held);
        if self.held(id, lease).is_none() && !(waits && lease.is_none()) {
            return false;
        }
        self.settle_as_done(now, id, result.clone());
        let job = self.jobs.iter_mut().find(|job| job.new.id == id).unwrap();
        job.drop_open_edges();
        job.new.keep = keep.unwrap_or(job.new.keep);
        job.result.clone_from(&result);
        if job.new.keep == 0 {
            self.remove(id);
        } else {
            (job.stage, job.time, job.order) = (Stage::Done, now + job.new.keep, order);
            (job.lease, job.expires_at) = (None, None);
        }
        self.finished.push((id.to_vec(), result));
        true
    }

    pub fn release(
        &mut self,
        now: u64,
        (id, lease): (&[u8], Option<u64>),
        (when, priority): (When, Option<u8>),
        left: &Left,
    ) -> bool {
        let order = self.next_event();
        let Some(job) = self.claimed_alive(now, id, lease) else {
            return false;
        };
        job.leave(left);
        job.new.priority = priority.unwrap_or(job.new.priority);
        let wait = match when {
            When::After(_) if job.is_at_its_last_attempt() => {
                mark_dead(job, now, order);
                return true;
            }
            When::After(delay) => delay,
            When::Unbegun => {
                job.attempt -= 1;
                0
            }
        };
        job.wait_from(now + wait, order);
        true
    }

    pub fn touch(&mut self, now: u64, id: &[u8], lease: Option<u64>, left: &Left) -> bool {
        self.extend(now, id, lease, None, left)
    }

    pub fn extend(
        &mut self,
        now: u64,
        id: &[u8],
        lease: Option<u64>,
        ttr: Option<u64>,
        left: &Left,
    ) -> bool {
        let order = self.next_event();
        let has_run_out =
            |job: &&Job| job.stage == Stage::Leased && job.state(now) != State::Reserved;
        let over = self.job(id).filter(has_run_out);
        if over.is_some_and(|job| !self.groups.has_place(now, job, &self.jobs)) {
            return false;
        }
        let Some(job) = self.claimed_alive(now, id, lease) else {
            return false;
        };
        job.leave(left);
        (job.time, job.order) = (now + ttr.unwrap_or(job.new.ttr), order);
        true
    }

    pub fn bury(&mut self, now: u64, id: &[u8], lease: Option<u64>) -> bool {
        let order = self.next_event();
        let held = self.claimed_alive(now, id, lease);
        held.map(|job| mark_dead(job, now, order)).is_some()
    }
}
