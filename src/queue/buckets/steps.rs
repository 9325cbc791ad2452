//! How much of a line falls into each of some equal spans of time.

use std::ops::Range;

use super::super::entry::Entry;
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

/// So many looks into buckets are made side by side. What takes the time is waiting for memory, which so many can do at
/// once.
const CUTS_AT_ONCE: usize = 64;

/// A look into a bucket takes as long as going through so many of its entries, one behind the other.
const ENTRIES_FOR_A_CUT: usize = 4;

/// Between two steps, in a bucket.
struct Cut<'b> {
    entries: &'b [Entry],
    /// Unix milliseconds: what is earlier is in the step before.
    at: u64,
    /// About how many are earlier.
    guess: usize,
    ends: Option<usize>,
    begins: Option<usize>,
}

/// What is found between steps, and what it comes to: the number of jobs up to the end of a step, less those up to its
/// beginning.
struct Cuts<'b> {
    cuts: Vec<Cut<'b>>,
    jobs: Vec<i64>,
}

impl<'b> Cuts<'b> {
    fn new(steps: usize) -> Cuts<'b> {
        Cuts { cuts: Vec::with_capacity(CUTS_AT_ONCE), jobs: vec![0; steps] }
    }

    fn add(&mut self, cut: Cut<'b>) {
        self.cuts.push(cut);
        if self.cuts.len() == CUTS_AT_ONCE {
            self.make();
        }
    }

    fn count(&mut self, step: Option<usize>, jobs: i64) {
        if let Some(sum) = step.and_then(|step| self.jobs.get_mut(step)) {
            *sum += jobs;
        }
    }

    fn make(&mut self) {
        // First a look at each, none of which waits for another.
        let is_later: u64 = self.cuts.iter().enumerate().fold(0, |bits, (n, cut)| {
            let is_later = cut.entries.get(cut.guess).is_none_or(|entry| entry.time().unix_ms() >= cut.at);
            bits | u64::from(is_later) << n
        });
        let mut cuts = std::mem::take(&mut self.cuts);
        for (n, cut) in cuts.iter().enumerate() {
            let before = cut.find(is_later & 1 << n != 0) as i64;
            self.count(cut.ends, before);
            self.count(cut.begins, -before);
        }
        cuts.clear();
        self.cuts = cuts;
    }
}

impl Cut<'_> {
    /// How many are earlier; from the guess on, which was found to be later than that or not.
    fn find(&self, is_later: bool) -> usize {
        let is_before = |entry: &Entry| entry.time().unix_ms() < self.at;
        let (mut low, mut high) =
            if is_later { (0, self.guess) } else { (self.guess + 1, self.entries.len()) };
        // Most often it is near. Once it is passed, what is between is shorter than the next reach.
        let mut reach = 8;
        while low + reach < high {
            let at = if is_later { high - reach } else { low + reach };
            if self.entries.get(at).is_some_and(is_before) {
                low = at + 1;
            } else {
                high = at;
            }
            reach *= 2;
        }
        low + self.entries.get(low..high).unwrap_or_default().partition_point(is_before)
    }
}

impl Buckets {
    /// Adds to the sum of each step what has a time in it, after `now`. A bucket that is in one step with all its
    /// jobs is added as a whole; in others, it is searched for where a step ends. O(log n + steps + buckets in that span).
    pub fn add_up_by_step(&self, steps: &Steps, now: Time, sums: &mut [Tally]) {
        let begin = steps.from.max(now.unix_ms().saturating_add(1));
        let Some(before) = begin.checked_sub(1).and_then(Time::new) else {
            return;
        };
        let mut cuts = None;
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
                _ => {
                    let span = line.first.unix_ms()..last;
                    let is_cut_often = span.end.saturating_sub(first) / steps.step
                        > (bucket.len() / ENTRIES_FOR_A_CUT) as u64;
                    if is_cut_often || bucket.tally().waiting() < bucket.len() {
                        add_up_in(bucket, steps, begin, sums);
                    } else {
                        let cuts = cuts.get_or_insert_with(|| Cuts::new(steps.count));
                        cut_up(bucket.entries(), span, steps, (begin, at), cuts);
                    }
                }
            }
        }
        if let Some(mut cuts) = cuts {
            cuts.make();
            for (sum, jobs) in sums.iter_mut().zip(cuts.jobs) {
                sum.jobs += usize::try_from(jobs).unwrap_or_default();
            }
        }
    }
}

/// Adds a bucket that is in several steps, or partly before them: from this moment on, which is in this step, if what is in
/// the bucket isn't later. Its jobs' times are in `span`, and at its end.
fn cut_up<'b>(
    entries: &'b [Entry],
    span: Range<u64>,
    steps: &Steps,
    (begin, mut step): (u64, usize),
    cuts: &mut Cuts<'b>,
) {
    let length = span.end.saturating_sub(span.start).max(1);
    let guess = |time: u64| {
        let part = u128::from(time.saturating_sub(span.start)) * entries.len() as u128 / u128::from(length);
        usize::try_from(part).unwrap_or(usize::MAX).min(entries.len().saturating_sub(1))
    };
    if span.start < begin {
        cuts.add(Cut { entries, at: begin, guess: guess(begin), ends: None, begins: Some(step) });
    }
    loop {
        let at = steps.span_of(step).end;
        if at > span.end {
            return cuts.count(Some(step), entries.len() as i64);
        }
        let next = Some(step + 1).filter(|next| *next < steps.count);
        cuts.add(Cut { entries, at, guess: guess(at), ends: Some(step), begins: next });
        let Some(next) = next else {
            return;
        };
        step = next;
    }
}

/// As [`Buckets::add_up_by_step`], entry by entry, from this moment on.
fn add_up_in(bucket: &Bucket, steps: &Steps, begin: u64, sums: &mut [Tally]) {
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
