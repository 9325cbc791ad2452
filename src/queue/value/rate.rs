//! How fast jobs may leave a queue: the generic cell rate algorithm, GCRA (ATM Forum, "Traffic
//! Management Specification 4.0", 1996; ITU-T I.371), in its form with a virtual clock.
//!
//! One number is stored, the *theoretical arrival time*: when the next job would leave if all did
//! at even distances of `per ÷ jobs` milliseconds. A job may leave up to `burst − 1` such distances
//! before it. Each that leaves moves it on by one distance, from now if it was in the past: what
//! wasn't used isn't saved up, but for the burst.
//!
//! - The number is kept in parts of a millisecond, `1 ÷ jobs`, in which a distance is whole:
//!   nothing drifts.
//! - A millisecond of the clock is as long as it is: a job may leave in the one in which its time
//!   is. So three in ten milliseconds leave at 0, 3, 6, 10, 13, 16; and more jobs than one may
//!   leave in a millisecond if the rate says so.
//! - In any `per` milliseconds, from one to before another, at most `jobs + burst − 1` leave. (Of
//!   those that leave at *t* and, as the *k*-th behind it, at *u*, *u* − *t* > (*k* − *burst* + 1)
//!   · *per* ÷ *jobs* − 1, whatever the clock did in between.)

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::record::read_where_possible;
use super::time::{Millis, Time};

/// At most so many jobs in so long, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "(u32, Millis, u32)")]
pub struct Rate {
    jobs: NonZeroU32,
    per: Millis,
    burst: NonZeroU32,
}

read_where_possible!(Rate, (u32, Millis, u32), |(jobs, per, burst)| Rate::new(jobs, per, burst));

/// The theoretical arrival time, in parts of a millisecond of the rate that it belongs to.
///
/// Packed, since some servers' allocators align to 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed(8))]
pub struct Tat(u128);

/// As it is stored: milliseconds, and parts of one.
pub(in crate::queue) type TatParts = (u64, u32);

/// No later time can come about: the last one, and the longest burst.
const TAT_MS_MAX: u64 = 2 * (Time::MAX.unix_ms() + 1);

impl Rate {
    /// `None` when there is no such rate: one of no jobs, or in no time, or a burst that lasts
    /// longer than the longest span there is.
    pub fn new(jobs: u32, per: Millis, burst: u32) -> Option<Rate> {
        let rate = Rate { jobs: NonZeroU32::new(jobs)?, per, burst: NonZeroU32::new(burst)? };
        let lasts = u128::from(burst) * rate.distance() / rate.parts();
        (!per.is_zero() && lasts <= u128::from(Millis::MAX.as_u64())).then_some(rate)
    }

    pub fn jobs(&self) -> u32 {
        self.jobs.get()
    }

    pub fn per(&self) -> Millis {
        self.per
    }

    pub fn burst(&self) -> u32 {
        self.burst.get()
    }

    /// Of a millisecond.
    fn parts(&self) -> u128 {
        self.jobs.get().into()
    }

    /// Between two jobs, in parts.
    fn distance(&self) -> u128 {
        self.per.as_u64().into()
    }

    /// By how much a job may be before its time.
    fn tolerance(&self) -> u128 {
        u128::from(self.burst.get() - 1) * self.distance()
    }

    fn at(&self, time: Time) -> u128 {
        u128::from(time.unix_ms()) * self.parts()
    }

    fn end_of(&self, millisecond: Time) -> u128 {
        (u128::from(millisecond.unix_ms()) + 1) * self.parts()
    }

    /// When the next job would leave, as of `now`. Where that is further ahead than any job can
    /// have moved it by now, the clock was set back: one job may leave, and the others at their
    /// distances from it. So nobody waits longer than for one distance, and nobody gets a burst for
    /// it.
    fn next_arrival(&self, tat: Tat, now: Time) -> u128 {
        if tat.0 >= self.end_of(now) + self.tolerance() + self.distance() {
            return self.at(now) + self.tolerance();
        }
        tat.0.max(self.at(now))
    }

    /// How many jobs may leave now.
    pub fn may_leave(&self, tat: Tat, now: Time) -> usize {
        let room =
            (self.end_of(now) + self.tolerance()).saturating_sub(self.next_arrival(tat, now));
        usize::try_from(room.div_ceil(self.distance())).unwrap_or(usize::MAX)
    }

    /// When the next one may; not before now.
    pub fn next(&self, tat: Tat, now: Time) -> Time {
        self.open(Tat(self.next_arrival(tat, now))).max(now)
    }

    /// The same by a clock that is never set back: from then on one may leave, whatever the clock
    /// did.
    pub fn open(&self, tat: Tat) -> Time {
        let ms = tat.0.saturating_sub(self.tolerance()) / self.parts();
        u64::try_from(ms).ok().and_then(Time::new).unwrap_or(Time::MAX)
    }

    /// So many jobs leave now.
    pub fn after(&self, tat: Tat, now: Time, jobs: usize) -> Tat {
        Tat(self.next_arrival(tat, now) + self.distance() * jobs as u128)
    }

    /// From when on nothing counts any more of what has left.
    pub fn over_at(&self, tat: Tat) -> Time {
        let ms = tat.0.div_ceil(self.parts());
        u64::try_from(ms).ok().and_then(Time::new).unwrap_or(Time::MAX)
    }

    /// The same, but so that the next job leaves one distance from now at the latest.
    pub fn at_most_one_ahead(&self, tat: Tat, now: Time) -> Tat {
        Tat(tat.0.min(self.at(now) + self.tolerance() + self.distance()))
    }

    /// What becomes of a theoretical arrival time when this rate takes the place of another: it
    /// stays, but the next job leaves one distance from now at the latest.
    pub fn instead_of(&self, other: &Rate, tat: Tat, now: Time) -> Tat {
        if self == other {
            return tat;
        }
        let same_time = (tat.0 * self.parts()).div_ceil(other.parts());
        self.at_most_one_ahead(Tat(same_time), now)
    }

    pub(in crate::queue) fn parts_of(&self, tat: Tat) -> TatParts {
        let (ms, parts) = (tat.0 / self.parts(), tat.0 % self.parts());
        (ms as u64, parts as u32)
    }

    /// `None` when that can't be.
    pub(in crate::queue) fn tat(&self, parts: TatParts) -> Option<Tat> {
        Tat::of(parts, self.jobs.get())
    }
}

impl Tat {
    /// Of milliseconds with so many parts; `None` when that can't be.
    pub(in crate::queue) fn of((ms, parts): TatParts, parts_of_one: u32) -> Option<Tat> {
        let is_possible = ms <= TAT_MS_MAX && parts < parts_of_one;
        is_possible.then(|| Tat(u128::from(ms) * u128::from(parts_of_one) + u128::from(parts)))
    }
}

#[cfg(test)]
mod tests;
