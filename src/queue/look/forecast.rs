//! How many jobs come due when.

use crate::queue::kernel::queue::Queue;
use crate::queue::lines::buckets::steps::Steps;
use crate::queue::value::time::{Millis, Time};

/// So many running leases that a backoff would follow are looked at one by one.
const LEASES_MAX: usize = 10_000;

/// Which steps of time a forecast is about: they follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast(Steps);

impl Forecast {
    /// `None` when they reach past the last time there is.
    pub fn new(from: Time, step: Millis, steps: usize) -> Option<Forecast> {
        Steps::new(from, step, steps).map(Forecast)
    }
}

impl Queue {
    /// How many of the jobs that are delayed, as of the last [`Queue::advance`], come due in each
    /// step. One whose TTL ends first doesn't come due; one that is ready has; one that is reserved
    /// may be finished.
    ///
    /// O(lanes × (log n + steps + buckets in that time)). Jobs that wait for a backoff since their
    /// lease ran out stand among those whose lease is running: these are taken off, one by one.
    /// Where there are too many for that, both are left out.
    pub fn forecast(&self, forecast: &Forecast) -> Vec<u64> {
        let Forecast(steps) = forecast;
        let sums = self.lanes.come_due(steps);
        let running = self.lanes.running_at_first();
        if running > LEASES_MAX {
            return sums.iter().map(|sum| sum.waiting() as u64).collect();
        }
        let mut due: Vec<u64> =
            sums.iter().map(|sum| (sum.waiting() + sum.leased_at_first) as u64).collect();
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
