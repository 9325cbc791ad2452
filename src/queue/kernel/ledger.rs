//! What a queue remembers of what was done to it: where its log stands, the numbers that were given
//! out, what is counted, and what somebody has yet to hear of.

use super::log_state::{Circumstances, Defaults, LogState};
use super::totals::{count, Totals};
use crate::queue::lines::lanes::Uncounted;
use crate::queue::value::ids::Lease;
use crate::queue::value::serial::Serial;
use crate::queue::value::time::Time;

/// So many lease numbers begin with each millisecond: see [`Lease`].
const LEASES_PER_MILLISECOND_BITS: u32 = 11;

#[derive(Clone)]
pub(in crate::queue) struct Ledger {
    log_state: LogState,
    /// The time of the change before the operation that is carried out, or was last.
    clock_before: Time,
    last_lease: Lease,
    last_serial: Serial,
    totals: Totals,
    /// Up to here, what time did is in the totals.
    counted: Time,
    events: Events,
    /// The timer need not come earlier.
    wake_at: Time,
}

/// What has become of jobs that somebody may want to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    pub is_any_ready: bool,
    pub is_any_dead: bool,
    /// Something was met that can't be, and stepped over.
    pub bug: Option<&'static str>,
}

/// What an operation that comes to nothing leaves as it was.
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

    /// The time of the operation that is carried out or, between two of them, of the last change.
    pub fn clock(&self) -> Time {
        self.log_state.clock
    }

    /// The time of the change before that.
    pub fn clock_before(&self) -> Time {
        self.clock_before
    }

    /// An operation begins.
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

    /// It has come to nothing.
    #[inline]
    pub fn roll_back(&mut self, before: &Before) {
        self.log_state.clock = self.clock_before;
        self.log_state.defaults = before.defaults;
        self.last_lease = before.last_lease;
    }

    /// To mix in what an operation does.
    #[inline]
    pub fn mix(&mut self) -> &mut super::log_state::Checksum {
        &mut self.log_state.check
    }

    pub fn last_lease(&self) -> Lease {
        self.last_lease
    }

    /// Leases up to this one were given.
    #[inline]
    pub fn raise_lease(&mut self, lease: Lease) {
        self.last_lease = self.last_lease.max(lease);
    }

    /// A number greater than all before. At least that with which the millisecond begins: so a
    /// queue that is made anew under a key goes on above the one that was there. `None` at the end
    /// of numbers, the year 2109.
    #[inline]
    pub fn next_lease(&self, now: Time) -> Option<Lease> {
        let by_time = now.unix_ms() << LEASES_PER_MILLISECOND_BITS;
        let number = by_time.max(self.last_lease.number().saturating_add(1));
        (number < Lease::MAX.number()).then(|| Lease::new(number))
    }

    /// The lease that a pop at this time would give, at least.
    pub fn lease_at(now: Time) -> Lease {
        Lease::new((now.unix_ms() << LEASES_PER_MILLISECOND_BITS).min(Lease::MAX.number()))
    }

    pub fn last_serial(&self) -> Serial {
        self.last_serial
    }

    /// Ids up to this one were made.
    pub fn raise_serial(&mut self, serial: Serial) {
        self.last_serial = self.last_serial.max(serial);
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// So many more of this total.
    #[inline]
    pub fn count(&mut self, total: impl FnOnce(&mut Totals) -> &mut u64, more: usize) {
        count(total(&mut self.totals), more);
    }

    /// Up to here, what time did is in the totals.
    pub fn counted(&self) -> Time {
        self.counted
    }

    /// Time has passed up to `now`, and this has come of it.
    pub fn count_passed(&mut self, now: Time, uncounted: &Uncounted) {
        self.counted = self.counted.max(now);
        count(&mut self.totals.timed_out, uncounted.timed_out);
        count(&mut self.totals.died, uncounted.died);
    }

    /// All this is as it was elsewhere.
    pub fn restore(&mut self, log_state: &LogState, totals: &Totals, counted: Time) {
        (self.log_state, self.totals, self.counted) = (*log_state, *totals, counted);
    }

    #[inline]
    pub fn tell(&mut self, is_any_ready: bool, is_any_dead: bool) {
        self.events.is_any_ready |= is_any_ready;
        self.events.is_any_dead |= is_any_dead;
    }

    /// A branch that can't be taken is: told with the events, where it isn't an end at once.
    #[cold]
    pub fn bug(&mut self, what: &'static str) {
        self.events.bug = Some(what);
        debug_assert!(false, "{what}");
    }

    pub fn events(&self) -> Events {
        self.events
    }

    /// Nobody hears of what has happened since these were the events.
    pub fn restore_events(&mut self, events: Events) {
        self.events = events;
    }

    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    #[inline]
    pub fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// The timer has to come then, at the latest.
    #[inline]
    pub fn wake_by(&mut self, time: Time) {
        self.wake_at = self.wake_at.min(time);
    }

    /// When it has to come is to be found out anew.
    pub fn wake_now(&mut self) {
        self.wake_at = Time::ZERO;
    }

    /// It has been found out.
    pub fn set_wake_at(&mut self, time: Time) {
        self.wake_at = time;
    }
}
