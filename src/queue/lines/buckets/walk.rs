//! Going through a line in its order, from some place on.

use super::{Bucket, BucketNumber, Buckets, Entry, EntryKind, JobCounts, Slot, Time, Windows};

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first job of this time or a later one.
    At(Time),
    /// With the first job of a later time.
    After(Time),
    /// With the one that stands behind this one, which is in this bucket.
    Behind(Slot, BucketNumber),
}

impl Start {
    pub const FIRST: Start = Start::At(Time::ZERO);

    /// This, or behind all up to `now`, whichever is later. (A job to stand behind is one of those
    /// asked for.)
    pub fn but_after(self, now: Time) -> Start {
        match self {
            Start::At(time) if time <= now => Start::After(now),
            Start::After(time) => Start::After(time.max(now)),
            Start::At(_) | Start::Behind(..) => self,
        }
    }
}

/// A bucket, without so many at its front.
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

    /// O(log n) until the first one; behind a job, O(bucket), and the buckets that begin in its
    /// millisecond.
    pub fn iter_from(&self, start: Start) -> impl Iterator<Item = (Time, Slot, EntryKind)> + '_ {
        self.runs_from(start).flat_map(|run| run.entries()).map(Entry::parts)
    }

    /// Those whose time is to come, in their order; buckets that `wants` declines are left out
    /// whole.
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

    /// Those with a time up to and including `to` whose window is open at `now`, in their order.
    /// Buckets in which there is none are stepped over, and remember that.
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

    /// As [`Buckets::open_up_to`], of those with a time after `now`.
    pub fn open_after<'b>(
        &'b self,
        start: Start,
        now: Time,
        windows: &'b dyn Windows,
    ) -> impl Iterator<Item = (Time, Slot)> + 'b {
        open_in(self.runs_from(start.but_after(now)), now, windows)
    }

    /// The time of the job behind which there are so many. O(buckets).
    pub fn time_from_end(&self, mut behind: usize) -> Option<Time> {
        let buckets = self.directory.iter().rev().filter_map(|line| self.buckets.get(line.bucket));
        for bucket in buckets {
            if behind < bucket.len() {
                return bucket.entries().iter().nth_back(behind).map(Entry::time);
            }
            behind -= bucket.len();
        }
        None
    }

    fn runs_from(&self, start: Start) -> impl Iterator<Item = Tail<'_>> {
        let (first, left_out) = self.place_of(start);
        let buckets =
            self.directory.range(first..).filter_map(|line| self.buckets.get(line.bucket));
        buckets.enumerate().map(move |(nth, bucket)| Tail {
            bucket,
            left_out: if nth == 0 { left_out } else { 0 },
        })
    }

    /// In which line of the directory, and behind how many entries there.
    fn place_of(&self, start: Start) -> (usize, usize) {
        let lines_before = match start {
            Start::At(time) => self.directory.partition_point(|line| line.first < time),
            Start::After(time) => self.directory.partition_point(|line| line.first <= time),
            Start::Behind(slot, number) => {
                let time = self.time_of(slot, number);
                let line = time.and_then(|time| self.line_of(number, time));
                debug_assert!(line.is_some(), "a job to stand behind is in its bucket");
                line.map_or(0, |line| line + 1)
            }
        };
        let line = lines_before.saturating_sub(1);
        let bucket = self.directory.get(line).and_then(|line| self.buckets.get(line.bucket));
        let left_out = bucket.map_or(0, |bucket| match start {
            Start::At(time) => bucket.entries().partition_point(|entry| entry.time() < time),
            Start::After(time) => bucket.up_to(time),
            Start::Behind(slot, _) => {
                bucket.entries().iter().position(|entry| entry.slot == slot).map_or(0, |at| at + 1)
            }
        });
        (line, left_out)
    }
}

/// What is open at `now` in these buckets, in its order. No job is asked before it is its turn:
/// with many lines, most of what is in their first buckets isn't wanted.
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
