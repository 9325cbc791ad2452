//! The sorted buckets: jobs in the order of their times, and of equal times in the order in which they
//! came. Each bucket is a short sorted run; a directory of the buckets is sorted too. (The shape is that
//! of a B+ tree of two levels, or of G. Jenks' SortedContainers; why not a tree, a heap or a timing wheel:
//! ARCHITECTURE.md, with the measurements.)
//!
//! Nothing moves when time passes: the jobs up to the *horizon* are simply the front part, and
//! [`Buckets::advance`] adds up how many they are, a whole bucket at a step. So a million jobs that fall
//! due in one millisecond cost the counting of four thousand buckets, and the order is exact at every
//! moment, also halfway.

use std::cell::Cell;
use std::collections::VecDeque;

use super::bucket::Bucket;
pub use super::bucket::{Rank, Window, Windows};
use super::entry::{Entry, Expiry, Hold, Tally};
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

/// A job that comes into a line.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub time: Time,
    pub slot: Slot,
    pub hold: Hold,
    pub rank: Rank,
    pub window: Window,
}

impl Arrival {
    fn entry(&self) -> Entry {
        let expires = self.window.closes < Time::MAX;
        let expiry = if expires { Expiry::Expires } else { Expiry::Never };
        Entry::new(self.time, self.slot, self.hold, expiry)
    }
}

/// A line of the directory. `first` is not later than any time in its bucket and not earlier than any in
/// the one before.
#[derive(Clone, Copy)]
struct Line {
    first: Time,
    bucket: BucketNumber,
}

/// So many lines at the front of the directory hold nothing that is still open at `since` or later.
#[derive(Clone, Copy, Default)]
struct Closed {
    lines: usize,
    since: Time,
}

#[derive(Clone, Default)]
pub struct Buckets {
    directory: VecDeque<Line>,
    buckets: Slab<Bucket>,
    /// Up to and including this time, jobs have passed.
    horizon: Time,
    /// No job has a time beyond the horizon that is earlier.
    next_at_earliest: Time,
    all: Tally,
    passed: Tally,
    closed: Cell<Closed>,
    /// Entries for which there is memory.
    capacity: usize,
}

impl Buckets {
    /// All jobs, and those whose time has passed the horizon.
    pub fn tallies(&self) -> (Tally, Tally) {
        (self.all, self.passed)
    }

    /// The earliest time beyond the horizon. O(log n).
    pub fn next(&self) -> Option<Time> {
        self.first_after(self.horizon)
    }

    pub fn memory(&self) -> usize {
        self.capacity * size_of::<Entry>()
            + self.buckets.memory()
            + self.directory.capacity() * size_of::<Line>()
    }

    /// The job that leaves first, and its time. O(1).
    pub fn first(&self) -> Option<(Time, Slot)> {
        let line = self.directory.front()?;
        let entry = self.buckets.get(line.bucket)?.entries().first()?;
        Some((entry.time(), entry.slot))
    }

    /// The first job up to `now` whose window hasn't closed by then. O(1) where no job expires. Otherwise the
    /// buckets at the front in which everything has are stepped over once.
    pub fn first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        let Closed { lines, since } = self.closed.get();
        let start = if since <= now { lines.min(self.directory.len()) } else { 0 };
        let mut end = start;
        let mut found = None;
        for line in self.directory.range(start..).take_while(|line| line.first <= now) {
            let Some(bucket) = self.buckets.get(line.bucket) else {
                break;
            };
            if !bucket.is_closed(now) {
                found = first_open_in(bucket, now, windows);
                if found.is_some() || bucket.entries().last().is_some_and(|last| last.time() > now) {
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

    /// All jobs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot, Hold)> + '_ {
        self.directory.iter().flat_map(|line| self.entries_of(line)).map(Entry::parts)
    }

    /// Those whose time is to come, in their order; buckets that `wants` declines are left out whole.
    pub fn to_come<'b>(
        &'b self,
        wants: impl Fn(Tally) -> bool + 'b,
    ) -> impl Iterator<Item = (Time, Slot, Hold)> + 'b {
        let buckets = self.lines_from(self.horizon).filter_map(|line| self.buckets.get(line.bucket));
        let entries = buckets.filter(move |bucket| wants(bucket.tally())).flat_map(|bucket| bucket.entries());
        entries.map(Entry::parts).filter(|(time, ..)| *time > self.horizon)
    }

    /// Those with a time up to and including `to` whose window is open at `now`, in their order. Buckets in which
    /// there is none are stepped over, and remember that.
    pub fn open_up_to<'b>(
        &'b self,
        to: Time,
        now: Time,
        windows: &'b dyn Windows,
    ) -> impl Iterator<Item = (Time, Slot)> + 'b {
        let lines = self.directory.iter().take_while(move |line| line.first <= to);
        open_in(lines.filter_map(|line| self.buckets.get(line.bucket)), now, windows)
            .take_while(move |(time, _)| *time <= to)
    }

    /// As [`Buckets::open_up_to`], of those with a time after `now`.
    pub fn open_after<'b>(
        &'b self,
        now: Time,
        windows: &'b dyn Windows,
    ) -> impl Iterator<Item = (Time, Slot)> + 'b {
        let buckets = self.lines_from(now).filter_map(|line| self.buckets.get(line.bucket));
        open_in(buckets, now, windows).skip_while(move |(time, _)| *time <= now)
    }

    fn lines_from(&self, time: Time) -> impl Iterator<Item = &Line> {
        self.directory.range(self.last_line_up_to(time).unwrap_or(0)..)
    }

    fn entries_of(&self, line: &Line) -> &[Entry] {
        self.buckets.get(line.bucket).map_or(&[], |bucket| bucket.entries())
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
            self.passed = self.passed - self.tally_between(now, self.horizon);
        } else if !is_quiet {
            self.passed += self.tally_between(self.horizon, now);
        }
        self.horizon = now;
        if !is_quiet {
            self.next_at_earliest = self.next().unwrap_or(Time::MAX);
        }
    }

    /// Puts a job among those with the same time. O(log n) and the shift of a bucket; O(bucket) more when
    /// it splits.
    pub fn insert(&mut self, arrival: &Arrival, residents: &mut impl Residents) {
        #[cfg(feature = "planted-faults")]
        let first = Arrival { rank: Rank::First, ..*arrival };
        #[cfg(feature = "planted-faults")]
        let arrival = if crate::planted::has(crate::planted::Fault::WrongOrder) { &first } else { arrival };
        let (time, entry) = (arrival.time, arrival.entry());
        let (at, number) = self.bucket_for(time, arrival.rank, residents);
        if let Some(bucket) = self.buckets.get_mut(number) {
            let place = bucket.place_of(time, arrival.rank);
            self.capacity += bucket.insert(place, entry, arrival.window, GROWTH);
        }
        if arrival.window.closes >= self.closed.get().since {
            self.reopen(at);
        }
        residents.moved_to(arrival.slot, number);
        let one = entry.tally();
        self.all += one;
        if time <= self.horizon {
            self.passed += one;
        } else {
            self.next_at_earliest = self.next_at_earliest.min(time);
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
        let entry = bucket.remove(slot)?;
        let (time, one, left) = (entry.time(), entry.tally(), bucket.len());
        if left == 0 {
            self.drop_bucket(number, time);
        } else if left <= MERGE_BELOW && left.is_power_of_two() {
            // Only at some sizes: looking for the neighbour at each removal would be wasted.
            self.merge_with_neighbour(number, time, residents);
        }
        self.all = self.all - one;
        if time <= self.horizon {
            self.passed = self.passed - one;
        }
        Some(time)
    }

    /// How many jobs have a time after `from`, up to and including `to`.
    pub fn tally_between(&self, from: Time, to: Time) -> Tally {
        let mut tally = Tally::default();
        let mut lines = self.lines_from(from).peekable();
        while let Some(line) = lines.next() {
            if line.first > to {
                break;
            }
            let Some(bucket) = self.buckets.get(line.bucket) else {
                break;
            };
            let whole = line.first > from && lines.peek().is_some_and(|next| next.first <= to);
            tally += if whole { bucket.tally() } else { bucket.tally_between(from, to) };
        }
        tally
    }

    fn first_after(&self, time: Time) -> Option<Time> {
        // The next line but one at the latest: no bucket is empty.
        let buckets = self.lines_from(time).take(2).filter_map(|line| self.buckets.get(line.bucket));
        buckets.into_iter().find_map(|bucket| bucket.entries().get(bucket.up_to(time))).map(Entry::time)
    }

    /// The last line of the directory that doesn't begin after `time`.
    fn last_line_up_to(&self, time: Time) -> Option<usize> {
        self.directory.partition_point(|line| line.first <= time).checked_sub(1)
    }

    /// Where in the directory a job with this time goes, and into which bucket, with room for it.
    fn bucket_for(
        &mut self,
        time: Time,
        rank: Rank,
        residents: &mut impl Residents,
    ) -> (usize, BucketNumber) {
        let lines_before = match rank {
            // Times mostly ascend.
            Rank::Last if self.directory.back().is_some_and(|last| last.first <= time) => {
                self.directory.len()
            }
            Rank::Last => self.directory.partition_point(|line| line.first <= time),
            Rank::First => self.directory.partition_point(|line| line.first < time),
        };
        let Some(at) = lines_before.checked_sub(1) else {
            return (0, self.bucket_before_all(time));
        };
        let Some(Line { bucket: number, .. }) = self.directory.get(at).copied() else {
            return (at, self.new_bucket(at, time, Bucket::default()));
        };
        let Some(bucket) = self.buckets.get_mut(number).filter(|bucket| bucket.len() >= BUCKET_ENTRIES)
        else {
            return (at, number);
        };
        let middle = BUCKET_ENTRIES / 2;
        let place = bucket.place_of(time, rank);
        if place == BUCKET_ENTRIES && at + 1 == self.directory.len() {
            // Times mostly ascend: the last bucket is left full, not half empty.
            return (at + 1, self.new_bucket(at + 1, time, Bucket::default()));
        }
        let upper = self.split(at, number, middle, residents);
        if place <= middle {
            (at, number)
        } else {
            (at + 1, upper)
        }
    }

    fn bucket_before_all(&mut self, time: Time) -> BucketNumber {
        let room = |line: &Line| {
            let bucket = self.buckets.get(line.bucket)?;
            (bucket.len() < BUCKET_ENTRIES).then_some(line.bucket)
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
            let before = lower.capacity();
            upper = lower.split_off(middle, GROWTH);
            self.capacity = self.capacity + lower.capacity() - before;
        }
        let first = upper.entries().first().map_or(Time::MAX, Entry::time);
        let moved: Vec<Slot> = upper.entries().iter().map(|entry| entry.slot).collect();
        let upper_number = self.new_bucket(at + 1, first, upper);
        for slot in moved {
            residents.moved_to(slot, upper_number);
        }
        upper_number
    }

    fn new_bucket(&mut self, at: usize, first: Time, bucket: Bucket) -> BucketNumber {
        self.capacity += bucket.capacity();
        // A slab of buckets can't be full: it would take 2^32 of them, and jobs are counted in 32 bits.
        let number = self.buckets.insert(bucket).unwrap_or(BucketNumber::MAX);
        self.directory.insert(at, Line { first, bucket: number });
        self.reopen(at);
        number
    }

    /// From this line of the directory on, something may be open.
    fn reopen(&mut self, at: usize) {
        let closed = self.closed.get_mut();
        closed.lines = closed.lines.min(at);
    }

    fn remove_line(&mut self, at: usize) {
        self.directory.remove(at);
        let closed = self.closed.get_mut();
        closed.lines -= usize::from(at < closed.lines);
    }

    fn drop_bucket(&mut self, number: BucketNumber, time: Time) {
        if let Some(at) = self.line_of(number, time) {
            self.remove_line(at);
        }
        if let Some(bucket) = self.buckets.remove(number) {
            self.capacity -= bucket.capacity();
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
        let len = |number| self.buckets.get(number).map_or(0, |bucket: &Bucket| bucket.len());
        if len(number) + len(next) > MERGED_AT_MOST {
            return;
        }
        let Some(taken) = self.buckets.remove(next) else {
            return;
        };
        self.remove_line(at + 1);
        self.reopen(at);
        self.capacity -= taken.capacity();
        if let Some(bucket) = self.buckets.get_mut(number) {
            let before = bucket.capacity();
            bucket.append(&taken, GROWTH);
            self.capacity = self.capacity + bucket.capacity() - before;
        }
        for entry in taken.entries() {
            residents.moved_to(entry.slot, number);
        }
    }
}

/// The first job up to `now` that hasn't expired by then.
fn first_open_in(bucket: &Bucket, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
    let passed = bucket.entries().iter().take_while(|entry| entry.time() <= now);
    let is_open = |entry: &&Entry| !entry.expires() || windows.window_of(entry.slot).closes > now;
    passed.into_iter().find(is_open).map(|entry| (entry.time(), entry.slot))
}

/// What is open at `now` in these buckets, in its order.
fn open_in<'b>(
    buckets: impl Iterator<Item = &'b Bucket> + 'b,
    now: Time,
    windows: &'b dyn Windows,
) -> impl Iterator<Item = (Time, Slot)> + 'b {
    let may_be_open = move |bucket: &&Bucket| bucket.may_be_open(now);
    buckets.filter(may_be_open).flat_map(move |bucket| {
        let is_open = |entry: &&Entry| windows.window_of(entry.slot).is_open(now);
        let open: Vec<&Entry> = bucket.entries().iter().filter(is_open).collect();
        if open.is_empty() {
            bucket.narrow(windows);
        }
        open.into_iter().map(|entry| (entry.time(), entry.slot))
    })
}

#[cfg(test)]
#[path = "buckets_tests.rs"]
mod tests;
