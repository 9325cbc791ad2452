//! The sorted buckets: jobs in the order of their times; jobs with equal times in the order in
//! which they were added. Each bucket is a short sorted run; a directory of the buckets is sorted
//! too. (The shape is a B+ tree of two levels, or G. Jenks' SortedContainers; why not a tree, a
//! heap or a timing wheel: docs/design/buckets.md.)
//!
//! Nothing moves when time passes: the jobs up to the *horizon* are simply the front part, and
//! [`Buckets::advance`] adds up how many they are, a whole bucket at a time. So if a million jobs
//! fall due in one millisecond, four thousand buckets are counted. The order is exact at every
//! moment.

mod balance;
pub mod steps;
pub mod walk;

use crate::queue::memory::impossible::OrImpossible;
use std::cell::Cell;
use std::collections::VecDeque;

use super::bucket::Bucket;
use super::entry::{Entry, EntryKind, JobCounts};
use super::window::{Window, Windows};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::time::Time;

/// Entries in a bucket, at most. Measured: with half as many the directory costs more, with twice
/// as many shifting does.
const BUCKET_ENTRIES: usize = 256;
/// A bucket with at most this many entries is merged with a neighbour …
const MERGE_BELOW: usize = BUCKET_ENTRIES / 4;
/// … if both together have at most this many, so that the next insert doesn't split them again.
const MERGED_AT_MOST: usize = BUCKET_ENTRIES / 2;
/// Buckets grow by this many entries: doubling would leave a quarter of the memory unused.
const GROWTH: usize = 32;

/// The number of a bucket. Each job stores the number of its bucket.
pub type BucketNumber = u32;

/// Stores the bucket numbers of jobs.
pub trait BucketListener {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber);
}

/// A job that is put into a line.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry {
    pub time: Time,
    pub slot: Slot,
    pub kind: EntryKind,
    pub window: Window,
}

impl NewEntry {
    pub fn entry(&self) -> Entry {
        Entry::new(self.time, self.slot, self.kind, self.window)
    }
}

/// A row of the directory. `first` is not later than any time in its bucket and not earlier than
/// any time in the bucket before.
#[derive(Clone, Copy)]
struct DirectoryEntry {
    first: Time,
    bucket: BucketNumber,
}

/// In the first `rows` rows of the directory, every window has closed by `since`.
#[derive(Clone, Copy, Default)]
struct Closed {
    rows: usize,
    since: Time,
}

#[derive(Clone, Default)]
pub struct Buckets {
    directory: VecDeque<DirectoryEntry>,
    buckets: Slab<Bucket>,
    /// Jobs up to and including this time have passed.
    horizon: Time,
    /// No job after the horizon has an earlier time.
    next_at_earliest: Time,
    all: JobCounts,
    passed: JobCounts,
    closed: Cell<Closed>,
    /// Entries for which there is memory.
    capacity: usize,
}

impl Buckets {
    /// The counts of all jobs, and of those up to the horizon.
    pub fn job_counts(&self) -> (JobCounts, JobCounts) {
        (self.all, self.passed)
    }

    /// The earliest time after the horizon. O(log n).
    pub fn next(&self) -> Option<Time> {
        self.first_after(self.horizon)
    }

    pub fn memory(&self) -> usize {
        self.capacity * size_of::<Entry>()
            + self.buckets.memory()
            + self.directory.capacity() * size_of::<DirectoryEntry>()
    }

    /// Hands the buckets' memory to a defragmenter: see [`Slab::defrag`].
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        if from == 0 {
            let mut directory = Vec::from(std::mem::take(&mut self.directory));
            defragmenter.vec(&mut directory);
            self.directory = directory.into();
        }
        self.buckets.defrag(from, defragmenter, |bucket, defragmenter| bucket.defrag(defragmenter))
    }

    /// The first job and its time. O(1).
    pub fn first(&self) -> Option<(Time, Slot)> {
        self.first_entry().map(|entry| (entry.time(), entry.slot))
    }

    pub fn first_entry(&self) -> Option<&Entry> {
        self.buckets.get(self.directory.front()?.bucket)?.entries().first()
    }

    /// The first job up to `now` whose window is not closed by then. O(1) if no job expires.
    /// Otherwise, buckets at the front in which every window has closed are skipped once and
    /// remembered.
    pub fn first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        match self.first_if_never_closed() {
            Some((time, slot)) => (time <= now).then_some((time, slot)),
            None => self.find_first_open(now, windows),
        }
    }

    #[inline(never)]
    fn find_first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        let Closed { rows, since } = self.closed.get();
        let start = if since <= now { rows.min(self.directory.len()) } else { 0 };
        let mut end = start;
        let mut found = None;
        for row in self.directory.range(start..).take_while(|row| row.first <= now) {
            let Some(bucket) = self.buckets.get(row.bucket).or_impossible("a row has a bucket")
            else {
                break;
            };
            if !bucket.is_closed(now) {
                found = first_open_in(bucket.entries(), now, windows);
                if found.is_some() || bucket.entries().last().is_some_and(|last| last.time() > now)
                {
                    break;
                }
                bucket.narrow(windows);
            }
            end += 1;
        }
        if end > start || since > now {
            self.closed.set(Closed { rows: end, since: now });
        }
        found
    }

    /// The first job, if its window never closes. In most queues, no job's window does.
    fn first_if_never_closed(&self) -> Option<(Time, Slot)> {
        let bucket = self.buckets.get(self.directory.front()?.bucket)?;
        let first = bucket.entries().first().filter(|first| !first.expires())?;
        Some((first.time(), first.slot))
    }

    fn rows_from(&self, time: Time) -> impl Iterator<Item = &DirectoryEntry> {
        self.directory.range(self.last_row_up_to(time).unwrap_or(0)..)
    }

    /// The time of the job in `slot`, which is in `bucket`. O(bucket).
    pub fn time_of(&self, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        let entries = self.buckets.get(bucket)?.entries();
        // From the end: most calls ask for a job that was just added.
        entries.iter().rfind(|entry| entry.slot == slot).map(Entry::time)
    }

    /// Moves the horizon to `now`, forward or back. O(buckets between the two), a few nanoseconds
    /// each.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if now != self.horizon {
            self.move_horizon(now);
        }
    }

    fn move_horizon(&mut self, now: Time) {
        let is_quiet = (self.horizon..self.next_at_earliest).contains(&now);
        if !is_quiet && now < self.horizon {
            self.passed = self.passed - self.count_between(now, self.horizon);
        } else if !is_quiet {
            self.passed += self.count_between(self.horizon, now);
        }
        self.horizon = now;
        if !is_quiet {
            self.next_at_earliest = self.next().unwrap_or(Time::MAX);
        }
    }

    /// No job after the horizon has an earlier time.
    pub fn next_at_earliest(&self) -> Time {
        self.next_at_earliest
    }

    /// Inserts a job after those with an equal time. O(log n), and a shift within the bucket;
    /// O(bucket) more when it splits.
    #[inline(always)]
    pub fn insert(&mut self, new_entry: &NewEntry, residents: &mut impl BucketListener) {
        let (time, entry) = (new_entry.time, new_entry.entry());
        let at = self.row_for(time);
        let placed = at.and_then(|at| Some((at, self.put(at, entry, new_entry)?)));
        let (at, number) =
            placed.unwrap_or_else(|| self.put_with_room(at, entry, new_entry, residents));
        if new_entry.window.closes >= self.closed.get().since {
            self.reopen(at);
        }
        residents.moved_to(new_entry.slot, number);
        let one = entry.tally();
        self.all += one;
        if time <= self.horizon {
            self.passed += one;
        } else {
            self.next_at_earliest = self.next_at_earliest.min(time);
        }
    }

    /// Removes the job in `slot` from its `bucket`. Returns its time. O(log n + bucket).
    #[inline(always)]
    pub fn remove(
        &mut self,
        slot: Slot,
        number: BucketNumber,
        residents: &mut impl BucketListener,
    ) -> Option<Time> {
        let bucket = self.buckets.get_mut(number)?;
        let entry = bucket.remove(slot)?;
        let (time, one, left) = (entry.time(), entry.tally(), bucket.len());
        // Only at some sizes: looking for a neighbour at each removal would cost too much.
        if left == 0 || left <= MERGE_BELOW && left.is_power_of_two() {
            self.tidy(number, left, time, residents);
        }
        self.all = self.all - one;
        if time <= self.horizon {
            self.passed = self.passed - one;
        }
        Some(time)
    }

    /// Counts the jobs with a time after `from`, up to and including `to`.
    pub fn count_between(&self, from: Time, to: Time) -> JobCounts {
        let mut tally = JobCounts::default();
        let mut rows = self.rows_from(from).peekable();
        while let Some(row) = rows.next() {
            if row.first > to {
                break;
            }
            let Some(bucket) = self.buckets.get(row.bucket).or_impossible("a row has a bucket")
            else {
                break;
            };
            let whole = row.first > from && rows.peek().is_some_and(|next| next.first <= to);
            tally += if whole { bucket.tally() } else { bucket.count_between(from, to) };
        }
        tally
    }

    /// Counts the jobs with a time after `now`. O(1) if there is no job between `now` and the
    /// horizon.
    pub fn count_after(&self, now: Time) -> JobCounts {
        let mut tally = self.all - self.passed;
        if now < self.horizon {
            tally += self.count_between(now, self.horizon);
        } else if now >= self.next_at_earliest {
            tally = tally - self.count_between(self.horizon, now);
        }
        tally
    }

    /// The earliest time after this one. O(log n).
    pub fn first_after(&self, time: Time) -> Option<Time> {
        // It is in one of two rows: no bucket is empty.
        let buckets = self.rows_from(time).take(2).filter_map(|row| self.buckets.get(row.bucket));
        buckets
            .into_iter()
            .find_map(|bucket| bucket.entries().get(bucket.up_to(time)))
            .map(Entry::time)
    }

    /// The last row of the directory that doesn't begin after `time`.
    fn last_row_up_to(&self, time: Time) -> Option<usize> {
        self.directory.partition_point(|row| row.first <= time).checked_sub(1)
    }

    /// The row of the directory to which a job with this time goes; `None` if it comes before all
    /// rows.
    #[inline(always)]
    fn row_for(&self, time: Time) -> Option<usize> {
        // Times mostly ascend.
        if self.directory.back().is_some_and(|last| last.first <= time) {
            return self.directory.len().checked_sub(1);
        }
        self.last_row_up_to(time)
    }

    /// Puts a job into the bucket of this row, if there is one with room.
    #[inline(always)]
    fn put(&mut self, at: usize, entry: Entry, new_entry: &NewEntry) -> Option<BucketNumber> {
        let DirectoryEntry { first, bucket: number } = *self.directory.get(at)?;
        let behind = self.directory.get(at + 1).map_or(Time::MAX, |next| next.first);
        let bucket = self.buckets.get_mut(number).filter(|bucket| bucket.len() < BUCKET_ENTRIES)?;
        let position = bucket.position_of(new_entry.time, (first, behind));
        self.capacity += bucket.insert(position, entry, new_entry.window, GROWTH);
        Some(number)
    }
}

/// The first job up to `now` that hasn't expired by then.
pub fn first_open_in(entries: &[Entry], now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
    let passed = entries.iter().take_while(|entry| entry.time() <= now);
    let is_open = |entry: &&Entry| {
        !entry.expires() || entry.closes_by() > now && windows.window_of(entry.slot).closes > now
    };
    passed.into_iter().find(is_open).map(|entry| (entry.time(), entry.slot))
}

#[cfg(test)]
mod tests;
