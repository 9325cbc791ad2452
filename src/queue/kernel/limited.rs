//! The limits of a queue, applied to its lanes.

use super::queue::Queue;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// If more leases are live than CONCURRENCY allows, since it was lowered, at most this many lease
/// ends are looked at.
const ENDS_LOOKED_AT: usize = 100;

impl Queue {
    /// Counts `jobs` jobs that left.
    #[cold]
    pub(in crate::queue) fn use_up(&mut self, now: Time, jobs: usize) {
        if let Some(departures) = self.limits.use_up(now, jobs) {
            self.ledger.checksum_mut().departures(departures);
            if self.oldest_ready().is_some() {
                self.wake_for_rate();
            }
        }
    }

    /// A job is ready: the timer must wake when the rate lets it leave.
    #[inline]
    pub(in crate::queue) fn wake_for_rate(&mut self) {
        if let Some(opens) = self.rate_opens() {
            self.ledger.wake_by(opens);
        }
    }

    /// When the rate next lets a ready job leave, if that is after the horizon. If the clock was
    /// set back, a job may leave earlier; this time stays valid in case the clock is set forward
    /// again.
    #[inline]
    pub(in crate::queue) fn rate_opens(&self) -> Option<Time> {
        self.limits.rate_opens().filter(|opens| *opens > self.lanes.horizon())
    }

    /// How many jobs may leave now by the rate; `None` without a rate.
    pub fn may_leave_by_rate(&self, now: Time) -> Option<usize> {
        self.limits.may_leave_by_rate(now)
    }

    /// Until when the limits hold back all jobs, as of the last [`Queue::advance`]. A job that is
    /// finished may free a place earlier.
    pub fn blocked_until(&self) -> Option<Time> {
        let now = self.lanes.horizon();
        self.limits.next_by_rate(now).into_iter().chain(self.next_place(now)).max()
    }

    /// When a place will be free; `None` if one is free now.
    fn next_place(&self, now: Time) -> Option<Time> {
        let too_many = self.limits.lacking_places(now, &self.lanes)?;
        let mut leases = self.in_state(State::Reserved);
        let job = self.view(leases.nth(too_many.min(ENDS_LOOKED_AT))?)?;
        Some(job.progress.expires_at.map_or(job.time, |expires_at| expires_at.min(job.time)))
    }
}
