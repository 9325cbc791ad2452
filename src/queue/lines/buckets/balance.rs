//! Splits full buckets, and merges small buckets with a neighbour.

use super::{
    Bucket, BucketListener, BucketNumber, Buckets, DirectoryEntry, Entry, NewEntry, Slot, Time,
    BUCKET_ENTRIES, GROWTH, MERGED_AT_MOST,
};
use crate::queue::memory::impossible::OrImpossible;

impl Buckets {
    #[cold]
    #[inline(never)]
    pub(super) fn put_with_room(
        &mut self,
        at: Option<usize>,
        entry: Entry,
        new_entry: &NewEntry,
        residents: &mut impl BucketListener,
    ) -> (usize, BucketNumber) {
        let (at, number) = self.make_room(at, new_entry.time, residents);
        self.put(at, entry, new_entry).or_impossible("a bucket with room takes an entry");
        (at, number)
    }

    /// Makes room for a job with this time. It goes to the full bucket of row `at`, or before all
    /// rows if `at` is `None`. Returns the row and the bucket to use.
    fn make_room(
        &mut self,
        at: Option<usize>,
        time: Time,
        residents: &mut impl BucketListener,
    ) -> (usize, BucketNumber) {
        let full = at.and_then(|at| Some((at, self.directory.get(at)?.bucket)));
        let Some((at, number)) = full else {
            return (0, self.bucket_before_all(time));
        };
        let bucket = self.buckets.get_mut(number).or_impossible("a row has a bucket");
        let Some(bucket) = bucket else {
            return (at, self.new_bucket(at, time, Bucket::default()));
        };
        let middle = BUCKET_ENTRIES / 2;
        let place = bucket.up_to(time);
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
        let room = |row: &DirectoryEntry| {
            let bucket = self.buckets.get(row.bucket)?;
            (bucket.len() < BUCKET_ENTRIES).then_some(row.bucket)
        };
        match self.directory.front().and_then(room) {
            Some(number) => {
                if let Some(row) = self.directory.front_mut() {
                    row.first = time;
                }
                number
            }
            None => self.new_bucket(0, time, Bucket::default()),
        }
    }

    /// Moves the upper half of a full bucket to a new one after it.
    fn split(
        &mut self,
        at: usize,
        number: BucketNumber,
        middle: usize,
        residents: &mut impl BucketListener,
    ) -> BucketNumber {
        let mut upper = Bucket::default();
        if let Some(lower) = self.buckets.get_mut(number).or_impossible("a row has a bucket") {
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
        // A slab of buckets can't be full: there are no more buckets than jobs.
        let number = self.buckets.insert(bucket).or_impossible("there is room for a bucket");
        let number = number.unwrap_or(BucketNumber::MAX);
        self.directory.insert(at, DirectoryEntry { first, bucket: number });
        self.reopen(at);
        number
    }

    /// From this row of the directory on, some window may be open.
    pub(super) fn reopen(&mut self, at: usize) {
        let closed = self.closed.get_mut();
        closed.rows = closed.rows.min(at);
    }

    fn remove_row(&mut self, at: usize) {
        self.directory.remove(at);
        let closed = self.closed.get_mut();
        closed.rows -= usize::from(at < closed.rows);
        // A directory uses at least a quarter of its capacity.
        if self.directory.len() < self.directory.capacity() / 4 {
            self.directory.shrink_to(self.directory.len() * 2);
        }
    }

    fn drop_bucket(&mut self, number: BucketNumber, time: Time) {
        if let Some(at) = self.row_of(number, time) {
            self.remove_row(at);
        }
        if let Some(bucket) = self.buckets.remove(number) {
            self.capacity -= bucket.capacity();
        }
    }

    /// The row of the directory for this bucket. A job with `time` is in the bucket, or was until
    /// just now.
    pub(super) fn row_of(&self, number: BucketNumber, time: Time) -> Option<usize> {
        if self.directory.front().is_some_and(|row| row.bucket == number) {
            return Some(0);
        }
        // It may be any of the rows that begin at the same time.
        let last = self.last_row_up_to(time)?;
        (0..=last).rev().find(|at| self.directory.get(*at).is_some_and(|row| row.bucket == number))
    }

    /// Removes a bucket that is empty, or merges it if it is small.
    #[cold]
    #[inline(never)]
    pub(super) fn tidy(
        &mut self,
        number: BucketNumber,
        left: usize,
        time: Time,
        residents: &mut impl BucketListener,
    ) {
        if left == 0 {
            self.drop_bucket(number, time);
        } else {
            self.merge_with_neighbour(number, time, residents);
        }
    }

    /// Merges a small bucket with the next one or the one before. Both are tried: otherwise,
    /// cancelling jobs in the order of their times would leave many buckets of one job.
    fn merge_with_neighbour(
        &mut self,
        number: BucketNumber,
        time: Time,
        residents: &mut impl BucketListener,
    ) {
        let Some(at) = self.row_of(number, time).or_impossible("a bucket has a row") else {
            return;
        };
        let rows = self.directory.len();
        self.take_in_next(at, residents);
        if let (Some(before), true) = (at.checked_sub(1), rows == self.directory.len()) {
            self.take_in_next(before, residents);
        }
    }

    /// Moves the entries of the next row's bucket into the bucket of this row, if they fit.
    fn take_in_next(&mut self, at: usize, residents: &mut impl BucketListener) {
        let bucket_at = |at: usize| self.directory.get(at).map(|row| row.bucket);
        let (Some(number), Some(next)) = (bucket_at(at), bucket_at(at + 1)) else {
            return;
        };
        let len = |number| self.buckets.get(number).map_or(0, |bucket: &Bucket| bucket.len());
        if len(number) + len(next) > MERGED_AT_MOST {
            return;
        }
        let Some(taken) = self.buckets.remove(next).or_impossible("a row has a bucket") else {
            return;
        };
        self.remove_row(at + 1);
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
