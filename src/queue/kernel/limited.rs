//! What the limits of a queue come to, with its lanes beside them.

use super::limits::Allowance;
use super::queue::Queue;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// Where more leases than CONCURRENCY allows are live, since it was set lower, so many of their
/// ends are looked at.
const ENDS_LOOKED_AT: usize = 100;

impl Queue {
    /// What may leave now; `None` is without limits. What is finished by being handed out needs no
    /// place.
    #[inline]
    pub(in crate::queue) fn allowance(&self, now: Time, needs_places: bool) -> Option<Allowance> {
        self.limits.allowance(now, needs_places, &self.lanes)
    }

    /// So many have left.
    #[cold]
    pub(in crate::queue) fn use_up(&mut self, now: Time, jobs: usize) {
        if let Some(departures) = self.limits.use_up(now, jobs) {
            self.ledger.mix().departures(departures);
            if self.oldest_ready().is_some() {
                self.expect_next_by_rate();
            }
        }
    }

    /// A job is ready: the timer has to come when it may leave.
    #[inline]
    pub(in crate::queue) fn expect_next_by_rate(&mut self) {
        if let Some(opens) = self.rate_opens() {
            self.ledger.wake_by(opens);
        }
    }

    /// When the timer has to come for those who wait for a job that is ready. A clock that was set
    /// back lets one leave earlier; but it may be set on again.
    #[inline]
    pub(in crate::queue) fn rate_opens(&self) -> Option<Time> {
        self.limits.rate_opens().filter(|opens| *opens > self.lanes.horizon())
    }

    /// How many more may be leased now.
    pub(in crate::queue) fn free_places(&self, now: Time) -> usize {
        self.limits.free_places(now, &self.lanes)
    }

    /// How many may leave now by the rate, if there is one.
    pub fn may_leave_by_rate(&self, now: Time) -> Option<usize> {
        self.limits.may_leave_by_rate(now)
    }

    /// Until when the limits let nothing leave, as things stand: a job that is finished may change
    /// that. As of the last [`Queue::advance`].
    pub fn blocked_until(&self) -> Option<Time> {
        let now = self.lanes.horizon();
        self.limits.next_by_rate(now).into_iter().chain(self.next_place(now)).max()
    }

    /// When a place will be free, if none is.
    fn next_place(&self, now: Time) -> Option<Time> {
        let too_many = self.limits.lacking_places(now, &self.lanes)?;
        let mut leases = self.in_state(State::Reserved);
        let job = self.view(leases.nth(too_many.min(ENDS_LOOKED_AT))?)?;
        Some(job.progress.expires_at.map_or(job.time, |expires_at| expires_at.min(job.time)))
    }
}
