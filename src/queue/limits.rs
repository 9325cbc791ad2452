//! What may leave a queue now. CONCURRENCY counts the leases that haven't run out at this moment, which follow from
//! stored times; RATE is one stored number. So no place has to be given back: one that a dead worker had is free when its
//! lease is over. Jobs that a limit holds back stay ready, where they are.

use super::consume::{Deliveries, Mode};
use super::ids::Id;
use super::job::State;
use super::schedule::FromLane;
use super::settings::Limit;
use super::slab::Slot;
use super::time::Time;
use super::Queue;

/// How many jobs may leave at a moment, and what lets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Allowance {
    pub jobs: usize,
    limit: Limit,
}

/// Where more leases than CONCURRENCY allows are live, since it was set lower, so many of their ends are looked at.
const ENDS_LOOKED_AT: usize = 100;

impl Queue {
    /// What may leave now; `None` is without limits.
    #[inline]
    pub(super) fn allowance(&self, now: Time, mode: Mode) -> Option<Allowance> {
        self.settings.is_limited().then(|| self.find_allowance(now, mode))
    }

    #[cold]
    fn find_allowance(&self, now: Time, mode: Mode) -> Allowance {
        let by_rate = self.may_leave_by_rate(now).unwrap_or(usize::MAX);
        // What is finished by being handed out has no lease.
        let places = if mode == Mode::Lease { self.free_places(now) } else { usize::MAX };
        #[cfg(feature = "planted-faults")]
        let places =
            places.saturating_add(crate::planted::has(crate::planted::Fault::OverConcurrency).into());
        let limit = if places <= by_rate { Limit::Concurrency } else { Limit::Rate };
        Allowance { jobs: places.min(by_rate), limit }
    }

    /// These have left, of so many that were wanted. Says what held others back that were ready.
    #[cold]
    pub(super) fn use_allowance(
        &mut self,
        now: Time,
        allowance: &Allowance,
        (deliveries, wanted): (&Deliveries, usize),
        lane: &mut FromLane,
    ) -> Option<Limit> {
        let jobs = deliveries.len();
        let is_used_up = jobs == allowance.jobs && jobs < wanted;
        let is_held = is_used_up && self.first_to_leave(now, lane).is_some();
        self.use_up(now, allowance, deliveries, is_held)
    }

    /// The same, where it is known whether others were held back.
    #[cold]
    pub(super) fn use_up(
        &mut self,
        now: Time,
        allowance: &Allowance,
        deliveries: &Deliveries,
        is_held: bool,
    ) -> Option<Limit> {
        let jobs = deliveries.len();
        #[cfg(feature = "planted-faults")]
        let jobs = crate::planted::counted_by_rate(jobs, now.unix_ms());
        if let Some(rate) = self.settings.rate.filter(|_| jobs > 0) {
            self.tat = rate.after(self.tat, now, jobs);
            self.heading.mix_departures(rate.parts_of(self.tat));
            if self.oldest_ready().is_some() {
                self.expect_next_by_rate();
            }
        }
        is_held.then_some(allowance.limit)
    }

    /// Whether a job that is wanted by its id may leave, as far as its state and its group go.
    pub(super) fn can_be_taken(&self, now: Time, id: Id) -> bool {
        self.to_be_taken(now, id).is_some_and(|slot| self.may_leave_its_group(slot, now))
    }

    /// Whether nothing but its group holds it back.
    pub(super) fn is_held_back_by_its_group(&self, now: Time, id: Id) -> bool {
        self.to_be_taken(now, id).is_some_and(|slot| !self.may_leave_its_group(slot, now))
    }

    /// The job with this id, if its state is one in which it can be taken by it.
    fn to_be_taken(&self, now: Time, id: Id) -> Option<Slot> {
        let slot = self.pool.find(id)?;
        match self.view(slot)?.state(now) {
            State::Ready | State::Delayed | State::Dead => Some(slot),
            State::Reserved | State::Done => None,
        }
    }

    /// A job is ready: the timer has to come when it may leave.
    pub(super) fn expect_next_by_rate(&mut self) {
        self.wake_at = self.wake_at.min(self.rate_opens().unwrap_or(Time::MAX));
    }

    /// When the timer has to come for those who wait for a job that is ready. A clock that was set back lets one leave
    /// earlier; but it may be set on again.
    pub(super) fn rate_opens(&self) -> Option<Time> {
        let opens = self.settings.rate.map(|rate| rate.open(self.tat));
        opens.filter(|opens| *opens > self.schedule.horizon())
    }

    /// How many more may be leased now.
    pub(super) fn free_places(&self, now: Time) -> usize {
        let Some(concurrency) = self.settings.concurrency else {
            return usize::MAX;
        };
        (concurrency.get() as usize).saturating_sub(self.schedule.live_leases(now))
    }

    /// How many may leave now by the rate, if there is one.
    pub fn may_leave_by_rate(&self, now: Time) -> Option<usize> {
        self.settings.rate.map(|rate| rate.may_leave(self.tat, now))
    }

    /// From when on the rate lets one leave, if that is not now.
    fn next_by_rate(&self, now: Time) -> Option<Time> {
        let next = self.settings.rate.map(|rate| rate.next(self.tat, now));
        next.filter(|next| *next > now)
    }

    /// Until when the limits let nothing leave, as things stand: a job that is finished may change that. As of the last
    /// [`Queue::advance`].
    pub fn held_until(&self) -> Option<Time> {
        let now = self.schedule.horizon();
        self.next_by_rate(now).into_iter().chain(self.next_place(now)).max()
    }

    /// When a place will be free, if none is.
    fn next_place(&self, now: Time) -> Option<Time> {
        let concurrency = self.settings.concurrency?.get() as usize;
        let too_many = self.schedule.live_leases(now).checked_sub(concurrency)?;
        let mut leases = self.in_state(State::Reserved);
        let job = self.view(leases.nth(too_many.min(ENDS_LOOKED_AT))?)?;
        Some(job.progress.expires_at.map_or(job.time, |expires_at| expires_at.min(job.time)))
    }
}
