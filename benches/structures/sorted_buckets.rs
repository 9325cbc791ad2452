//! (f) Sorted buckets: short sorted runs of at most `CAP` entries, and a sorted directory of them. A job keeps only
//! the number of its bucket; its time stands in the bucket. Nothing moves in a promotion: the lengths of the
//! buckets are added up.
//!
//! A sketch of the core's, written without it, to find the best `CAP`.

use std::collections::VecDeque;

use crate::slab::Slab;
use crate::slab_queue::Schedule;

const GROWTH: usize = 32;

#[derive(Clone, Copy)]
struct Entry {
    slot: u32,
    due_low: u32,
    due_high: u32,
}

impl Entry {
    fn new(slot: u32, due_ms: u64) -> Self {
        Entry { slot, due_low: due_ms as u32, due_high: (due_ms >> 32) as u32 }
    }

    fn due_ms(&self) -> u64 {
        u64::from(self.due_high) << 32 | u64::from(self.due_low)
    }
}

#[derive(Default)]
struct Bucket {
    entries: Vec<Entry>,
    /// So many entries, the first ones, have been counted as ready.
    ready: usize,
}

/// No entry of the bucket is due before `first_ms`, none of the bucket before is due later.
#[derive(Clone, Copy)]
struct Line {
    first_ms: u64,
    bucket: u32,
}

pub struct SortedBuckets<const CAP: usize> {
    directory: VecDeque<Line>,
    buckets: Vec<Bucket>,
    unused: Vec<u32>,
    ready: usize,
}

impl<const CAP: usize> SortedBuckets<CAP> {
    fn new_bucket(&mut self, at: usize, first_ms: u64, bucket: Bucket) -> u32 {
        let number = match self.unused.pop() {
            Some(number) => {
                self.buckets[number as usize] = bucket;
                number
            }
            None => {
                self.buckets.push(bucket);
                self.buckets.len() as u32 - 1
            }
        };
        self.directory.insert(at, Line { first_ms, bucket: number });
        number
    }

    fn drop_bucket(&mut self, at: usize) {
        if let Some(line) = self.directory.remove(at) {
            self.buckets[line.bucket as usize] = Bucket::default();
            self.unused.push(line.bucket);
        }
    }

    /// The line after which a job with this due time goes into a bucket of its own, or the line it goes to.
    fn line_up_to(&self, due_ms: u64) -> usize {
        self.directory.partition_point(|line| line.first_ms <= due_ms).saturating_sub(1)
    }

    fn bucket_at(&self, at: usize) -> Option<&Bucket> {
        self.directory.get(at).map(|line| &self.buckets[line.bucket as usize])
    }

    /// The line of the directory whose bucket has room for a job with this due time.
    fn line_with_room<C: Default>(&mut self, slab: &mut Slab<u32, C>, due_ms: u64) -> usize {
        let at = self.line_up_to(due_ms);
        let Some(bucket) = self.bucket_at(at) else {
            self.new_bucket(0, due_ms, Bucket::default());
            return 0;
        };
        if bucket.entries.len() < CAP {
            return at;
        }
        let is_append = bucket.entries[CAP - 1].due_ms() <= due_ms;
        if is_append && at + 1 == self.directory.len() {
            self.new_bucket(at + 1, due_ms, Bucket::default());
            return at + 1;
        }
        let upper_first_ms = self.split(slab, at);
        at + usize::from(upper_first_ms <= due_ms)
    }

    fn split<C: Default>(&mut self, slab: &mut Slab<u32, C>, at: usize) -> u64 {
        let lower = &mut self.buckets[self.directory[at].bucket as usize];
        let mut upper = Bucket::default();
        upper.entries.reserve_exact(CAP / 2 + GROWTH);
        upper.entries.extend(lower.entries.drain(CAP / 2..));
        lower.entries.shrink_to(CAP / 2 + GROWTH);
        upper.ready = lower.ready.saturating_sub(CAP / 2);
        lower.ready -= upper.ready;
        let first_ms = upper.entries[0].due_ms();
        let number = self.new_bucket(at + 1, first_ms, upper);
        for entry in &self.buckets[number as usize].entries {
            slab.at_mut(entry.slot).wait = number;
        }
        first_ms
    }

    /// Jobs of one due time may fill many buckets: the right one among them is found by its number.
    fn line_of(&self, number: u32, due_ms: u64) -> usize {
        let mut at = self.line_up_to(due_ms);
        while self.directory[at].bucket != number {
            at -= 1;
        }
        at
    }

    fn merge_with_next<C: Default>(&mut self, slab: &mut Slab<u32, C>, at: usize) {
        let Some(next) = self.bucket_at(at + 1) else { return };
        let number = self.directory[at].bucket;
        if self.buckets[number as usize].entries.len() + next.entries.len() > CAP / 2 {
            return;
        }
        let taken = std::mem::take(&mut self.buckets[self.directory[at + 1].bucket as usize]);
        self.drop_bucket(at + 1);
        for entry in &taken.entries {
            slab.at_mut(entry.slot).wait = number;
        }
        let bucket = &mut self.buckets[number as usize];
        bucket.entries.reserve_exact(taken.entries.len());
        bucket.entries.extend_from_slice(&taken.entries);
        bucket.ready += taken.ready;
    }
}

impl<const CAP: usize> Schedule for SortedBuckets<CAP> {
    const TAKES_LATE_JOBS: bool = true;
    /// The number of the job's bucket.
    type Wait = u32;

    fn new(_start_ms: u64) -> Self {
        SortedBuckets { directory: VecDeque::new(), buckets: Vec::new(), unused: Vec::new(), ready: 0 }
    }

    fn insert<C: Default>(&mut self, slab: &mut Slab<u32, C>, slot: u32, due_ms: u64) {
        let at = self.line_with_room(slab, due_ms);
        let later_is_ready = self.bucket_at(at + 1).is_some_and(|next| next.ready > 0);
        let line = &mut self.directory[at];
        line.first_ms = line.first_ms.min(due_ms);
        let bucket = &mut self.buckets[line.bucket as usize];
        if bucket.entries.len() == bucket.entries.capacity() {
            bucket.entries.reserve_exact(GROWTH);
        }
        let position = bucket.entries.partition_point(|entry| entry.due_ms() <= due_ms);
        bucket.entries.insert(position, Entry::new(slot, due_ms));
        if position < bucket.ready || later_is_ready {
            bucket.ready += 1;
            self.ready += 1;
        }
        slab.at_mut(slot).wait = line.bucket;
    }

    fn remove<C: Default>(&mut self, slab: &mut Slab<u32, C>, slot: u32) {
        let number = slab.at(slot).wait;
        let bucket = &mut self.buckets[number as usize];
        let Some(position) = bucket.entries.iter().position(|entry| entry.slot == slot) else {
            return;
        };
        let due_ms = bucket.entries.remove(position).due_ms();
        if position < bucket.ready {
            bucket.ready -= 1;
            self.ready -= 1;
        }
        let left = bucket.entries.len();
        if left == 0 {
            self.drop_bucket(self.line_of(number, due_ms));
        } else if left <= CAP / 4 && left.is_power_of_two() {
            self.merge_with_next(slab, self.line_of(number, due_ms));
        }
    }

    fn earliest_due_ms<C: Default>(&self, _slab: &Slab<u32, C>) -> Option<u64> {
        Some(self.bucket_at(0)?.entries[0].due_ms())
    }

    fn promote<C: Default>(&mut self, _slab: &mut Slab<u32, C>, now_ms: u64, at_most: usize) -> usize {
        let buckets = &mut self.buckets;
        let is_counted = |line: &Line| {
            let bucket = &buckets[line.bucket as usize];
            bucket.ready == bucket.entries.len()
        };
        let uncounted = self.directory.partition_point(is_counted);
        let mut promoted = 0;
        for line in self.directory.range(uncounted..) {
            if line.first_ms > now_ms || promoted >= at_most {
                break;
            }
            let bucket = &mut buckets[line.bucket as usize];
            let is_whole = bucket.entries.last().is_some_and(|last| last.due_ms() <= now_ms);
            let due = match is_whole {
                true => bucket.entries.len(),
                false => bucket.entries.partition_point(|entry| entry.due_ms() <= now_ms),
            };
            promoted += due - bucket.ready;
            bucket.ready = due;
        }
        self.ready += promoted;
        promoted
    }

    fn ready(&self) -> usize {
        self.ready
    }

    fn pop<C: Default>(&mut self, _slab: &mut Slab<u32, C>, now_ms: u64) -> Option<u32> {
        let number = self.directory.front()?.bucket;
        let bucket = &mut self.buckets[number as usize];
        if bucket.entries[0].due_ms() > now_ms {
            return None;
        }
        let slot = bucket.entries.remove(0).slot;
        if bucket.ready > 0 {
            bucket.ready -= 1;
            self.ready -= 1;
        }
        if bucket.entries.is_empty() {
            self.drop_bucket(0);
        }
        Some(slot)
    }
}
