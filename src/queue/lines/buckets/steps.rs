//! Counts the jobs of a line for each of several equal spans of time.

use crate::queue::memory::impossible::OrImpossible;
use std::ops::Range;

use super::{Bucket, Buckets, JobCounts};
use crate::queue::value::time::{Millis, Time};

/// Equal spans of time, one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    from: u64,
    step: u64,
    count: usize,
}

impl Steps {
    /// `None` if they end after the last possible time. A step is at least a millisecond long.
    pub fn new(from: Time, step: Millis, count: usize) -> Option<Steps> {
        let steps = Steps { from: from.unix_ms(), step: step.as_u64().max(1), count };
        let span = steps.step.checked_mul(count as u64).and_then(Millis::new)?;
        from.checked_add(span).map(|_| steps)
    }

    pub fn count(&self) -> usize {
        self.count
    }

    /// The step that contains this time.
    pub fn of(&self, time: Time) -> Option<usize> {
        let step = time.unix_ms().checked_sub(self.from)? / self.step;
        usize::try_from(step).ok().filter(|step| *step < self.count)
    }

    /// In Unix milliseconds.
    fn span_of(&self, step: usize) -> Range<u64> {
        let begin = self.from.saturating_add(self.step.saturating_mul(step as u64));
        begin..begin.saturating_add(self.step)
    }
}

impl Buckets {
    /// Adds to the sum of each step the jobs whose time is in it and after `now`. A bucket that
    /// lies within one step is added as a whole, any other job by job. O(log n + steps + buckets in
    /// all steps), and the jobs of buckets that lie in two steps.
    pub fn add_up_by_step(&self, steps: &Steps, now: Time, sums: &mut [JobCounts]) {
        let begin = steps.from.max(now.unix_ms().saturating_add(1));
        let Some(before) = begin.checked_sub(1).and_then(Time::new) else {
            return;
        };
        let mut step = 0..0;
        let mut at = 0;
        let mut rows = self.rows_from(before).peekable();
        while let Some(row) = rows.next() {
            let Some(bucket) = self.buckets.get(row.bucket).or_impossible("a row has a bucket")
            else {
                break;
            };
            let first = row.first.unix_ms().max(begin);
            if !step.contains(&first) {
                let Some(next) = Time::new(first).and_then(|first| steps.of(first)) else {
                    break;
                };
                (at, step) = (next, steps.span_of(next));
            }
            let is_behind_now = row.first.unix_ms() >= begin;
            let last = match rows.peek() {
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

/// As [`Buckets::add_up_by_step`], entry by entry, from `begin` on.
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
