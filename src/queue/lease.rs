//! The numbers of leases; and the most frequent hand-out of all, at a third of what the general one costs.

use super::details::Details;
use super::entry::Hold;
use super::ids::Lease;
use super::job::{Progress, Stage};
use super::policy::{Backoff, Policy};
use super::slab::Slot;
use super::time::{Millis, Time};
use super::{Arrival, Queue, Window};

/// So many lease numbers begin with each millisecond: see [`Lease`].
const LEASES_PER_MILLISECOND_BITS: u32 = 11;

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
        let arrival = Arrival { time: end, slot, hold: Hold::Leased, window };
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

    /// A number greater than all before. At least that with which the millisecond begins: so a queue that is made
    /// anew under a key goes on above the one that was there. `None` at the end of numbers, the year 2109.
    pub(super) fn next_lease(&self, now: Time) -> Option<Lease> {
        #[cfg(feature = "planted-faults")]
        if crate::planted::strikes_at(crate::planted::Fault::LeaseTwice, now.unix_ms(), 16) {
            return self.last_lease().or(Some(Queue::lease_at(now)));
        }
        let by_time = now.unix_ms() << LEASES_PER_MILLISECOND_BITS;
        let number = by_time.max(self.last_lease.number().saturating_add(1));
        (number < Lease::MAX.number()).then(|| Lease::new(number))
    }

    /// The lease that a pop at this time would give, at least.
    pub fn lease_at(now: Time) -> Lease {
        Lease::new((now.unix_ms() << LEASES_PER_MILLISECOND_BITS).min(Lease::MAX.number()))
    }
}
