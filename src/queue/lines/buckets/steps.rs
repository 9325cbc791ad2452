//! How much of a line falls into each of some equal spans of time.

use std::ops::Range;

use super::{Bucket, Buckets, JobCounts};
use crate::queue::value::time::{Millis, Time};

/// Equal spans of time, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    from: u64,
    step: u64,
    count: usize,
}

impl Steps {
    /// `None` when they reach past the last time there is. A step has a millisecond at least.
    pub fn new(from: Time, step: Millis, count: usize) -> Option<Steps> {
        let steps = Steps { from: from.unix_ms(), step: step.as_u64().max(1), count };
        let span = steps.step.checked_mul(count as u64).and_then(Millis::new)?;
        from.checked_add(span).map(|_| steps)
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The one in which this moment is.
    pub fn of(&self, time: Time) -> Option<usize> {
        let step = time.unix_ms().checked_sub(self.from)? / self.step;
        usize::try_from(step).ok().filter(|step| *step < self.count)
    }

    /// Unix milliseconds.
    fn span_of(&self, step: usize) -> Range<u64> {
        let begin = self.from.saturating_add(self.step.saturating_mul(step as u64));
        begin..begin.saturating_add(self.step)
    }
}

impl Buckets {
    /// Adds to the sum of each step what has a time in it, after `now`. A bucket that is in one
    /// step with all its jobs is added as a whole, another one job by job. O(log n + steps +
    /// buckets in that span), and the jobs of the buckets in which steps meet.
    pub fn add_up_by_step(&self, steps: &Steps, now: Time, sums: &mut [JobCounts]) {
        let begin = steps.from.max(now.unix_ms().saturating_add(1));
        let Some(before) = begin.checked_sub(1).and_then(Time::new) else {
            return;
        };
        let mut step = 0..0;
        let mut at = 0;
        let mut lines = self.lines_from(before).peekable();
        while let Some(line) = lines.next() {
            let Some(bucket) = self.buckets.get(line.bucket) else {
                break;
            };
            let first = line.first.unix_ms().max(begin);
            if !step.contains(&first) {
                let Some(next) = Time::new(first).and_then(|first| steps.of(first)) else {
                    break;
                };
                (at, step) = (next, steps.span_of(next));
            }
            let is_behind_now = line.first.unix_ms() >= begin;
            let last = match lines.peek() {
                Some(next) => next.first.unix_ms(),
                None => bucket.entries().last().map_or(0, |last| last.time().unix_ms()),
            };
            match sums.get_mut(at) {
                Some(sum) if is_behind_now && last < step.end => *sum += bucket.tally(),
                _ => add_up_in(bucket, steps, begin, sums),
            }
        }
    }
}

/// As [`Buckets::add_up_by_step`], entry by entry, from this moment on.
fn add_up_in(bucket: &Bucket, steps: &Steps, begin: u64, sums: &mut [JobCounts]) {
    let (mut at, mut step) = (0, 0..0);
    for entry in bucket.entries() {
        let time = entry.time();
        if time.unix_ms() < begin {
            continue;
        }
        if !step.contains(&time.unix_ms()) {
            let Some(next) = steps.of(time) else {
                return;
            };
            (at, step) = (next, steps.span_of(next));
        }
        if let Some(sum) = sums.get_mut(at) {
            *sum += entry.tally();
        }
    }
}
