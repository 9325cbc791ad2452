//! Points in time and lengths of time, in milliseconds, as two types that can't be mixed by
//! accident.

use serde::{Deserialize, Serialize};

use super::record::read_where_possible;

/// The last point in time and the longest span: 2^48 − 1 ms, the year 10889. Everything that is
/// stored, sent and added up stays below it. So times fit into 48 bits, and sums of two into a
/// `u64`.
const LIMIT: u64 = (1 << 48) - 1;

/// A point in time: milliseconds since the Unix epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u64")]
pub struct Time(u64);

/// A length of time: milliseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u64")]
pub struct Millis(u64);

read_where_possible!(Time, u64, Time::new);
read_where_possible!(Millis, u64, Millis::new);

impl Time {
    pub const ZERO: Time = Time(0);
    pub const MAX: Time = Time(LIMIT);

    /// `None` after [`Time::MAX`].
    pub const fn new(unix_ms: u64) -> Option<Time> {
        if unix_ms <= LIMIT {
            Some(Time(unix_ms))
        } else {
            None
        }
    }

    pub const fn unix_ms(self) -> u64 {
        self.0
    }

    /// The time `span` later; `None` after [`Time::MAX`].
    pub const fn checked_add(self, span: Millis) -> Option<Time> {
        Time::new(self.0 + span.0)
    }

    /// The time `span` later, [`Time::MAX`] at the latest.
    pub const fn saturating_add(self, span: Millis) -> Time {
        match self.checked_add(span) {
            Some(time) => time,
            None => Time::MAX,
        }
    }

    /// The time `span` earlier, [`Time::ZERO`] at the earliest.
    pub const fn saturating_sub(self, span: Millis) -> Time {
        Time(self.0.saturating_sub(span.0))
    }

    /// How long after `earlier` this is; zero if it is before.
    pub const fn since(self, earlier: Time) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}

impl Millis {
    pub const ZERO: Millis = Millis(0);
    pub const MAX: Millis = Millis(LIMIT);

    /// `None` above [`Millis::MAX`].
    pub const fn new(ms: u64) -> Option<Millis> {
        if ms <= LIMIT {
            Some(Millis(ms))
        } else {
            None
        }
    }

    pub const fn of_ms(ms: u32) -> Millis {
        Millis(ms as u64)
    }

    pub const fn of_secs(seconds: u32) -> Millis {
        Millis(seconds as u64 * 1_000)
    }

    /// How many bits the longest span has.
    pub const BITS: u32 = u64::BITS - LIMIT.leading_zeros();

    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// Doubled `times` times, at most [`Millis::BITS`] times; at most [`Millis::MAX`].
    pub fn saturating_doubled(self, times: u32) -> Millis {
        let doubled = u128::from(self.0) << times.min(Self::BITS);
        Millis(u64::try_from(doubled).map_or(LIMIT, |ms| ms.min(LIMIT)))
    }

    pub fn saturating_add(self, more: Millis) -> Millis {
        Millis((self.0 + more.0).min(LIMIT))
    }

    /// How long after the first the job at this position, from 0, is due of `count` that are spread
    /// evenly over this span.
    pub fn share(self, position: usize, count: usize) -> Millis {
        let share = u128::from(self.0) * position as u128 / count.max(1) as u128;
        u64::try_from(share).ok().and_then(Millis::new).unwrap_or(self)
    }

    pub const fn saturating_sub(self, ms: u64) -> Millis {
        Millis(self.0.saturating_sub(ms))
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests;
