//! What may leave a queue now. CONCURRENCY counts the leases that haven't run out at this moment,
//! which follow from stored times; RATE is one stored number. So no place has to be given back: one
//! that a dead worker had is free when its lease is over. Jobs that a limit holds back stay ready,
//! where they are.

use crate::queue::lines::lanes::Lanes;
use crate::queue::value::rate::{Tat, TatParts};
use crate::queue::value::settings::Settings;
use crate::queue::value::time::Time;

/// What was set for a queue, and what may leave it by that.
#[derive(Clone, Default)]
pub(in crate::queue) struct Limits {
    settings: Settings,
    /// When the next job would leave by the rate, in whose parts it counts.
    tat: Tat,
    /// Until then nothing is handed out.
    paused_until: Time,
}

/// How many jobs may leave at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) struct Allowance {
    pub jobs: usize,
    /// Whether CONCURRENCY allows no more than RATE.
    is_by_places: bool,
}

impl Allowance {
    /// Whether CONCURRENCY lets no more leave than these.
    pub fn lacks_places(&self, jobs: usize) -> bool {
        self.is_by_places && self.jobs == jobs
    }
}

impl Limits {
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where the rate has got to.
    pub fn tat(&self) -> Tat {
        self.tat
    }

    pub fn alter(&mut self, settings: Settings, now: Time) {
        let before = std::mem::replace(&mut self.settings, settings);
        self.tat = match (settings.rate, before.rate) {
            (Some(rate), Some(other)) => rate.instead_of(&other, self.tat, now),
            (Some(_), None) | (None, _) => Tat::default(),
        };
    }

    /// All this is as it was elsewhere.
    pub fn restore(&mut self, settings: Settings, tat: Tat, paused_until: Time) {
        *self = Limits { settings, tat, paused_until };
    }

    /// Until when nothing is handed out; that may be past.
    pub fn paused_until(&self) -> Time {
        self.paused_until
    }

    #[inline]
    pub fn is_paused(&self, now: Time) -> bool {
        self.paused_until > now
    }

    pub fn pause(&mut self, until: Time) {
        self.paused_until = until;
    }

    /// What may leave now; `None` is without limits. What is finished by being handed out needs no
    /// place.
    #[inline]
    pub fn allowance(&self, now: Time, needs_places: bool, lanes: &Lanes) -> Option<Allowance> {
        self.settings.is_limited().then(|| self.find_allowance(now, needs_places, lanes))
    }

    #[cold]
    fn find_allowance(&self, now: Time, needs_places: bool, lanes: &Lanes) -> Allowance {
        let by_rate = self.may_leave_by_rate(now).unwrap_or(usize::MAX);
        let places = if needs_places { self.free_places(now, lanes) } else { usize::MAX };
        Allowance { jobs: places.min(by_rate), is_by_places: places <= by_rate }
    }

    /// So many have left: where a rate has got to by that.
    #[cold]
    pub fn use_up(&mut self, now: Time, jobs: usize) -> Option<TatParts> {
        let rate = self.settings.rate.filter(|_| jobs > 0)?;
        self.tat = rate.after(self.tat, now, jobs);
        Some(rate.parts_of(self.tat))
    }

    /// From when on the rate lets one leave, whatever the clock says meanwhile.
    pub fn rate_opens(&self) -> Option<Time> {
        self.settings.rate.map(|rate| rate.open(self.tat))
    }

    /// How many more may be leased now.
    pub fn free_places(&self, now: Time, lanes: &Lanes) -> usize {
        let Some(concurrency) = self.settings.concurrency else {
            return usize::MAX;
        };
        (concurrency.get() as usize).saturating_sub(lanes.live_leases(now))
    }

    /// How many leases have to end before a place is free; `None` where one is.
    pub fn lacking_places(&self, now: Time, lanes: &Lanes) -> Option<usize> {
        lanes.live_leases(now).checked_sub(self.settings.concurrency?.get() as usize)
    }

    /// How many may leave now by the rate, if there is one.
    pub fn may_leave_by_rate(&self, now: Time) -> Option<usize> {
        self.settings.rate.map(|rate| rate.may_leave(self.tat, now))
    }

    /// From when on the rate lets one leave, if that is not now.
    pub fn next_by_rate(&self, now: Time) -> Option<Time> {
        let next = self.settings.rate.map(|rate| rate.next(self.tat, now));
        next.filter(|next| *next > now)
    }
}
