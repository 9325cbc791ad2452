//! The sorted buckets: jobs in the order of their times, and of equal times in the order in which
//! they came. Each bucket is a short sorted run; a directory of the buckets is sorted too. (The
//! shape is that of a B+ tree of two levels, or of G. Jenks' SortedContainers; why not a tree, a
//! heap or a timing wheel: docs/design/buckets.md.)
//!
//! Nothing moves when time passes: the jobs up to the *horizon* are simply the front part, and
//! [`Buckets::advance`] adds up how many they are, a whole bucket at a step. So a million jobs that
//! fall due in one millisecond cost the counting of four thousand buckets, and the order is exact
//! at every moment, also halfway.

mod balance;
pub mod steps;
pub mod walk;

use std::cell::Cell;
use std::collections::VecDeque;

use super::bucket::Bucket;
use super::entry::{Entry, EntryKind, JobCounts};
use super::window::{Window, Windows};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::time::Time;

/// Entries in a bucket, at most. Measured: half of it costs more in the directory, twice as much
/// more in shifting.
const BUCKET_ENTRIES: usize = 256;
/// A bucket with at most this many looks for a neighbour to merge with …
const MERGE_BELOW: usize = BUCKET_ENTRIES / 4;
/// … and takes it if this many are not exceeded, so that the next insert doesn't split it again.
const MERGED_AT_MOST: usize = BUCKET_ENTRIES / 2;
/// Buckets grow by so many entries: doubling would leave a quarter of the memory unused.
const GROWTH: usize = 32;

/// The number of a bucket; each job keeps the one that it is in.
pub type BucketNumber = u32;

/// Where jobs keep the number of their bucket.
pub trait BucketListener {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber);
}

/// A job that comes into a line.
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

/// A line of the directory. `first` is not later than any time in its bucket and not earlier than
/// any in the one before.
#[derive(Clone, Copy)]
struct DirectoryEntry {
    first: Time,
    bucket: BucketNumber,
}

/// So many lines at the front of the directory kind nothing that is still open at `since` or later.
#[derive(Clone, Copy, Default)]
struct Closed {
    lines: usize,
    since: Time,
}

#[derive(Clone, Default)]
pub struct Buckets {
    directory: VecDeque<DirectoryEntry>,
    buckets: Slab<Bucket>,
    /// Up to and including this time, jobs have passed.
    horizon: Time,
    /// No job has a time beyond the horizon that is earlier.
    next_at_earliest: Time,
    all: JobCounts,
    passed: JobCounts,
    closed: Cell<Closed>,
    /// Entries for which there is memory.
    capacity: usize,
}

impl Buckets {
    /// All jobs, and those whose time has passed the horizon.
    pub fn job_counts(&self) -> (JobCounts, JobCounts) {
        (self.all, self.passed)
    }

    /// The earliest time beyond the horizon. O(log n).
    pub fn next(&self) -> Option<Time> {
        self.first_after(self.horizon)
    }

    pub fn memory(&self) -> usize {
        self.capacity * size_of::<Entry>()
            + self.buckets.memory()
            + self.directory.capacity() * size_of::<DirectoryEntry>()
    }

    /// Hands the buckets' memory to a defragmenter, as [`Slab::defrag`].
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        if from == 0 {
            let mut directory = Vec::from(std::mem::take(&mut self.directory));
            defragmenter.vec(&mut directory);
            self.directory = directory.into();
        }
        self.buckets.defrag(from, defragmenter, |bucket, defragmenter| bucket.defrag(defragmenter))
    }

    /// The job that leaves first, and its time. O(1).
    pub fn first(&self) -> Option<(Time, Slot)> {
        self.first_entry().map(|entry| (entry.time(), entry.slot))
    }

    pub fn first_entry(&self) -> Option<&Entry> {
        self.buckets.get(self.directory.front()?.bucket)?.entries().first()
    }

    /// The first job up to `now` whose window hasn't closed by then. O(1) where no job expires.
    /// Otherwise the buckets at the front in which everything has are stepped over once.
    pub fn first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        match self.first_if_never_closed() {
            Some((time, slot)) => (time <= now).then_some((time, slot)),
            None => self.find_first_open(now, windows),
        }
    }

    #[inline(never)]
    fn find_first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        let Closed { lines, since } = self.closed.get();
        let start = if since <= now { lines.min(self.directory.len()) } else { 0 };
        let mut end = start;
        let mut found = None;
        for line in self.directory.range(start..).take_while(|line| line.first <= now) {
            let Some(bucket) = self.buckets.get(line.bucket) else {
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
            self.closed.set(Closed { lines: end, since: now });
        }
        found
    }

    /// The first job, where its window doesn't close: most often, no job's does.
    fn first_if_never_closed(&self) -> Option<(Time, Slot)> {
        let bucket = self.buckets.get(self.directory.front()?.bucket)?;
        let first = bucket.entries().first().filter(|first| !first.expires())?;
        Some((first.time(), first.slot))
    }

    fn lines_from(&self, time: Time) -> impl Iterator<Item = &DirectoryEntry> {
        self.directory.range(self.last_line_up_to(time).unwrap_or(0)..)
    }

    /// The time of the job in `slot`, which is in `bucket`. O(bucket).
    pub fn time_of(&self, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        let entries = self.buckets.get(bucket)?.entries();
        // From the end: most often it is asked about a job that has just come.
        entries.iter().rfind(|entry| entry.slot == slot).map(Entry::time)
    }

    /// Moves the horizon to `now`, on or back. O(buckets between the two), each a few nanoseconds.
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

    /// Puts a job among those with the same time. O(log n) and the shift of a bucket; O(bucket)
    /// more when it splits.
    pub fn insert(&mut self, new_entry: &NewEntry, residents: &mut impl BucketListener) {
        self.insert_here(new_entry, residents);
    }

    /// The same, where a call is to be saved.
    #[inline(always)]
    pub fn insert_here(&mut self, new_entry: &NewEntry, residents: &mut impl BucketListener) {
        let (time, entry) = (new_entry.time, new_entry.entry());
        let at = self.line_for(time);
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

    /// Takes the job in `slot` out of its `bucket`; says what its time was. O(log n + bucket).
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
        // Only at some sizes: looking for the neighbour at each removal would be wasted.
        if left == 0 || left <= MERGE_BELOW && left.is_power_of_two() {
            self.tidy(number, left, time, residents);
        }
        self.all = self.all - one;
        if time <= self.horizon {
            self.passed = self.passed - one;
        }
        Some(time)
    }

    /// How many jobs have a time after `from`, up to and including `to`.
    pub fn count_between(&self, from: Time, to: Time) -> JobCounts {
        let mut tally = JobCounts::default();
        let mut lines = self.lines_from(from).peekable();
        while let Some(line) = lines.next() {
            if line.first > to {
                break;
            }
            let Some(bucket) = self.buckets.get(line.bucket) else {
                break;
            };
            let whole = line.first > from && lines.peek().is_some_and(|next| next.first <= to);
            tally += if whole { bucket.tally() } else { bucket.count_between(from, to) };
        }
        tally
    }

    /// Those with a time after `now`. O(1) while nothing lies between that and the horizon.
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
        // The next line but one at the latest: no bucket is empty.
        let buckets =
            self.lines_from(time).take(2).filter_map(|line| self.buckets.get(line.bucket));
        buckets
            .into_iter()
            .find_map(|bucket| bucket.entries().get(bucket.up_to(time)))
            .map(Entry::time)
    }

    /// The last line of the directory that doesn't begin after `time`.
    fn last_line_up_to(&self, time: Time) -> Option<usize> {
        self.directory.partition_point(|line| line.first <= time).checked_sub(1)
    }

    /// The line of the directory to which a job with this time goes; none, if it comes before all
    /// of them.
    #[inline(always)]
    fn line_for(&self, time: Time) -> Option<usize> {
        // Times mostly ascend.
        if self.directory.back().is_some_and(|last| last.first <= time) {
            return self.directory.len().checked_sub(1);
        }
        self.last_line_up_to(time)
    }

    /// Puts a job into the bucket of this line, if there is one with room.
    #[inline(always)]
    fn put(&mut self, at: usize, entry: Entry, new_entry: &NewEntry) -> Option<BucketNumber> {
        let number = self.directory.get(at)?.bucket;
        let bucket = self.buckets.get_mut(number).filter(|bucket| bucket.len() < BUCKET_ENTRIES)?;
        let place = bucket.place_of(new_entry.time);
        self.capacity += bucket.insert(place, entry, new_entry.window, GROWTH);
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
