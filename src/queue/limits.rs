//! What may leave a queue now. CONCURRENCY counts the leases that haven't run out at this moment, which follow from
//! stored times; RATE is one stored number. So no place has to be given back: one that a dead worker had is free when its
//! lease is over. Jobs that a limit holds back stay ready, where they are.

use super::consume::{Deliveries, Mode};
use super::ids::Id;
use super::job::State;
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

/// The one that counts, where several hold: the queue's own before those of groups, and of these CONCURRENCY before RATE.
fn first_of_limits(
    allowance: Option<Allowance>,
    deliveries: &Deliveries,
    is_any_left: impl FnOnce() -> bool,
    is_held_by_group: impl FnOnce() -> bool,
) -> Option<Limit> {
    let used_up = allowance.filter(|allowance| allowance.jobs == deliveries.len());
    match used_up {
        Some(allowance) if is_any_left() => Some(allowance.limit),
        Some(_) | None => is_held_by_group().then_some(Limit::Group),
    }
}

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

    /// These have left.
    #[cold]
    pub(super) fn use_up(&mut self, now: Time, deliveries: &Deliveries) {
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
    }

    /// Whether there is anything that could hold a job back.
    #[inline]
    pub(super) fn may_hold_back(&self) -> bool {
        self.groups.is_some() || self.settings.is_limited()
    }

    /// What holds back others that are ready, where a search came to fewer than were wanted.
    #[cold]
    pub(super) fn holds_back(
        &self,
        now: Time,
        allowance: Option<Allowance>,
        deliveries: &Deliveries,
    ) -> Option<Limit> {
        // It has looked at all that there is.
        let is_at_end = deliveries.have_room(usize::MAX) && !deliveries.have_ended_early();
        let is_any_left = || self.schedule.is_any_ready(now);
        let is_held_by_group = || is_at_end && self.groups.is_some() && is_any_left();
        first_of_limits(allowance, deliveries, is_any_left, is_held_by_group)
    }

    /// The same where jobs were wanted by their ids: of those that were asked for, and of those to which it didn't come.
    #[cold]
    pub(super) fn holds_back_called(
        &self,
        now: Time,
        allowance: Option<Allowance>,
        deliveries: &Deliveries,
        (asked_for, left): (&[Id], &[Id]),
    ) -> Option<Limit> {
        let is_any_left = || left.iter().any(|id| self.to_be_taken(now, *id).is_some());
        let is_held_by_group =
            || self.groups.is_some() && asked_for.iter().any(|id| self.is_held_back_by_its_group(now, *id));
        first_of_limits(allowance, deliveries, is_any_left, is_held_by_group)
    }

    /// Whether nothing but its group holds back the job with this id.
    fn is_held_back_by_its_group(&self, now: Time, id: Id) -> bool {
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
