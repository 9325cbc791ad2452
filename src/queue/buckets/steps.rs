//! How much of a line falls into each of some equal spans of time.

use std::ops::Range;

use super::super::entry::tally_of;
use super::super::time::{Millis, Time};
use super::{Bucket, Buckets, Tally};

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
    /// Adds to the sum of each step what has a time in it, after `now`. A bucket that is in one step with all its
    /// jobs is added as a whole. O(log n + steps + buckets in that span).
    pub fn add_up_by_step(&self, steps: &Steps, now: Time, sums: &mut [Tally]) {
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
            let ends_in_step = lines.peek().is_some_and(|next| step.contains(&next.first.unix_ms()));
            match sums.get_mut(at) {
                Some(sum) if is_behind_now && ends_in_step => *sum += bucket.tally(),
                _ => add_up_in(bucket, steps, begin, sums),
            }
        }
    }
}

/// As [`Buckets::add_up_by_step`], in a bucket that may be in several, from this moment on.
fn add_up_in(bucket: &Bucket, steps: &Steps, begin: u64, sums: &mut [Tally]) {
    let has_leased = bucket.tally().waiting() < bucket.len();
    let mut rest = bucket.entries();
    rest = rest.get(rest.partition_point(|entry| entry.time().unix_ms() < begin)..).unwrap_or_default();
    while let Some(at) = rest.first().and_then(|first| steps.of(first.time())) {
        let end = steps.span_of(at).end;
        let (inside, behind) = rest.split_at(rest.partition_point(|entry| entry.time().unix_ms() < end));
        if let Some(sum) = sums.get_mut(at) {
            *sum +=
                if has_leased { tally_of(inside) } else { Tally { jobs: inside.len(), ..Tally::default() } };
        }
        rest = behind;
    }
}
