//! What the reference lets leave: live leases counted anew, and the departures of the rate, all of
//! which are kept. Where a rate has got to is worked out from that list, and the list itself is
//! looked through for a window with too many.

use dq::queue::State;

use crate::reference::Reference;
use crate::told::Rate;

/// What has left by a rate.
#[derive(Clone, Debug, Default)]
pub struct Departures {
    times: Vec<u64>,
    /// In parts of a millisecond: what another rate left behind.
    begins: i128,
}

fn parts(rate: Rate, time: u64) -> i128 {
    i128::from(time) * i128::from(rate.jobs)
}

impl Rate {
    fn distance(self) -> i128 {
        self.per.into()
    }

    fn tolerance(self) -> i128 {
        i128::from(self.burst - 1) * self.distance()
    }
}

impl Departures {
    /// When the next one would leave, if all did at even distances: after each that has left, so
    /// many distances later.
    fn arrival(&self, rate: Rate) -> i128 {
        let behind = |places: usize| places as i128 * rate.distance();
        let number = self.times.len();
        let each = self.times.iter().enumerate();
        let after_each = each.map(|(place, time)| parts(rate, *time) + behind(number - place));
        after_each.chain([self.begins + behind(number)]).max().unwrap()
    }

    /// What counts at `now`. Where the next one is further ahead than the rate can bring about, the
    /// clock was set back: as if all of a burst but one had left now.
    fn as_of(&self, rate: Rate, now: u64) -> Departures {
        if self.arrival(rate) < parts(rate, now + 1) + rate.tolerance() + rate.distance() {
            return self.clone();
        }
        Departures { times: vec![now; rate.burst as usize - 1], begins: 0 }
    }

    fn may_leave(&self, rate: Rate, now: u64) -> bool {
        self.as_of(rate, now).arrival(rate) - rate.tolerance() < parts(rate, now + 1)
    }

    /// When one may leave, also if the clock was set back and is set on again.
    fn opens(&self, rate: Rate) -> u64 {
        let parts = self.arrival(rate) - rate.tolerance();
        u64::try_from(parts.max(0) / i128::from(rate.jobs)).unwrap()
    }

    fn leave(&mut self, rate: Rate, now: u64) {
        *self = self.as_of(rate, now);
        self.times.push(now);
    }

    /// In any `per` milliseconds, at most `jobs + burst − 1`.
    fn check_windows(&self, rate: Rate) {
        for from in &self.times {
            let window = *from..from + rate.per;
            let left = self.times.iter().filter(|time| window.contains(time)).count() as u64;
            assert!(
                left < u64::from(rate.jobs) + u64::from(rate.burst),
                "{left} from {from} on by {rate:?}"
            );
        }
    }

    pub fn altered(&self, before: Option<Rate>, rate: Option<Rate>, now: u64) -> Departures {
        let (Some(before), Some(rate)) = (before, rate) else {
            return Departures::default();
        };
        if before == rate {
            return self.clone();
        }
        let (jobs, others) = (i128::from(rate.jobs), i128::from(before.jobs));
        let same_time = (self.arrival(before) * jobs + others - 1) / others;
        let latest = parts(rate, now) + rate.tolerance() + rate.distance();
        Departures { times: Vec::new(), begins: same_time.min(latest) }
    }
}

impl Reference {
    fn live_leases(&self, now: u64) -> usize {
        self.jobs.iter().filter(|job| job.state(now) == State::Reserved).count()
    }

    pub fn has_free_place(&self, now: u64) -> bool {
        let concurrency = self.settings.concurrency as usize;
        concurrency == 0 || self.live_leases(now) < concurrency
    }

    pub fn rate_lets_one_leave(&self, now: u64) -> bool {
        self.settings.rate.is_none_or(|rate| self.departures.may_leave(rate, now))
    }

    pub fn one_has_left(&mut self, now: u64) {
        if let Some(rate) = self.settings.rate {
            self.departures.leave(rate, now);
        }
    }

    pub fn check_rate(&self) {
        self.settings.rate.into_iter().for_each(|rate| self.departures.check_windows(rate));
    }

    /// When the rate lets one leave that is ready, if that is to come.
    pub fn next_by_rate(&self) -> Option<u64> {
        let next = self.settings.rate.map(|rate| self.departures.opens(rate));
        next.filter(|next| *next > self.horizon && self.in_state(State::Ready).next().is_some())
    }
}
