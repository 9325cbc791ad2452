//! The sorted buckets: jobs in the order of their times, and of equal times in the order in which they
//! came. Each bucket is a short sorted run; a directory of the buckets is sorted too. (The shape is that
//! of a B+ tree of two levels, or of G. Jenks' SortedContainers; why not a tree, a heap or a timing wheel:
//! ARCHITECTURE.md, with the measurements.)
//!
//! Nothing moves when time passes: the jobs up to the *horizon* are simply the front part, and
//! [`Buckets::advance`] adds up how many they are, a whole bucket at a step. So a million jobs that fall
//! due in one millisecond cost the counting of four thousand buckets, and the order is exact at every
//! moment, also halfway.

use std::collections::VecDeque;

use super::entry::{tally_of, Entry, Hold, Tally};
use super::slab::{Slab, Slot};
use super::time::Time;

/// Entries in a bucket, at most. Measured: half of it costs more in the directory, twice as much more in
/// shifting.
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
pub trait Residents {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber);
}

/// Where among jobs of the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Behind those that are there: the order of scheduling.
    Last,
    /// Before them: it was there before.
    First,
}

#[derive(Default)]
struct Bucket {
    entries: Vec<Entry>,
    leased: u32,
    leased_at_first: u32,
}

/// With the room of the original: that is what [`Buckets`] counts.
impl Clone for Bucket {
    fn clone(&self) -> Bucket {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend_from_slice(&self.entries);
        Bucket { entries, ..*self }
    }
}

impl Bucket {
    fn tally(&self) -> Tally {
        Tally {
            jobs: self.entries.len(),
            leased: self.leased as usize,
            leased_at_first: self.leased_at_first as usize,
        }
    }

    /// How many entries have a time up to and including `time`.
    fn up_to(&self, time: Time) -> usize {
        self.entries.partition_point(|entry| entry.time() <= time)
    }

    /// Where a job with this time goes.
    fn place_of(&self, time: Time, rank: Rank) -> usize {
        match rank {
            Rank::Last => self.up_to(time),
            Rank::First => self.entries.partition_point(|entry| entry.time() < time),
        }
    }

    fn recount(&mut self) {
        let tally = tally_of(&self.entries);
        (self.leased, self.leased_at_first) = (tally.leased as u32, tally.leased_at_first as u32);
    }
}

/// A line of the directory. `first` is not later than any time in its bucket and not earlier than any in
/// the one before.
#[derive(Clone, Copy)]
struct Line {
    first: Time,
    bucket: BucketNumber,
}

#[derive(Clone, Default)]
pub struct Buckets {
    directory: VecDeque<Line>,
    buckets: Slab<Bucket>,
    /// Up to and including this time, jobs have passed.
    horizon: Time,
    /// The earliest time beyond the horizon.
    next: Option<Time>,
    all: Tally,
    passed: Tally,
    /// Entries for which there is memory.
    capacity: usize,
}

impl Buckets {
    /// All jobs, and those whose time has passed the horizon.
    pub fn tallies(&self) -> (Tally, Tally) {
        (self.all, self.passed)
    }

    /// The earliest time beyond the horizon.
    pub fn next(&self) -> Option<Time> {
        self.next
    }

    pub fn memory(&self) -> usize {
        self.capacity * size_of::<Entry>()
            + self.buckets.memory()
            + self.directory.capacity() * size_of::<Line>()
    }

    /// The job that leaves first, and its time. O(1).
    pub fn first(&self) -> Option<(Time, Slot)> {
        let line = self.directory.front()?;
        let entry = self.buckets.get(line.bucket)?.entries.first()?;
        Some((entry.time(), entry.slot))
    }

    /// All jobs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot, Hold)> + '_ {
        self.directory.iter().flat_map(|line| self.entries_of(line)).map(Entry::parts)
    }

    /// Those whose time has come, in their order. O(1) to the first.
    pub fn passed(&self) -> impl Iterator<Item = (Time, Slot, Hold)> + '_ {
        self.iter().take_while(|(time, ..)| *time <= self.horizon)
    }

    /// Those whose time is to come, in their order; buckets that `wants` declines are left out whole.
    pub fn to_come<'b>(
        &'b self,
        wants: impl Fn(Tally) -> bool + 'b,
    ) -> impl Iterator<Item = (Time, Slot, Hold)> + 'b {
        let start = self.last_line_up_to(self.horizon).unwrap_or(0);
        let buckets = self.directory.range(start..).filter_map(|line| self.buckets.get(line.bucket));
        let entries = buckets.filter(move |bucket| wants(bucket.tally())).flat_map(|bucket| &bucket.entries);
        entries.map(Entry::parts).filter(|(time, ..)| *time > self.horizon)
    }

    fn entries_of(&self, line: &Line) -> &[Entry] {
        self.buckets.get(line.bucket).map_or(&[], |bucket| &bucket.entries)
    }

    /// The time of the job in `slot`, which is in `bucket`. O(bucket).
    pub fn time_of(&self, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        let entries = &self.buckets.get(bucket)?.entries;
        // From the end: most often it is asked about a job that has just come.
        entries.iter().rfind(|entry| entry.slot == slot).map(Entry::time)
    }

    /// Moves the horizon on to `now`. O(buckets between the two), each a few nanoseconds.
    pub fn advance(&mut self, now: Time) {
        if now <= self.horizon {
            return;
        }
        if self.next.is_some_and(|next| next <= now) {
            self.passed += self.tally_between(self.horizon, now);
            self.next = self.first_after(now);
        }
        self.horizon = now;
    }

    /// Puts a job among those with the same time. O(log n) and the shift of a bucket; O(bucket) more when
    /// it splits.
    pub fn insert(&mut self, time: Time, slot: Slot, hold: Hold, rank: Rank, residents: &mut impl Residents) {
        let entry = Entry::new(time, slot, hold);
        let number = self.bucket_for(time, rank, residents);
        let one = entry.tally();
        if let Some(bucket) = self.buckets.get_mut(number) {
            let at = bucket.place_of(time, rank);
            if bucket.entries.len() == bucket.entries.capacity() {
                bucket.entries.reserve_exact(GROWTH);
                self.capacity += GROWTH;
            }
            bucket.entries.insert(at, entry);
            bucket.leased += one.leased as u32;
            bucket.leased_at_first += one.leased_at_first as u32;
        }
        residents.moved_to(slot, number);
        self.all += one;
        if time <= self.horizon {
            self.passed += one;
        } else if self.next.is_none_or(|next| time < next) {
            self.next = Some(time);
        }
    }

    /// Takes the job in `slot` out of its `bucket`; says what its time was. O(log n + bucket).
    pub fn remove(
        &mut self,
        slot: Slot,
        number: BucketNumber,
        residents: &mut impl Residents,
    ) -> Option<Time> {
        let bucket = self.buckets.get_mut(number)?;
        let at = bucket.entries.iter().position(|entry| entry.slot == slot)?;
        let entry = bucket.entries.remove(at);
        let (time, one, left) = (entry.time(), entry.tally(), bucket.entries.len());
        bucket.leased -= one.leased as u32;
        bucket.leased_at_first -= one.leased_at_first as u32;
        if left == 0 {
            self.drop_bucket(number, time);
        } else if left <= MERGE_BELOW && left.is_power_of_two() {
            // Only at some sizes: looking for the neighbour at each removal would be wasted.
            self.merge_with_neighbour(number, time, residents);
        }
        self.all = self.all - one;
        if time <= self.horizon {
            self.passed = self.passed - one;
        } else if self.next == Some(time) {
            self.next = self.first_after(self.horizon);
        }
        Some(time)
    }

    /// How many jobs have a time after `from`, up to and including `to`.
    pub fn tally_between(&self, from: Time, to: Time) -> Tally {
        let mut tally = Tally::default();
        let start = self.last_line_up_to(from).unwrap_or(0);
        let mut lines = self.directory.range(start..).peekable();
        while let Some(line) = lines.next() {
            if line.first > to {
                break;
            }
            let Some(bucket) = self.buckets.get(line.bucket) else {
                break;
            };
            let whole = line.first > from && lines.peek().is_some_and(|next| next.first <= to);
            tally += if whole { bucket.tally() } else { part_between(bucket, from, to) };
        }
        tally
    }

    fn first_after(&self, time: Time) -> Option<Time> {
        let start = self.last_line_up_to(time).unwrap_or(0);
        // The next line but one at the latest: no bucket is empty.
        let lines = self.directory.range(start..).take(2);
        lines
            .filter_map(|line| self.buckets.get(line.bucket))
            .find_map(|bucket| bucket.entries.get(bucket.up_to(time)))
            .map(Entry::time)
    }

    /// The last line of the directory that doesn't begin after `time`.
    fn last_line_up_to(&self, time: Time) -> Option<usize> {
        self.directory.partition_point(|line| line.first <= time).checked_sub(1)
    }

    /// The bucket into which a job with this time goes, with room for it.
    fn bucket_for(&mut self, time: Time, rank: Rank, residents: &mut impl Residents) -> BucketNumber {
        let lines_before = match rank {
            Rank::Last => self.directory.partition_point(|line| line.first <= time),
            Rank::First => self.directory.partition_point(|line| line.first < time),
        };
        let Some(at) = lines_before.checked_sub(1) else {
            return self.bucket_before_all(time);
        };
        let Some(Line { bucket: number, .. }) = self.directory.get(at).copied() else {
            return self.new_bucket(at, time, Bucket::default());
        };
        let Some(bucket) = self.buckets.get_mut(number) else {
            return number;
        };
        if bucket.entries.len() < BUCKET_ENTRIES {
            return number;
        }
        let middle = BUCKET_ENTRIES / 2;
        let place = bucket.place_of(time, rank);
        if place == BUCKET_ENTRIES && at + 1 == self.directory.len() {
            // Times mostly ascend: the last bucket is left full, not half empty.
            return self.new_bucket(at + 1, time, Bucket::default());
        }
        let upper = self.split(at, number, middle, residents);
        if place <= middle {
            number
        } else {
            upper
        }
    }

    fn bucket_before_all(&mut self, time: Time) -> BucketNumber {
        let room = |line: &Line| {
            let bucket = self.buckets.get(line.bucket)?;
            (bucket.entries.len() < BUCKET_ENTRIES).then_some(line.bucket)
        };
        match self.directory.front().and_then(room) {
            Some(number) => {
                if let Some(line) = self.directory.front_mut() {
                    line.first = time;
                }
                number
            }
            None => self.new_bucket(0, time, Bucket::default()),
        }
    }

    /// Moves the upper half of a full bucket to a new one behind it.
    fn split(
        &mut self,
        at: usize,
        number: BucketNumber,
        middle: usize,
        residents: &mut impl Residents,
    ) -> BucketNumber {
        let mut upper = Bucket::default();
        if let Some(lower) = self.buckets.get_mut(number) {
            let before = lower.entries.capacity();
            upper.entries = Vec::with_capacity(BUCKET_ENTRIES - middle + GROWTH);
            upper.entries.extend(lower.entries.drain(middle..));
            lower.entries.shrink_to(middle + GROWTH);
            lower.recount();
            upper.recount();
            self.capacity = self.capacity + lower.entries.capacity() - before;
        }
        let first = upper.entries.first().map_or(Time::MAX, Entry::time);
        let moved: Vec<Slot> = upper.entries.iter().map(|entry| entry.slot).collect();
        let upper_number = self.new_bucket(at + 1, first, upper);
        for slot in moved {
            residents.moved_to(slot, upper_number);
        }
        upper_number
    }

    fn new_bucket(&mut self, at: usize, first: Time, bucket: Bucket) -> BucketNumber {
        self.capacity += bucket.entries.capacity();
        // A slab of buckets can't be full: it would take 2^32 of them, and jobs are counted in 32 bits.
        let number = self.buckets.insert(bucket).unwrap_or(BucketNumber::MAX);
        self.directory.insert(at, Line { first, bucket: number });
        number
    }

    fn drop_bucket(&mut self, number: BucketNumber, time: Time) {
        if let Some(at) = self.line_of(number, time) {
            self.directory.remove(at);
        }
        if let Some(bucket) = self.buckets.remove(number) {
            self.capacity -= bucket.entries.capacity();
        }
        // A directory that has been long keeps a quarter of its room at most.
        if self.directory.len() < self.directory.capacity() / 4 {
            self.directory.shrink_to(self.directory.len() * 2);
        }
    }

    /// Which line of the directory names this bucket, from which a job with `time` has just left.
    fn line_of(&self, number: BucketNumber, time: Time) -> Option<usize> {
        if self.directory.front().is_some_and(|line| line.bucket == number) {
            return Some(0);
        }
        // Among lines that begin at the same time, any may be the one.
        let last = self.last_line_up_to(time)?;
        (0..=last).rev().find(|at| self.directory.get(*at).is_some_and(|line| line.bucket == number))
    }

    /// Merges a bucket that has become small with the one behind it or the one before. Both are asked:
    /// jobs that are cancelled in the order of their times would else leave a row of buckets of one job.
    fn merge_with_neighbour(&mut self, number: BucketNumber, time: Time, residents: &mut impl Residents) {
        let Some(at) = self.line_of(number, time) else {
            return;
        };
        let lines = self.directory.len();
        self.take_in_next(at, residents);
        if let (Some(before), true) = (at.checked_sub(1), lines == self.directory.len()) {
            self.take_in_next(before, residents);
        }
    }

    /// Moves what is in the bucket behind this line into that of the line, when both together leave room.
    fn take_in_next(&mut self, at: usize, residents: &mut impl Residents) {
        let bucket_at = |at: usize| self.directory.get(at).map(|line| line.bucket);
        let (Some(number), Some(next)) = (bucket_at(at), bucket_at(at + 1)) else {
            return;
        };
        let len = |number| self.buckets.get(number).map_or(0, |bucket: &Bucket| bucket.entries.len());
        if len(number) + len(next) > MERGED_AT_MOST {
            return;
        }
        let Some(taken) = self.buckets.remove(next) else {
            return;
        };
        self.directory.remove(at + 1);
        self.capacity -= taken.entries.capacity();
        if let Some(bucket) = self.buckets.get_mut(number) {
            let before = bucket.entries.capacity();
            bucket.entries.extend_from_slice(&taken.entries);
            bucket.entries.shrink_to(bucket.entries.len() + GROWTH);
            bucket.leased += taken.leased;
            bucket.leased_at_first += taken.leased_at_first;
            self.capacity = self.capacity + bucket.entries.capacity() - before;
        }
        for entry in &taken.entries {
            residents.moved_to(entry.slot, number);
        }
    }
}

fn part_between(bucket: &Bucket, from: Time, to: Time) -> Tally {
    tally_of(bucket.entries.get(bucket.up_to(from)..bucket.up_to(to)).unwrap_or_default())
}

#[cfg(test)]
#[path = "buckets_tests.rs"]
mod tests;
