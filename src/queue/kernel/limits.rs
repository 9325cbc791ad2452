//! How many jobs may leave a queue now. CONCURRENCY counts the leases that are live at this moment,
//! which follows from stored times; RATE is one stored number. So no place is given back by a
//! command: the place of a dead worker is free when its lease ends. A job that a limit holds back
//! stays ready, in its line.

use crate::queue::lines::lanes::Lanes;
use crate::queue::value::rate::{Tat, TatParts};
use crate::queue::value::settings::Settings;
use crate::queue::value::sink::Sink;
use crate::queue::value::time::Time;

/// A queue's settings, and what they let leave.
#[derive(Clone, Default)]
pub(in crate::queue) struct Limits {
    settings: Settings,
    /// When the rate lets the next job leave, in the rate's parts.
    tat: Tat,
    /// Until then no job is delivered.
    paused_until: Time,
    /// Where jobs go when they may leave, if no client waits for them.
    sink: Option<Box<Sink>>,
}

/// How many jobs may leave at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::queue) struct Allowance {
    pub jobs: usize,
    /// Whether CONCURRENCY allows no more than RATE.
    is_by_places: bool,
}

impl Allowance {
    /// Whether CONCURRENCY allows no more than `jobs`.
    pub fn lacks_places(&self, jobs: usize) -> bool {
        self.is_by_places && self.jobs == jobs
    }
}

impl Limits {
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// When the rate lets the next job leave.
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

    pub fn sink(&self) -> Option<&Sink> {
        self.sink.as_deref()
    }

    pub fn set_sink(&mut self, sink: Option<Sink>) {
        self.sink = sink.map(Box::new);
    }

    pub fn memory(&self) -> usize {
        self.sink.as_ref().map_or(0, |sink| sink.memory())
    }

    /// Restores a saved state.
    pub fn restore(
        &mut self,
        settings: Settings,
        tat: Tat,
        paused_until: Time,
        sink: Option<Sink>,
    ) {
        *self = Limits { settings, tat, paused_until, sink: sink.map(Box::new) };
    }

    /// Until when no job is delivered. It may be in the past.
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

    /// How many jobs may leave now; `None` without limits. A job that is finished when it is handed
    /// out needs no place.
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

    /// Counts `jobs` jobs that left. Returns the new rate state for the checksum; `None` without a
    /// rate.
    #[cold]
    pub fn use_up(&mut self, now: Time, jobs: usize) -> Option<TatParts> {
        let rate = self.settings.rate.filter(|_| jobs > 0)?;
        self.tat = rate.after(self.tat, now, jobs);
        Some(rate.parts_of(self.tat))
    }

    /// From when on the rate lets a job leave, whatever the clock says now.
    pub fn rate_opens(&self) -> Option<Time> {
        self.settings.rate.map(|rate| rate.open(self.tat))
    }

    /// How many more jobs may be leased now.
    pub fn free_places(&self, now: Time, lanes: &Lanes) -> usize {
        let Some(concurrency) = self.settings.concurrency else {
            return usize::MAX;
        };
        (concurrency.get() as usize).saturating_sub(lanes.live_leases(now))
    }

    /// How many leases beyond the first must end before a place is free; `None` if one is free.
    pub fn lacking_places(&self, now: Time, lanes: &Lanes) -> Option<usize> {
        lanes.live_leases(now).checked_sub(self.settings.concurrency?.get() as usize)
    }

    /// How many jobs may leave now by the rate; `None` without a rate.
    pub fn may_leave_by_rate(&self, now: Time) -> Option<usize> {
        self.settings.rate.map(|rate| rate.may_leave(self.tat, now))
    }

    /// When the rate lets a job leave; `None` if it may leave now.
    pub fn next_by_rate(&self, now: Time) -> Option<Time> {
        let next = self.settings.rate.map(|rate| rate.next(self.tat, now));
        next.filter(|next| *next > now)
    }
}
