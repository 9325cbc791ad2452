//! Some jobs of a group in the order of their times: most groups have a few, and one may have a
//! million.

use crate::queue::lines::bucket::Bucket;
use crate::queue::lines::buckets::{
    first_open_in, BucketListener, BucketNumber, Buckets, NewEntry,
};
use crate::queue::lines::entry::{Entry, EntryKind};
use crate::queue::lines::window::Windows;
use crate::queue::memory::defrag::defrag_each;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// A line with more jobs than this uses buckets.
const FEW_MAX: usize = 128;
/// A short line grows by this many entries.
const GROWTH: usize = 4;

/// A line of jobs. A short line that becomes empty keeps some room, as jobs come and go one by one.
#[derive(Clone, Default)]
pub enum GroupLine {
    #[default]
    Empty,
    /// Uses no allocation: most groups have one lease at a time, and many have one job.
    One(Entry),
    Few(Box<Bucket>),
    Many(Box<Buckets>),
}

/// For each job in a long line, by its slot: its bucket. Most jobs are in no long line and cost
/// nothing.
#[derive(Clone, Default)]
pub struct BucketsBySlot {
    pages: Vec<Option<Box<BucketsPage>>>,
    taken: usize,
}

const PAGE_BITS: u32 = 10;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;
type BucketsPage = [BucketNumber; PAGE_SLOTS];

impl BucketsBySlot {
    fn get(&self, slot: Slot) -> BucketNumber {
        let page = self.pages.get((slot >> PAGE_BITS) as usize).and_then(Option::as_deref);
        page.and_then(|page| page.get(slot as usize & (PAGE_SLOTS - 1)))
            .copied()
            .unwrap_or_default()
    }

    pub fn memory(&self) -> usize {
        self.pages.capacity() * size_of::<Option<Box<BucketsPage>>>()
            + self.taken * size_of::<BucketsPage>()
    }

    /// Hands the pages to a defragmenter: see
    /// [`Slab::defrag`](crate::queue::memory::slab::Slab::defrag).
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        defrag_each(&mut self.pages, from, defragmenter, |page, defragmenter| {
            if let Some(page) = page {
                defragmenter.boxed(page);
            }
        })
    }
}

impl BucketListener for BucketsBySlot {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let number = (slot >> PAGE_BITS) as usize;
        if number >= self.pages.len() {
            self.pages.resize(number + 1, None);
        }
        let Some(page) = self.pages.get_mut(number).or_impossible("a page was made") else {
            return;
        };
        self.taken += usize::from(page.is_none());
        let page = page.get_or_insert_with(|| Box::new([0; PAGE_SLOTS]));
        if let Some(place) = page.get_mut(slot as usize & (PAGE_SLOTS - 1)) {
            *place = bucket;
        }
    }
}

impl GroupLine {
    pub fn insert(&mut self, new_entry: &NewEntry, places: &mut BucketsBySlot) {
        match self {
            GroupLine::Empty => *self = GroupLine::One(new_entry.entry()),
            GroupLine::One(entry) => {
                let mut few = Bucket::default();
                few.insert(0, *entry, entry.widest(), GROWTH);
                insert_in(&mut few, new_entry);
                *self = GroupLine::Few(Box::new(few));
            }
            GroupLine::Few(bucket) if bucket.len() < FEW_MAX => insert_in(bucket, new_entry),
            GroupLine::Few(bucket) => {
                let mut buckets = in_buckets(bucket, places);
                buckets.insert(new_entry, places);
                *self = GroupLine::Many(Box::new(buckets));
            }
            GroupLine::Many(buckets) => buckets.insert(new_entry, places),
        }
    }

    /// Returns whether the job was there. O(log n + bucket).
    pub fn remove(&mut self, slot: Slot, places: &mut BucketsBySlot) -> bool {
        match self {
            GroupLine::Empty => false,
            GroupLine::One(entry) => {
                let was_there = entry.slot == slot;
                if was_there {
                    *self = GroupLine::Empty;
                }
                was_there
            }
            GroupLine::Few(bucket) => bucket.remove(slot).is_some(),
            GroupLine::Many(buckets) => {
                let was_there = buckets.remove(slot, places.get(slot), places).is_some();
                if buckets.first().is_none() {
                    *self = GroupLine::Empty;
                }
                was_there
            }
        }
    }

    /// The jobs of a short line, or the buckets of a long one.
    fn entries(&self) -> Result<&[Entry], &Buckets> {
        match self {
            GroupLine::Empty => Ok(&[]),
            GroupLine::One(entry) => Ok(std::slice::from_ref(entry)),
            GroupLine::Few(bucket) => Ok(bucket.entries()),
            GroupLine::Many(buckets) => Err(buckets),
        }
    }

    fn first(&self) -> Option<&Entry> {
        match self.entries() {
            Ok(entries) => entries.first(),
            Err(buckets) => buckets.first_entry(),
        }
    }

    /// The time of the first job, even if it has expired.
    pub fn first_time(&self) -> Option<Time> {
        self.first().map(Entry::time)
    }

    /// Whether the first job is ready at `now` and stays ready until it is taken.
    pub fn is_ready_for_good(&self, now: Time) -> bool {
        self.first().is_some_and(|entry| entry.time() <= now && !entry.expires())
    }

    /// The first job up to `now` that hasn't expired by then.
    pub fn first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        if matches!(self, GroupLine::Few(bucket) if bucket.is_closed(now)) {
            return None;
        }
        match self.entries() {
            Ok(entries) => first_open_in(entries, now, windows),
            Err(buckets) => buckets.first_open(now, windows),
        }
    }

    /// The earliest time after `now`.
    pub fn first_after(&self, now: Time) -> Option<Time> {
        match self.entries() {
            Ok(entries) => entries.get(up_to(entries, now)).map(Entry::time),
            Err(buckets) => buckets.first_after(now),
        }
    }

    /// How many jobs have a time after `now`.
    pub fn after(&self, now: Time) -> usize {
        match self.entries() {
            Ok(entries) => entries.len() - up_to(entries, now),
            Err(buckets) => buckets.count_after(now).jobs,
        }
    }

    /// How many jobs have a time up to `now`.
    pub fn up_to(&self, now: Time) -> usize {
        match self.entries() {
            Ok(entries) => up_to(entries, now),
            Err(buckets) => buckets.job_counts().0.jobs - buckets.count_after(now).jobs,
        }
    }

    /// The time of the job that has `behind` jobs after it. O(buckets).
    pub fn time_from_end(&self, behind: usize) -> Option<Time> {
        match self.entries() {
            Ok(entries) => entries.iter().nth_back(behind).map(Entry::time),
            Err(buckets) => buckets.time_from_end(behind),
        }
    }

    /// Hands its memory to a defragmenter, except the buckets of a long line.
    pub fn defrag(&mut self, defragmenter: &mut impl Defragmenter) {
        match self {
            GroupLine::Empty | GroupLine::One(_) => (),
            GroupLine::Few(bucket) => {
                defragmenter.boxed(bucket);
                bucket.defrag(defragmenter);
            }
            GroupLine::Many(buckets) => defragmenter.boxed(buckets),
        }
    }

    pub fn memory(&self) -> usize {
        match self {
            GroupLine::Empty | GroupLine::One(_) => 0,
            GroupLine::Few(bucket) => size_of::<Bucket>() + bucket.capacity() * size_of::<Entry>(),
            GroupLine::Many(buckets) => size_of::<Buckets>() + buckets.memory(),
        }
    }
}

fn insert_in(few: &mut Bucket, new_entry: &NewEntry) {
    let at = few.up_to(new_entry.time);
    few.insert(at, new_entry.entry(), new_entry.window, GROWTH);
}

/// How many of these have a time up to and including `time`.
fn up_to(entries: &[Entry], time: Time) -> usize {
    entries.partition_point(|entry| entry.time() <= time)
}

fn in_buckets(few: &Bucket, places: &mut BucketsBySlot) -> Buckets {
    let mut buckets = Buckets::default();
    for entry in few.entries() {
        let (time, slot, _) = entry.parts();
        let new_entry =
            NewEntry { time, slot, kind: EntryKind::Waiting, window: few.widest(entry) };
        buckets.insert(&new_entry, places);
    }
    buckets
}

#[cfg(test)]
mod tests;
