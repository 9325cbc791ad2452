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
