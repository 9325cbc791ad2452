//! How late jobs were delivered: from the millisecond in which they were due to that in which
//! a client got them. Of one queue in one process: not saved, not replicated.

use hdrhistogram::Histogram;

use crate::queue::{Deliveries, Time};

/// To 1 %, which takes two kilobytes while jobs are on time.
const SIGNIFICANT_FIGURES: u8 = 2;

/// The steps of the histogram that INFO shows, in milliseconds: from on time to given up.
pub const LATENESS_STEPS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/// Nothing until the first job is delivered.
#[derive(Default)]
pub struct Lateness(Option<Box<Recorded>>);

/// What was recorded up to a moment, for those who look.
pub struct SoFar(Option<Box<Recorded>>);

#[derive(Clone)]
struct Recorded {
    /// With u64s: a count that is full stands still.
    histogram: Histogram<u64>,
    sum_ms: u64,
    /// The last ones that were equally late, which aren't in any of that yet.
    last: Alike,
}

/// Jobs that were equally late.
#[derive(Clone, Copy, Default)]
struct Alike {
    late_ms: u64,
    jobs: u32,
}

/// How many jobs were at most so late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// For each of [`LATENESS_STEPS`].
    pub jobs: [u64; LATENESS_STEPS.len()],
    pub all: u64,
    pub sum_ms: u64,
}

impl Recorded {
    fn new() -> Option<Box<Recorded>> {
        let histogram = Histogram::new(SIGNIFICANT_FIGURES).ok()?;
        Some(Box::new(Recorded { histogram, sum_ms: 0, last: Alike::default() }))
    }

    /// Most often, all jobs of a time are equally late: they are put down together.
    #[inline]
    fn record(&mut self, late_ms: u64) {
        match self.last.jobs.checked_add(1) {
            Some(jobs) if self.last.late_ms == late_ms => self.last.jobs = jobs,
            _ => {
                self.put_down();
                self.last = Alike { late_ms, jobs: 1 };
            }
        }
    }

    #[inline(never)]
    fn put_down(&mut self) {
        let Alike { late_ms, jobs } = std::mem::take(&mut self.last);
        if jobs == 0 {
            return;
        }
        // It grows as it has to, up to the longest time there is.
        let recorded = self.histogram.record_n(late_ms, jobs.into());
        debug_assert!(recorded.is_ok(), "a histogram without limits takes any value");
        self.sum_ms = self.sum_ms.saturating_add(late_ms.saturating_mul(jobs.into()));
    }
}

impl Lateness {
    pub fn record(&mut self, deliveries: &Deliveries, now: Time) {
        // A pop may have passed something over, and no more.
        if self.0.is_none() && !deliveries.is_empty() {
            self.0 = Recorded::new();
        }
        if let Some(recorded) = &mut self.0 {
            deliveries
                .iter()
                .for_each(|delivery| recorded.record(now.since(delivery.due).as_u64()));
        }
    }

    /// What has been recorded so far.
    pub fn so_far(&self) -> SoFar {
        let mut recorded = self.0.clone();
        recorded.iter_mut().for_each(|recorded| recorded.put_down());
        SoFar(recorded)
    }

    /// Bytes that it asked its allocator for.
    pub fn memory(&self) -> usize {
        let counts = |histogram: &Histogram<u64>| histogram.distinct_values() * size_of::<u64>();
        self.0.as_ref().map_or(0, |recorded| size_of::<Recorded>() + counts(&recorded.histogram))
    }
}

impl SoFar {
    /// So many percent of the jobs were delivered at most so many milliseconds late.
    pub fn percentile_ms(&self, percent: f64) -> Option<u64> {
        self.0.as_ref().map(|recorded| recorded.histogram.value_at_percentile(percent))
    }

    pub fn max_ms(&self) -> Option<u64> {
        self.0.as_ref().map(|recorded| recorded.histogram.max())
    }

    pub fn within(&self) -> Within {
        let Some(recorded) = &self.0 else {
            return Within::default();
        };
        let histogram = &recorded.histogram;
        let jobs = LATENESS_STEPS.map(|step| histogram.count_between(0, step));
        Within { jobs, all: histogram.len(), sum_ms: recorded.sum_ms }
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

    /// In 0.1 all of them were 2 from 256 ms on: the histogram's highest value was 2, and didn't
    /// grow.
    #[test]
    fn lateness_has_no_highest_value() {
        for late_ms in [0, 1, 2, 255, 256, 3_000, 3_600_000, 366 * 24 * 3_600_000] {
            let mut lateness = Lateness::default();
            record(&mut lateness, late_ms);
            for percent in [50.0, 99.0, 99.9] {
                assert_is(lateness.so_far().percentile_ms(percent), late_ms);
            }
            assert_is(lateness.so_far().max_ms(), late_ms);
        }
    }

    /// A step stood still after 2^32 jobs, while the count of all went on: as if all others had
    /// been late.
    #[test]
    fn no_step_is_ever_full() {
        let mut recorded = Recorded::new().unwrap();
        for _ in 0..2 {
            recorded.last = Alike { late_ms: 0, jobs: u32::MAX };
            recorded.put_down();
        }
        let within = SoFar(Some(recorded)).within();
        assert_eq!((within.jobs[0], within.all), (2 * u64::from(u32::MAX), within.jobs[0]));
    }

    #[test]
    fn before_the_first_job_there_is_no_lateness() {
        let mut lateness = Lateness::default();
        lateness.record(&Queue::new((0, 0)).apply(&at(1_000), &Pop::ONE), at(1_000).now);
        let so_far = lateness.so_far();
        assert_eq!((so_far.percentile_ms(50.0), so_far.max_ms()), (None, None));
    }

    #[test]
    fn the_jobs_of_each_step_are_those_that_were_at_most_as_late() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.so_far().within(), Within::default());
        // Exact up to 255 ms, to 1 % beyond.
        let late = [0, 1, 2, 10, 11, 100, 101, 60_000, 61_000, 3_600_000, 3_640_000];
        late.into_iter().for_each(|late_ms| record(&mut lateness, late_ms));
        let within = lateness.so_far().within();
        for (step, jobs) in LATENESS_STEPS.into_iter().zip(within.jobs) {
            let expected = late.iter().filter(|late_ms| **late_ms <= step).count() as u64;
            assert_eq!(jobs, expected, "within {step}");
        }
        assert_eq!((within.all, within.sum_ms), (11, late.iter().sum()));
    }

    /// A histogram has some counts for each time that is twice as long.
    #[test]
    fn the_counts_of_its_histogram_are_part_of_its_memory() {
        let mut lateness = Lateness::default();
        let memory = [0, 1, 3_600_000].map(|late_ms| {
            let before = lateness.memory();
            record(&mut lateness, late_ms);
            // They are put down with the next one that is another.
            record(&mut lateness, 0);
            lateness.memory() - before
        });
        let counts =
            |bytes: usize| bytes.is_multiple_of(8) && (8 * 100..8 * 10_000).contains(&bytes);
        assert!(counts(memory[0] - size_of::<Recorded>()) && counts(memory[2]), "{memory:?}");
        assert_eq!(memory[1], 0);
    }

    #[test]
    fn a_job_on_time_does_not_hide_a_late_one() {
        let mut lateness = Lateness::default();
        (0..98).for_each(|_| record(&mut lateness, 0));
        record(&mut lateness, 3_000);
        record(&mut lateness, 60_000);
        assert_is(lateness.so_far().percentile_ms(50.0), 0);
        assert_is(lateness.so_far().percentile_ms(99.0), 3_000);
        assert_is(lateness.so_far().max_ms(), 60_000);
    }
}
