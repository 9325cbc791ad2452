//! How late jobs were handed out: from the millisecond in which they were due to that in which somebody got
//! them. Of one queue in one process: not saved, not replicated.

use hdrhistogram::Histogram;

use crate::queue::{Deliveries, Time};

/// To 1 %, which takes a few hundred bytes while jobs are on time.
const SIGNIFICANT_FIGURES: u8 = 2;

/// Nothing until the first job is handed out.
#[derive(Default)]
pub struct Lateness(Option<Box<Histogram<u32>>>);

impl Lateness {
    pub fn record(&mut self, deliveries: &Deliveries, now: Time) {
        if self.0.is_none() {
            self.0 = Histogram::new(SIGNIFICANT_FIGURES).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.0 {
            // Most often they were due in few different milliseconds.
            let mut due = deliveries.iter().map(|delivery| delivery.due).peekable();
            while let Some(first) = due.next() {
                let mut alike = 1;
                while due.next_if_eq(&first).is_some() {
                    alike += 1;
                }
                // It grows as it has to, up to the longest time there is.
                let recorded = histogram.record_n(now.since(first).as_u64(), alike);
                debug_assert!(recorded.is_ok(), "a histogram without limits takes any value");
            }
        }
    }

    /// So many percent of the jobs were handed out at most so many milliseconds late.
    pub fn percentile_ms(&self, percent: f64) -> Option<u64> {
        self.0.as_ref().map(|histogram| histogram.value_at_percentile(percent))
    }

    pub fn max_ms(&self) -> Option<u64> {
        self.0.as_ref().map(|histogram| histogram.max())
    }

    /// Bytes that it asked its allocator for.
    pub fn memory(&self) -> usize {
        let counts = |histogram: &Histogram<u32>| histogram.distinct_values() * size_of::<u32>();
        self.0.as_ref().map_or(0, |histogram| size_of::<Histogram<u32>>() + counts(histogram))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Circumstances, Id, Pop, Queue};

    fn at(unix_ms: u64) -> Circumstances {
        Circumstances { now: Time::new(unix_ms).unwrap(), ..Circumstances::default() }
    }

    /// Adds a job, and pops it so much later.
    fn record(lateness: &mut Lateness, late_ms: u64) {
        let mut queue = Queue::new((0, 0));
        queue.apply(&at(1_000), &Add::plain(Id::new(b"a").unwrap(), b""));
        let popped = at(1_000 + late_ms);
        let deliveries = queue.apply(&popped, &Pop::ONE);
        assert_eq!(deliveries.len(), 1);
        lateness.record(&deliveries, popped.now);
    }

    /// To a hundredth.
    fn assert_is(shown: Option<u64>, ms: u64) {
        let shown = shown.unwrap();
        assert!(shown >= ms && shown - ms <= ms / 100, "{shown} for {ms}");
    }

    /// In 0.1 all of them were 2 from 256 ms on: the histogram's highest value was 2, and didn't grow.
    #[test]
    fn lateness_has_no_highest_value() {
        for late_ms in [0, 1, 2, 255, 256, 3_000, 3_600_000, 366 * 24 * 3_600_000] {
            let mut lateness = Lateness::default();
            record(&mut lateness, late_ms);
            for percent in [50.0, 99.0, 99.9] {
                assert_is(lateness.percentile_ms(percent), late_ms);
            }
            assert_is(lateness.max_ms(), late_ms);
        }
    }

    #[test]
    fn a_job_on_time_does_not_hide_a_late_one() {
        let mut lateness = Lateness::default();
        (0..98).for_each(|_| record(&mut lateness, 0));
        record(&mut lateness, 3_000);
        record(&mut lateness, 60_000);
        assert_is(lateness.percentile_ms(50.0), 0);
        assert_is(lateness.percentile_ms(99.0), 3_000);
        assert_is(lateness.max_ms(), 60_000);
    }
}
