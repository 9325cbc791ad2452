//! Lease numbers across queues. Within a queue they only grow; but a queue can be deleted and
//! created again, replaced by another, or loaded from a file that is older than the last leases it
//! gave. So:
//!
//! - a queue that may be new at its key gives no lease up to the highest one that this process has
//!   seen;
//! - a process that may not have seen all leases, since it has loaded data or become the primary,
//!   assumes that the highest one is an hour ahead of its clock; if it has seen a higher one, some
//!   seconds of numbers above that.
//!
//! docs/guarantees.md says what this doesn't cover: a clock that is set back together with a crash
//! that lost leases.

use std::time::Duration;

use crate::queue::{Lease, Millis, Time};
use crate::services::keys::value::QueueValue;

/// The clocks of servers differ by less than this. A lease number that is further ahead was forged
/// (in a RESTORE payload, for example): it counts for its own queue only, not for all queues.
const AHEAD_MAX: Millis = Millis::of_secs(366 * 24 * 3_600);

/// A server whose clock was ahead by less than this has given no lease above it.
const MARGIN: Millis = Millis::of_secs(3_600);

/// This many leases above the highest known one may have been given and lost: half a second's. A
/// random part makes two starts with the same file differ, by up to half a minute's.
const LOST_MAX: u64 = 1 << 20;
const CHANCE_BITS: u32 = 26;

/// Whether no server can have given this lease by now. If a queue adopted it, it could soon have no
/// numbers left.
pub fn is_forged(lease: Lease, wall_clock: Time) -> bool {
    lease > ahead_by(AHEAD_MAX, wall_clock)
}

/// The first lease number of a time this far ahead of the clock.
fn ahead_by(span: Millis, wall_clock: Time) -> Lease {
    Lease::first_at(wall_clock.saturating_add(span))
}

/// A different number at each start and each change of the role. It needn't be secret.
fn chance(wall_clock: Time, uptime: Duration) -> u64 {
    // The golden ratio spreads the lowest bits, in which times differ, over the highest ones.
    let times = wall_clock.unix_ms().rotate_left(32) ^ uptime.subsec_nanos() as u64;
    times.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CHANCE_BITS)
}

pub struct Leases {
    highest: Lease,
    /// Increased whenever a queue may have come to a key that had another queue.
    epoch: u64,
}

impl Leases {
    pub const NONE: Leases = Leases { highest: Lease::new(0), epoch: 1 };

    /// Remembers that this lease exists. A highest lease from a clock that was years ahead, and was
    /// then set back, is forgotten.
    pub fn observe(&mut self, lease: Lease, now: Time) {
        if (lease > self.highest || is_forged(self.highest, now)) && !is_forged(lease, now) {
            self.highest = lease;
        }
    }

    /// Queues may have moved to other keys.
    pub fn keys_changed(&mut self) {
        self.epoch += 1;
    }

    /// Leases that this process hasn't seen may exist, also if it has seen none.
    pub fn may_have_lost_some(&mut self, wall_clock: Time, uptime: Duration) {
        let by_clock = ahead_by(MARGIN, wall_clock);
        self.highest = if by_clock > self.highest || is_forged(self.highest, wall_clock) {
            by_clock
        } else {
            let above = self.highest.number().saturating_add(LOST_MAX + chance(wall_clock, uptime));
            // Not above the forgery limit: beyond it, the number would be ignored.
            Lease::new(above).min(ahead_by(AHEAD_MAX, wall_clock))
        };
        self.keys_changed();
    }

    /// The lease floor that this queue needs as an input before it gives a lease; zero if it needs
    /// none.
    pub fn floor_for(&self, value: &QueueValue, now: Time) -> Lease {
        let has_floor = value.lease_epoch == self.epoch;
        if has_floor || self.highest < Lease::first_at(now) || is_forged(self.highest, now) {
            return Lease::default();
        }
        self.highest
    }

    /// From here on, this queue gives only leases above the floor.
    pub fn mark_floor_set(&self, value: &mut QueueValue) {
        value.lease_epoch = self.epoch;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;

    const NOW: Time = match Time::new(1_800_000_000_000) {
        Some(now) => now,
        None => Time::MAX,
    };

    fn after(ms: u64) -> Time {
        NOW.saturating_add(Millis::new(ms).unwrap())
    }

    /// The highest lease that a server with this known lease begins with, if it starts at this
    /// time.
    fn begins_with(known: Lease, wall_clock: Time) -> u64 {
        let mut leases = Leases::NONE;
        leases.observe(known, NOW);
        leases.may_have_lost_some(wall_clock, Duration::from_nanos(wall_clock.unix_ms()));
        leases.highest.number()
    }

    /// Each start gives leases that are lost: the file has none of them, or only those of the start
    /// before.
    #[test]
    fn starts_with_the_same_file_give_no_number_twice() {
        let mut known = Lease::first_at(NOW);
        for round in 0..3 {
            let starts = (1..20).map(|start| after(round * 10_000 + start * 200));
            let begins: Vec<u64> = starts.map(|now| begins_with(known, now)).collect();
            assert!(begins.windows(2).all(|pair| pair[1] > pair[0] + 10_000), "{begins:?}");
            known = Lease::new(begins[18] + 100);
        }
    }

    #[test]
    fn a_start_without_a_file_begins_above_what_a_clock_a_minute_ahead_gave() {
        assert!(begins_with(Lease::default(), NOW) > Lease::first_at(after(60_000)).number());
    }

    #[test]
    fn starts_behind_a_clock_that_was_hours_ahead_differ_by_chance() {
        let known = Lease::first_at(after(2 * 3_600_000));
        let begins: Vec<u64> =
            (1..20).map(|start| begins_with(known, after(start * 200))).collect();
        for (at, one) in begins.iter().enumerate() {
            assert!(*one > known.number() + 1_000_000);
            assert!(
                begins.iter().skip(at + 1).all(|other| one.abs_diff(*other) > 10_000),
                "{begins:?}"
            );
        }
    }

    /// Queues created after the clock was set right can deliver jobs, and continue above the
    /// leases that the server gave by the right clock.
    #[test]
    fn a_clock_that_was_years_ahead_uses_no_leases_up() {
        let mut leases = Leases::NONE;
        let value = QueueValue::new(
            Queue::new((1, 2)),
            crate::services::keys::sums::QueueSums::default(),
            Default::default(),
        );
        leases.observe(Lease::new(Lease::MAX.number() - 1), Time::MAX);
        assert_eq!(leases.floor_for(&value, NOW), Lease::default());
        leases.observe(Lease::first_at(after(5)), NOW);
        assert_eq!(leases.floor_for(&value, NOW), Lease::first_at(after(5)));
    }

    /// A queue keeps its floor, and is saved with it.
    #[test]
    fn a_server_that_starts_when_all_numbers_are_used_begins_with_one_that_can_be_read() {
        assert_eq!(begins_with(Lease::default(), Time::MAX), Lease::MAX.number() - 1);
    }

    #[test]
    fn a_lease_is_forged_from_a_year_and_a_day_on() {
        let last = Lease::first_at(after(366 * 24 * 3_600_000));
        assert_eq!(
            [0, 1].map(|more| is_forged(Lease::new(last.number() + more), NOW)),
            [false, true]
        );
    }

    /// A client may bring a lease from almost a year ahead: a server that starts with it can still
    /// deliver jobs.
    #[test]
    fn a_start_begins_with_no_forged_lease() {
        for hours in [0, 2, 30, 365 * 24, 366 * 24 - 1, 366 * 24] {
            let begin = begins_with(Lease::first_at(after(hours * 3_600_000)), NOW);
            assert!(!is_forged(Lease::new(begin), NOW), "{hours} hours ahead");
        }
    }

    #[test]
    fn a_role_that_changes_behind_a_clock_that_was_years_ahead_begins_by_the_clock() {
        let mut leases = Leases::NONE;
        leases.observe(Lease::new(Lease::MAX.number() - 1), Time::MAX);
        leases.may_have_lost_some(NOW, Duration::ZERO);
        assert_eq!(leases.highest, Lease::first_at(after(3_600_000)));
    }

    /// A server that restarts every second gets no further ahead of the clock than the margin and
    /// some hours.
    #[test]
    fn a_server_that_is_started_again_and_again_does_not_run_away() {
        let mut known = Lease::first_at(NOW);
        for start in 1..=3_600 {
            known = Lease::new(begins_with(known, after(start * 1_000)) + 1_000);
        }
        assert!(known < Lease::first_at(after(24 * 3_600_000)));
    }
}
