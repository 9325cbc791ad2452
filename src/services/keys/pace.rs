//! How fast a sweep goes: it may use a hundredth of the time, in slices that clients don't notice.

use std::time::Duration;

/// The time of one slice of a sweep.
pub const SLICE: Duration = Duration::from_micros(100);
/// A slice is followed by a wait of this many times the time that it took.
const WAIT_SLICES: u32 = 100;
/// How long to wait for a queue that left its key to be freed or used, before a sweep looks for it.
pub const GRACE: Duration = Duration::from_millis(200);
/// The longest time between two passes that found nothing.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// All times are the server's uptime.
pub struct Pace {
    /// Whether a pass over all keys is in progress.
    pub is_under_way: bool,
    /// The next slice begins no earlier.
    next_slice: Duration,
    /// When the next pass begins, if one is requested.
    next_pass: Option<Duration>,
    pause: Duration,
}

impl Pace {
    pub const NEW: Pace =
        Pace { is_under_way: false, next_slice: Duration::ZERO, next_pass: None, pause: GRACE };

    /// A queue must be looked for: a pass begins after [`GRACE`], unless one is in progress.
    pub fn request(&mut self, uptime: Duration) {
        let next_pass = uptime + GRACE;
        self.next_pass = Some(self.next_pass.map_or(next_pass, |earlier| earlier.min(next_pass)));
        self.pause = GRACE;
    }

    /// No queue must be looked for. A pass that is in progress continues when there is one again.
    pub fn cancel(&mut self) {
        self.next_pass = None;
    }

    /// How long to wait before the next slice.
    pub fn wait(&self, uptime: Duration) -> Duration {
        let next_pass = self.next_pass.filter(|_| !self.is_under_way).unwrap_or_default();
        self.next_slice.max(next_pass).saturating_sub(uptime)
    }

    /// A slice has ended, and took `time`. Returns how long to wait before the next one.
    pub fn took(&mut self, time: Duration, uptime: Duration) -> Duration {
        self.next_slice = uptime + time.max(SLICE) * WAIT_SLICES;
        self.wait(uptime)
    }

    /// A pass has ended and there is still a queue to look for: it was moved to a key that the pass
    /// had visited, or can't be found.
    pub fn finish_pass(&mut self, uptime: Duration) {
        self.is_under_way = false;
        self.next_pass = Some(uptime + self.pause);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
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
        assert!((ms(990)..=ms(1_000)).contains(&taken), "{taken:?}");
    }

    #[test]
    fn a_slice_is_followed_by_a_hundred_times_its_time() {
        let (mut pace, uptime) = (Pace::NEW, ms(1_000));
        pace.is_under_way = true;
        assert_eq!(pace.wait(uptime), Duration::ZERO);
        // One for which a run of the timer had no time left counts as a whole one.
        for time in [Duration::ZERO, SLICE] {
            assert_eq!(pace.took(time, uptime), ms(10));
        }
        assert_eq!(pace.took(ms(2), uptime), ms(200));
        assert_eq!(pace.wait(uptime + ms(150)), ms(50));
    }

    #[test]
    fn rounds_that_find_nothing_come_ever_later_until_there_is_something_new() {
        let (mut pace, mut uptime) = (Pace::NEW, ms(1_000));
        for wait in [200, 400, 800] {
            pace.is_under_way = true;
            pace.finish_pass(uptime);
            assert_eq!(pace.wait(uptime), ms(wait));
            uptime += ms(wait);
        }
        pace.finish_pass(uptime);
        pace.request(uptime);
        assert_eq!(pace.wait(uptime), GRACE);
        pace.request(uptime + GRACE / 2);
        assert_eq!(
            pace.wait(uptime + GRACE / 2),
            GRACE / 2,
            "a queue that moves all the time puts no pass off"
        );
        pace.cancel();
        pace.request(uptime + ms(5_000));
        assert_eq!(pace.wait(uptime + ms(5_000)), GRACE);
        for _ in 0..20 {
            pace.finish_pass(uptime);
        }
        assert_eq!(pace.wait(uptime), PAUSE_MAX);
    }
}
