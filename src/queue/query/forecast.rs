//! How many jobs come due at which times.

use crate::queue::kernel::queue::Queue;
use crate::queue::lines::buckets::steps::Steps;
use crate::queue::value::time::{Millis, Time};

/// At most this many live leases that a backoff would follow are looked at one by one.
const LEASES_MAX: usize = 10_000;

/// The consecutive steps of time that a forecast covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast(Steps);

impl Forecast {
    /// `None` if they end after the last possible time.
    pub fn new(from: Time, step: Millis, steps: usize) -> Option<Forecast> {
        Steps::new(from, step, steps).map(Forecast)
    }
}

impl Queue {
    /// How many of the delayed jobs, as of the last [`Queue::advance`], come due in each step. A
    /// job whose TTL ends first doesn't come due. Ready jobs are already due, and reserved jobs may
    /// be finished: neither is counted.
    ///
    /// O(lanes × (log n + steps + buckets in that time)). Jobs that wait for a backoff after their
    /// lease ran out are counted together with jobs whose lease is live; the latter are subtracted,
    /// one by one. If there are too many of them, neither are counted.
    pub fn forecast(&self, forecast: &Forecast) -> Vec<u64> {
        let Forecast(steps) = forecast;
        let sums = self.lanes.come_due(steps);
        let running = self.lanes.leases_before_backoff();
        if running > LEASES_MAX {
            return sums.iter().map(|sum| sum.waiting() as u64).collect();
        }
        let mut due: Vec<u64> =
            sums.iter().map(|sum| (sum.waiting() + sum.leased_then_waiting) as u64).collect();
        for slot in self.lanes.leases_to_come() {
            let in_lane =
                self.store.placement(slot).filter(|placement| placement.main_line.is_lane());
            let step = in_lane.and_then(|placement| steps.of(placement.time));
            if let Some(jobs) = step.and_then(|step| due.get_mut(step)) {
                *jobs = jobs.saturating_sub(1);
            }
        }
        due
    }
}
