//! Buckets that are full are split, those that have become small are merged with a neighbour.

use super::{
    Bucket, BucketListener, BucketNumber, Buckets, DirectoryEntry, Entry, NewEntry, Slot, Time,
    BUCKET_ENTRIES, GROWTH, MERGED_AT_MOST,
};

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
        self.put(at, entry, new_entry);
        (at, number)
    }

    /// Makes room for a job with this time, which goes to a full bucket, that of line `at`, or
    /// before all of them; says in which line and bucket.
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
        let Some(bucket) = self.buckets.get_mut(number) else {
            return (at, self.new_bucket(at, time, Bucket::default()));
        };
        let middle = BUCKET_ENTRIES / 2;
        let place = bucket.place_of(time);
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
        let room = |line: &DirectoryEntry| {
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
        residents: &mut impl BucketListener,
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
        // A slab of buckets can't be full: it would take 2^32 of them, and jobs are counted in 32
        // bits.
        let number = self.buckets.insert(bucket).unwrap_or(BucketNumber::MAX);
        self.directory.insert(at, DirectoryEntry { first, bucket: number });
        self.reopen(at);
        number
    }

    /// From this line of the directory on, something may be open.
    pub(super) fn reopen(&mut self, at: usize) {
        let closed = self.closed.get_mut();
        closed.lines = closed.lines.min(at);
    }

    fn remove_line(&mut self, at: usize) {
        self.directory.remove(at);
        let closed = self.closed.get_mut();
        closed.lines -= usize::from(at < closed.lines);
        // A directory that has been long keeps a quarter of its room at most.
        if self.directory.len() < self.directory.capacity() / 4 {
            self.directory.shrink_to(self.directory.len() * 2);
        }
    }

    fn drop_bucket(&mut self, number: BucketNumber, time: Time) {
        if let Some(at) = self.line_of(number, time) {
            self.remove_line(at);
        }
        if let Some(bucket) = self.buckets.remove(number) {
            self.capacity -= bucket.capacity();
        }
    }

    /// Which line of the directory names this bucket, in which a job with `time` is or was until
    /// just now.
    pub(super) fn line_of(&self, number: BucketNumber, time: Time) -> Option<usize> {
        if self.directory.front().is_some_and(|line| line.bucket == number) {
            return Some(0);
        }
        // Among lines that begin at the same time, any may be the one.
        let last = self.last_line_up_to(time)?;
        (0..=last)
            .rev()
            .find(|at| self.directory.get(*at).is_some_and(|line| line.bucket == number))
    }

    /// The last job has left this bucket, or so many that it may be merged.
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

    /// Merges a bucket that has become small with the one behind it or the one before. Both are
    /// asked: jobs that are cancelled in the order of their times would else leave a row of buckets
    /// of one job.
    fn merge_with_neighbour(
        &mut self,
        number: BucketNumber,
        time: Time,
        residents: &mut impl BucketListener,
    ) {
        let Some(at) = self.line_of(number, time) else {
            return;
        };
        let lines = self.directory.len();
        self.take_in_next(at, residents);
        if let (Some(before), true) = (at.checked_sub(1), lines == self.directory.len()) {
            self.take_in_next(before, residents);
        }
    }

    /// Moves what is in the bucket behind this line into that of the line, when both together leave
    /// room.
    fn take_in_next(&mut self, at: usize, residents: &mut impl BucketListener) {
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
