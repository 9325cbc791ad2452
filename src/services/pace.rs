//! How fast a sweep goes: it may take a hundredth of the time, and no longer than a moment in one
//! go.

use std::time::Duration;

/// What a sweep takes in one go.
pub const SLICE: Duration = Duration::from_micros(100);
/// Of so much time, a sweep may take one part.
const SHARE: u32 = 100;
/// So much it may take before it has earned it: as much as a hundred thousand keys take.
const DEBT_MAX: Duration = Duration::from_millis(50);
/// Between two slices while the debt is small.
const BETWEEN_SLICES: Duration = Duration::from_millis(1);
/// How long a queue that left its key may take to be freed or met before it is looked for.
pub const GRACE: Duration = Duration::from_millis(200);
/// Between two rounds that found nothing.
const REST_MAX: Duration = Duration::from_secs(60);

/// By the server's uptime.
pub struct Pace {
    /// What it took and hasn't earned yet.
    debt: Duration,
    /// When the debt was that.
    at: Duration,
    /// Whether a round over all keys has begun and isn't over.
    pub is_under_way: bool,
    /// The next round begins then, if one is wanted.
    round: Option<Duration>,
    rest: Duration,
}

impl Pace {
    pub const NEW: Pace = Pace {
        debt: Duration::ZERO,
        at: Duration::ZERO,
        is_under_way: false,
        round: None,
        rest: GRACE,
    };

    /// There is something to look for: a round, unless one is under way, begins after the grace.
    pub fn request(&mut self, uptime: Duration) {
        let round = uptime + GRACE;
        self.round = Some(self.round.map_or(round, |earlier| earlier.min(round)));
        self.rest = GRACE;
    }

    /// There is nothing to look for any more. A round that is under way goes on where it is when
    /// there is.
    pub fn cancel(&mut self) {
        self.round = None;
    }

    /// How long to wait before the next slice.
    pub fn wait(&mut self, uptime: Duration) -> Duration {
        let earned = uptime.saturating_sub(self.at) / SHARE;
        self.debt = self.debt.saturating_sub(earned);
        self.at = uptime;
        let round = self.round.filter(|_| !self.is_under_way).unwrap_or_default();
        let until_round = round.saturating_sub(uptime);
        (self.debt.saturating_sub(DEBT_MAX) * SHARE).max(until_round)
    }

    /// A slice is over. How long to wait before the next one.
    pub fn took(&mut self, time: Duration, uptime: Duration) -> Duration {
        self.debt += time;
        self.wait(uptime).max(BETWEEN_SLICES)
    }

    /// A round is over, and there is still something to look for: it was moved behind the round's
    /// back, or can't be found.
    pub fn finish_round(&mut self, uptime: Duration) {
        self.is_under_way = false;
        self.round = Some(uptime + self.rest);
        self.rest = (self.rest * 2).min(REST_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_sweep_that_goes_on_takes_a_hundredth_of_the_time() {
        let (mut pace, mut uptime, mut taken) = (Pace::NEW, ms(1_000), Duration::ZERO);
        pace.request(uptime);
        assert_eq!(pace.wait(uptime), GRACE);
        uptime += GRACE;
        assert_eq!(pace.wait(uptime), Duration::ZERO);
        pace.is_under_way = true;
        let begin = uptime;
        while uptime < begin + ms(100_000) {
            uptime += SLICE;
            taken += SLICE;
            uptime += pace.took(SLICE, uptime);
        }
        assert!(taken <= DEBT_MAX + ms(1_005), "{taken:?}");
        assert!(taken >= ms(1_000), "{taken:?}");
    }

    #[test]
    fn the_first_slices_come_a_millisecond_after_each_other() {
        let (mut pace, uptime) = (Pace::NEW, ms(1_000));
        pace.is_under_way = true;
        assert_eq!(pace.wait(uptime), Duration::ZERO);
        assert_eq!(pace.took(SLICE, uptime), BETWEEN_SLICES);
        assert_eq!(pace.took(DEBT_MAX, uptime), SLICE * SHARE);
    }

    #[test]
    fn rounds_that_find_nothing_come_ever_later_until_there_is_something_new() {
        let (mut pace, mut uptime) = (Pace::NEW, ms(1_000));
        for wait in [200, 400, 800] {
            pace.is_under_way = true;
            pace.finish_round(uptime);
            assert_eq!(pace.wait(uptime), ms(wait));
            uptime += ms(wait);
        }
        pace.finish_round(uptime);
        pace.request(uptime);
        assert_eq!(pace.wait(uptime), GRACE);
        pace.request(uptime + GRACE / 2);
        assert_eq!(
            pace.wait(uptime + GRACE / 2),
            GRACE / 2,
            "whoever moves all the time puts nothing off"
        );
        pace.cancel();
        pace.request(uptime + ms(5_000));
        assert_eq!(pace.wait(uptime + ms(5_000)), GRACE);
        for _ in 0..20 {
            pace.finish_round(uptime);
        }
        assert_eq!(pace.wait(uptime), REST_MAX);
    }
}
