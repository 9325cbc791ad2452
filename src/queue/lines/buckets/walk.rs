//! Iterates over a line in its order, from a given place on.

use super::{Bucket, BucketNumber, Buckets, Entry, EntryKind, JobCounts, Slot, Time, Windows};
use crate::queue::memory::impossible::OrImpossible;

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the first job of this time or a later one.
    At(Time),
    /// At the first job of a later time.
    After(Time),
    /// After this job, which is in this bucket.
    Behind(Slot, BucketNumber),
}

impl Start {
    pub const FIRST: Start = Start::At(Time::ZERO);

    /// The later of this start and the first job after `now`. (A job to start after has a time
    /// after `now`.)
    pub fn but_after(self, now: Time) -> Start {
        match self {
            Start::At(time) if time <= now => Start::After(now),
            Start::After(time) => Start::After(time.max(now)),
            Start::At(_) | Start::Behind(..) => self,
        }
    }
}

/// A bucket without its first `left_out` entries.
struct Tail<'b> {
    bucket: &'b Bucket,
    left_out: usize,
}

impl<'b> Tail<'b> {
    fn entries(&self) -> &'b [Entry] {
        self.bucket.entries().get(self.left_out..).unwrap_or_default()
    }
}

impl Buckets {
    /// All jobs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot, EntryKind)> + '_ {
        self.iter_from(Start::FIRST)
    }

    /// O(log n) before the first item. After a given job: O(bucket), and the buckets that begin in
    /// its millisecond.
    pub fn iter_from(&self, start: Start) -> impl Iterator<Item = (Time, Slot, EntryKind)> + '_ {
        self.runs_from(start).flat_map(|run| run.entries()).map(Entry::parts)
    }

    /// The jobs after the horizon, in their order. Skips whole buckets that `wants` declines.
    pub fn to_come<'b>(
        &'b self,
        start: Start,
        wants: impl Fn(JobCounts) -> bool + 'b,
    ) -> impl Iterator<Item = (Time, Slot, EntryKind)> + 'b {
        let runs = self.runs_from(start.but_after(self.horizon));
        runs.filter(move |run| wants(run.bucket.tally()))
            .flat_map(|run| run.entries())
            .map(Entry::parts)
    }

    /// The jobs up to and including `to` whose window is open at `now`, in their order. Skips a
    /// bucket that has none, and remembers that in the bucket.
    pub fn open_up_to<'b>(
        &'b self,
        start: Start,
        to: Time,
        now: Time,
        windows: &'b dyn Windows,
    ) -> impl Iterator<Item = (Time, Slot)> + 'b {
        let begins_by =
            move |run: &Tail| run.entries().first().is_none_or(|first| first.time() <= to);
        open_in(self.runs_from(start).take_while(begins_by), now, windows)
            .take_while(move |(time, _)| *time <= to)
    }

    /// As [`Buckets::open_up_to`], for the jobs with a time after `now`.
    pub fn open_after<'b>(
        &'b self,
        start: Start,
        now: Time,
        windows: &'b dyn Windows,
    ) -> impl Iterator<Item = (Time, Slot)> + 'b {
        open_in(self.runs_from(start.but_after(now)), now, windows)
    }

    /// The time of the job that has `behind` jobs after it. O(buckets).
    pub fn time_from_end(&self, mut behind: usize) -> Option<Time> {
        let buckets = self.directory.iter().rev().filter_map(|row| self.buckets.get(row.bucket));
        for bucket in buckets {
            if behind < bucket.len() {
                return bucket.entries().iter().nth_back(behind).map(Entry::time);
            }
            behind -= bucket.len();
        }
        None
    }

    fn runs_from(&self, start: Start) -> impl Iterator<Item = Tail<'_>> {
        let (first, left_out) = self.position_of(start);
        let buckets = self.directory.range(first..).filter_map(|row| self.buckets.get(row.bucket));
        buckets.enumerate().map(move |(nth, bucket)| Tail {
            bucket,
            left_out: if nth == 0 { left_out } else { 0 },
        })
    }

    /// The row of the directory, and how many entries of it come before the start.
    fn position_of(&self, start: Start) -> (usize, usize) {
        let rows_before = match start {
            Start::At(time) => self.directory.partition_point(|row| row.first < time),
            Start::After(time) => self.directory.partition_point(|row| row.first <= time),
            Start::Behind(slot, number) => {
                let time = self.time_of(slot, number);
                let row = time.and_then(|time| self.row_of(number, time));
                let row = row.or_impossible("a job to start after is in its bucket");
                row.map_or(0, |row| row + 1)
            }
        };
        let row = rows_before.saturating_sub(1);
        let bucket = self.directory.get(row).and_then(|row| self.buckets.get(row.bucket));
        let left_out = bucket.map_or(0, |bucket| match start {
            Start::At(time) => bucket.entries().partition_point(|entry| entry.time() < time),
            Start::After(time) => bucket.up_to(time),
            Start::Behind(slot, _) => {
                bucket.entries().iter().position(|entry| entry.slot == slot).map_or(0, |at| at + 1)
            }
        });
        (row, left_out)
    }
}

/// The open jobs of these buckets at `now`, in order. A job's window is looked up only when the
/// iterator gets there: with many lines, most jobs in their first buckets aren't needed.
fn open_in<'b>(
    runs: impl Iterator<Item = Tail<'b>> + 'b,
    now: Time,
    windows: &'b dyn Windows,
) -> impl Iterator<Item = (Time, Slot)> + 'b {
    runs.filter(move |run| run.bucket.may_be_open(now)).flat_map(move |run| {
        let is_open = move |entry: &&Entry| {
            entry.may_be_open(now) && windows.window_of(entry.slot).is_open(now)
        };
        let (mut entries, mut has_none) = (run.entries().iter(), true);
        std::iter::from_fn(move || {
            let open = entries.find(is_open);
            if open.is_none() && has_none {
                run.bucket.narrow(windows);
            }
            has_none = false;
            open.map(|entry| (entry.time(), entry.slot))
        })
    })
}
