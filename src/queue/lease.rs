//! The most frequent hand-out of all, at a third of what the general one costs.

use super::details::Details;
use super::entry::Hold;
use super::ids::Lease;
use super::job::{Progress, Stage};
use super::policy::{Backoff, Policy};
use super::slab::Slot;
use super::time::{Millis, Time};
use super::{Arrival, Queue, Rank, Window};

impl Policy {
    /// Whether a job whose first lease runs out is ready at once.
    fn is_ready_again(&self) -> bool {
        self.backoff == Backoff::NONE && !self.attempts.end_with(1)
    }
}

impl Queue {
    /// Leases a job that nobody has had, doesn't expire and will be ready when its lease runs out: it stays in its lane.
    /// Does what [`Queue::shift`] would; `None`, and nothing is done, when the job isn't such a one. Otherwise the end of
    /// the lease, and how long the body is.
    pub(super) fn lease_simply(
        &mut self,
        slot: Slot,
        lease: Lease,
        now: Time,
        ttr: Option<Millis>,
    ) -> Option<(Time, u32)> {
        let job = self.pool.get_mut(slot)?;
        let number = job.policy()?;
        let policy =
            self.policies.get(number).filter(|terms| terms.is_ready_again() && !terms.has_group())?;
        let priority = policy.priority;
        let end = now.saturating_add(ttr.unwrap_or(policy.ttr));
        let leased = Progress { stage: Stage::Leased, attempt: 1, lease: Some(lease), expires_at: None };
        let details = self.details.insert(Details::new(number, end, &leased, None))?;
        job.set_details(details);
        let (bucket, body_bytes) = (job.bucket, job.body_bytes());
        let window = Window { opens: end, closes: Time::MAX };
        let arrival = Arrival { time: end, slot, hold: Hold::Leased, rank: Rank::Last, window };
        if !self.schedule.shift_in_lane(priority, bucket, &arrival, &mut self.pool) {
            self.bug("a job that nobody has had stands in its lane");
        }
        let horizon = self.schedule.horizon();
        self.news.is_any_ready |= end <= horizon;
        if end > horizon {
            self.wake_at = self.wake_at.min(end);
        }
        self.heading.mix_place(end, &leased);
        self.last_lease = self.last_lease.max(lease);
        Some((end, body_bytes))
    }
}
