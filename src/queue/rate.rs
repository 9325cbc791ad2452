//! How fast jobs may leave a queue: the generic cell rate algorithm, GCRA (ATM Forum, "Traffic Management Specification
//! 4.0", 1996; ITU-T I.371), in its form with a virtual clock.
//!
//! One number is stored, the *theoretical arrival time*: when the next job would leave if all did at even distances of
//! `per ÷ jobs` milliseconds. A job may leave up to `burst − 1` such distances before it. Each that leaves moves it on
//! by one distance, from now if it was in the past: what wasn't used isn't saved up, but for the burst.
//!
//! - The number is kept in parts of a millisecond, `1 ÷ jobs`, in which a distance is whole: nothing drifts.
//! - A millisecond of the clock is as long as it is: a job may leave in the one in which its time is. So three in ten
//!   milliseconds leave at 0, 3, 6, 10, 13, 16; and more jobs than one may leave in a millisecond if the rate says so.
//! - In any `per` milliseconds, from one to before another, at most `jobs + burst − 1` leave. (Of those that leave at
//!   *t* and, as the *k*-th behind it, at *u*, *u* − *t* > (*k* − *burst* + 1) · *per* ÷ *jobs* − 1, whatever the clock
//!   did in between.)

use std::num::NonZeroU32;

use super::time::{Millis, Time};

/// At most so many jobs in so long, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    jobs: NonZeroU32,
    per: Millis,
    burst: NonZeroU32,
}

/// The theoretical arrival time, in parts of a millisecond of the rate that it belongs to.
///
/// Packed, since some servers' allocators align to 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(Rust, packed(8))]
pub struct Tat(u128);

/// As it is stored: milliseconds, and parts of one.
pub(super) type TatParts = (u64, u32);

/// No later time can come about: the last one, and the longest burst.
const TAT_MS_MAX: u64 = 2 * (Time::MAX.unix_ms() + 1);

impl Rate {
    /// `None` when there is no such rate: one of no jobs, or in no time, or a burst that lasts longer than the longest
    /// span there is.
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

    /// When the next job would leave, as of `now`. Where that is further ahead than any job can have moved it by now, the
    /// clock was set back: one job may leave, and the others at their distances from it. So nobody waits longer than for
    /// one distance, and nobody gets a burst for it.
    fn next_arrival(&self, tat: Tat, now: Time) -> u128 {
        if tat.0 >= self.end_of(now) + self.tolerance() + self.distance() {
            return self.at(now) + self.tolerance();
        }
        tat.0.max(self.at(now))
    }

    /// How many jobs may leave now.
    pub fn may_leave(&self, tat: Tat, now: Time) -> usize {
        let room = (self.end_of(now) + self.tolerance()).saturating_sub(self.next_arrival(tat, now));
        usize::try_from(room.div_ceil(self.distance())).unwrap_or(usize::MAX)
    }

    /// When the next one may; not before now.
    pub fn next(&self, tat: Tat, now: Time) -> Time {
        self.open(Tat(self.next_arrival(tat, now))).max(now)
    }

    /// The same by a clock that is never set back: from then on one may leave, whatever the clock did.
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

    /// What becomes of a theoretical arrival time when this rate takes the place of another: it stays, but the next job
    /// leaves one distance from now at the latest.
    pub fn instead_of(&self, other: &Rate, tat: Tat, now: Time) -> Tat {
        if self == other {
            return tat;
        }
        let same_time = (tat.0 * self.parts()).div_ceil(other.parts());
        self.at_most_one_ahead(Tat(same_time), now)
    }

    pub(super) fn parts_of(&self, tat: Tat) -> TatParts {
        let (ms, parts) = (tat.0 / self.parts(), tat.0 % self.parts());
        (ms as u64, parts as u32)
    }

    /// `None` when that can't be.
    pub(super) fn tat(&self, parts: TatParts) -> Option<Tat> {
        Tat::of(parts, self.jobs.get())
    }
}

impl Tat {
    /// Of milliseconds with so many parts; `None` when that can't be.
    pub(super) fn of((ms, parts): TatParts, parts_of_one: u32) -> Option<Tat> {
        let is_possible = ms <= TAT_MS_MAX && parts < parts_of_one;
        is_possible.then(|| Tat(u128::from(ms) * u128::from(parts_of_one) + u128::from(parts)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(jobs: u32, per: u64, burst: u32) -> Rate {
        Rate::new(jobs, Millis::new(per).unwrap(), burst).unwrap()
    }

    fn at(unix_ms: u64) -> Time {
        Time::new(unix_ms).unwrap()
    }

    /// The milliseconds in which jobs leave when somebody asks for one in each, as often as there is one.
    fn departures(rate: &Rate, from: u64, to: u64) -> Vec<u64> {
        let (mut tat, mut times) = (Tat::default(), Vec::new());
        for now in from..to {
            for _ in 0..rate.may_leave(tat, at(now)) {
                tat = rate.after(tat, at(now), 1);
                times.push(now);
            }
        }
        times
    }

    #[test]
    fn jobs_leave_at_even_distances_which_do_not_drift() {
        assert_eq!(departures(&rate(3, 10, 1), 0, 31), [0, 3, 6, 10, 13, 16, 20, 23, 26, 30]);
        let times = departures(&rate(7, 1_000, 1), 1_000_000, 2_000_000);
        assert_eq!((times.len(), times[0], times[6_993]), (7_000, 1_000_000, 1_999_000));
    }

    #[test]
    fn more_jobs_than_one_leave_in_a_millisecond_if_the_rate_says_so() {
        assert_eq!(departures(&rate(5, 2, 1), 0, 4), [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
    }

    #[test]
    fn a_burst_leaves_at_once_and_comes_again_when_it_was_saved_up() {
        let rate = rate(1, 10, 3);
        assert_eq!(departures(&rate, 100, 121), [100, 100, 100, 110, 120]);
        let tat = rate.after(Tat::default(), at(100), 3);
        assert_eq!((rate.may_leave(tat, at(109)), rate.next(tat, at(109))), (0, at(110)));
        assert_eq!((rate.may_leave(tat, at(120)), rate.may_leave(tat, at(9_999))), (2, 3));
    }

    /// A token bucket of n, filled in `per`, lets 2n − 1 through within `per`.
    #[test]
    fn no_window_has_more_than_jobs_and_burst_less_one() {
        for (jobs, per, burst) in [(1, 1, 1), (3, 10, 1), (10, 3, 1), (4, 10, 5), (7, 7, 2), (1, 100, 9)] {
            let rate = rate(jobs, per, burst);
            let times = departures(&rate, 50, 50 + 5 * per);
            let in_window =
                |from: &u64| times.iter().filter(|time| (*from..from + per).contains(time)).count();
            let most = times.iter().map(in_window).max().unwrap();
            assert_eq!(most, (jobs + burst - 1) as usize, "{rate:?}");
        }
    }

    #[test]
    fn a_clock_that_was_set_back_costs_one_distance_at_most() {
        let rate = rate(2, 1_000, 5);
        let mut tat = rate.after(Tat::default(), at(1_000_000), 5);
        assert_eq!(rate.next(tat, at(1_000_000)), at(1_000_500));
        for back in 1..3_000 {
            let now = at(1_000_000 - back);
            assert!(rate.next(tat, now) <= at(now.unix_ms() + 500), "{back}");
        }
        let yesterday = at(1_000);
        assert_eq!((rate.may_leave(tat, yesterday), rate.next(tat, yesterday)), (1, yesterday));
        tat = rate.after(tat, yesterday, 1);
        assert_eq!((rate.may_leave(tat, yesterday), rate.next(tat, yesterday)), (0, at(1_500)));
    }

    #[test]
    fn another_rate_takes_over_what_has_left_but_waits_no_longer_than_itself() {
        let (hourly, fast) = (rate(1, 3_600_000, 1), rate(10, 1_000, 1));
        let tat = hourly.after(Tat::default(), at(5_000), 1);
        assert_eq!(hourly.instead_of(&hourly, tat, at(6_000)), tat);
        let faster = fast.instead_of(&hourly, tat, at(6_000));
        assert_eq!(fast.next(faster, at(6_000)), at(6_100));
        let slower = hourly.instead_of(&fast, faster, at(6_050));
        assert_eq!(hourly.next(slower, at(6_050)), at(6_100));
    }

    #[test]
    fn the_largest_numbers_there_are_fit() {
        assert_eq!(Rate::new(0, Millis::MAX, 1), None);
        assert_eq!(Rate::new(1, Millis::ZERO, 1), None);
        assert_eq!(Rate::new(1, Millis::MAX, 0), None);
        assert_eq!(Rate::new(1, Millis::MAX, 2), None);
        for rate in [rate(u32::MAX, 1, 1), rate(u32::MAX, 1, u32::MAX), rate(1, Time::MAX.unix_ms(), 1)] {
            let jobs = rate.may_leave(Tat::default(), Time::MAX);
            assert!(jobs >= rate.burst() as usize, "{rate:?}");
            let tat = rate.after(Tat::default(), Time::MAX, jobs);
            assert_eq!(rate.may_leave(tat, Time::MAX), 0, "{rate:?}");
            assert_eq!(rate.tat(rate.parts_of(tat)), Some(tat), "{rate:?}");
            assert_eq!(rate.next(tat, Time::MAX), Time::MAX);
            for other in [Rate::new(u32::MAX, Millis::MAX, u32::MAX).unwrap(), self::rate(1, 1, 1)] {
                assert!(other.tat(other.parts_of(other.instead_of(&rate, tat, Time::MAX))).is_some());
            }
        }
        assert_eq!(rate(3, 1, 1).tat((0, 3)), None);
        assert_eq!(rate(3, 1, 1).tat((TAT_MS_MAX + 1, 0)), None);
    }
}
