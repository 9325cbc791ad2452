//! What a queue remembers of its history: its place in the log, the numbers it gave out, its
//! totals, and the events that its caller hasn't read yet.

use super::log_state::{Circumstances, Defaults, LogState};
use super::totals::{count, Totals};
use crate::queue::lines::counts::Passed;
use crate::queue::memory::impossible::take_impossible;
use crate::queue::value::ids::{Lease, LEASES_PER_MILLISECOND_BITS};
use crate::queue::value::serial::Serial;
use crate::queue::value::time::Time;

#[derive(Clone)]
pub(in crate::queue) struct Ledger {
    log_state: LogState,
    /// The queue's clock before the operation that runs now or ran last.
    clock_before: Time,
    last_lease: Lease,
    last_serial: Serial,
    totals: Totals,
    /// The totals include what time did up to here.
    counted: Time,
    events: Events,
    /// The timer must wake at this time or before.
    wake_at: Time,
}

/// What happened, for waiting clients, notifications and the server's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// How many jobs were added or replaced, delivered, finished; deleted or purged.
    pub added: u32,
    pub delivered: u32,
    pub finished: u32,
    pub removed: u32,
    /// The queue, or a group.
    pub was_paused: bool,
    pub was_resumed: bool,
    /// A job became ready, or died: by a command, or as time passed.
    pub is_any_ready: bool,
    pub is_any_dead: bool,
    /// A branch that can't be reached and was: by this queue or another, since the last call.
    pub bug: Option<&'static str>,
}

/// What an operation that changed nothing restores.
#[derive(Clone, Copy)]
pub(in crate::queue) struct Before {
    defaults: Defaults,
    last_lease: Lease,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            log_state: LogState::default(),
            clock_before: Time::ZERO,
            last_lease: Lease::default(),
            last_serial: Serial::default(),
            totals: Totals::default(),
            counted: Time::ZERO,
            events: Events::default(),
            wake_at: Time::MAX,
        }
    }
}

impl Ledger {
    pub fn log_state(&self) -> &LogState {
        &self.log_state
    }

    /// The time of the operation that runs now or, between operations, of the last change.
    pub fn clock(&self) -> Time {
        self.log_state.clock
    }

    /// While an operation runs, the time of the change before it. After an operation that changed
    /// nothing, the same as [`Ledger::clock`].
    pub fn clock_before(&self) -> Time {
        self.clock_before
    }

    /// Begins an operation. Returns what [`Ledger::roll_back`] needs if it changes nothing.
    #[inline]
    pub fn begin(&mut self, circumstances: &Circumstances) -> Before {
        let LogState { clock, defaults, .. } = self.log_state;
        let before = Before { defaults, last_lease: self.last_lease };
        self.clock_before = clock;
        self.log_state.clock = circumstances.now;
        self.log_state.defaults = circumstances.defaults;
        self.last_lease = self.last_lease.max(circumstances.lease_floor);
        before
    }

    /// The operation changed nothing: restores the state before it.
    #[inline]
    pub fn roll_back(&mut self, before: &Before) {
        self.log_state.clock = self.clock_before;
        self.log_state.defaults = before.defaults;
        self.last_lease = before.last_lease;
    }

    /// The checksum, into which each change is mixed.
    #[inline]
    pub fn checksum_mut(&mut self) -> &mut super::log_state::Checksum {
        &mut self.log_state.check
    }

    pub fn last_lease(&self) -> Lease {
        self.last_lease
    }

    /// Leases up to this number were given out.
    #[inline]
    pub fn raise_lease(&mut self, lease: Lease) {
        self.last_lease = self.last_lease.max(lease);
    }

    /// A lease number greater than all before, and at least the first number of this millisecond:
    /// so a queue that is created again under a key continues above the numbers of the one before.
    /// `None` when all numbers are used, in the year 2109.
    #[inline]
    pub fn next_lease(&self, now: Time) -> Option<Lease> {
        let by_time = now.unix_ms() << LEASES_PER_MILLISECOND_BITS;
        let number = by_time.max(self.last_lease.number().saturating_add(1));
        (number < Lease::MAX.number()).then(|| Lease::new(number))
    }

    pub fn last_serial(&self) -> Serial {
        self.last_serial
    }

    /// Generated ids up to this number were used.
    pub fn raise_serial(&mut self, serial: Serial) {
        self.last_serial = self.last_serial.max(serial);
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// The totals, and the events, to which each change of a job adds: see `journal.rs`.
    #[inline]
    pub fn counters_mut(&mut self) -> (&mut Totals, &mut Events) {
        (&mut self.totals, &mut self.events)
    }

    /// The totals include what time did up to here.
    pub fn counted(&self) -> Time {
        self.counted
    }

    /// Adds what time did up to `now`. The totals have a part of it, where the clock was set back.
    pub fn count_passed(&mut self, now: Time, passed: &Passed) {
        self.counted = self.counted.max(now);
        count(&mut self.totals.timed_out, passed.uncounted.timed_out);
        count(&mut self.totals.died, passed.uncounted.died);
        self.events.is_any_ready |= passed.became_ready > 0;
        self.events.is_any_dead |= passed.died > 0;
    }

    /// Restores a saved state.
    pub fn restore(&mut self, log_state: &LogState, totals: &Totals, counted: Time) {
        (self.log_state, self.totals, self.counted) = (*log_state, *totals, counted);
    }

    /// The queue, or a group, was paused, or resumed.
    pub fn add_pause(&mut self, was_paused: bool) {
        self.events.was_paused |= was_paused;
        self.events.was_resumed |= !was_paused;
    }

    pub fn take_events(&mut self) -> Events {
        Events { bug: take_impossible(), ..std::mem::take(&mut self.events) }
    }

    #[inline]
    pub fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// The timer must wake by `time`.
    #[inline]
    pub fn wake_by(&mut self, time: Time) {
        self.wake_at = self.wake_at.min(time);
    }

    /// The timer must find out anew when to wake.
    pub fn wake_now(&mut self) {
        self.wake_at = Time::ZERO;
    }

    /// Sets when the timer must wake, after finding it out.
    pub fn set_wake_at(&mut self, time: Time) {
        self.wake_at = time;
    }
}
