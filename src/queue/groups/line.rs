//! Some jobs of a group in the order of their times: most groups have a few, and one may have a million.

use super::super::bucket::Bucket;
use super::super::buckets::{first_open_in, Arrival, BucketNumber, Buckets, Rank, Residents, Windows};
use super::super::entry::{Entry, Hold};
use super::super::mover::Mover;
use super::super::slab::Slot;
use super::super::time::Time;
use super::relocate::relocate_each;

/// More than so many jobs stand in buckets.
const FEW_MAX: usize = 128;
/// A short line grows by so many entries.
const GROWTH: usize = 4;

/// A line of jobs. One that becomes empty keeps a little room, since jobs come and go one by one.
#[derive(Clone, Default)]
pub enum Line {
    #[default]
    Empty,
    Few(Box<Bucket>),
    Many(Box<Buckets>),
}

/// For each job that stands in a long line, its bucket there, by its slot: most jobs don't, and cost nothing.
#[derive(Clone, Default)]
pub struct Places {
    pages: Vec<Option<Box<Page>>>,
    taken: usize,
}

const PAGE_BITS: u32 = 10;
const PAGE_SLOTS: usize = 1 << PAGE_BITS;
type Page = [BucketNumber; PAGE_SLOTS];

impl Places {
    fn get(&self, slot: Slot) -> BucketNumber {
        let page = self.pages.get((slot >> PAGE_BITS) as usize).and_then(Option::as_deref);
        page.and_then(|page| page.get(slot as usize & (PAGE_SLOTS - 1))).copied().unwrap_or_default()
    }

    pub fn memory(&self) -> usize {
        self.pages.capacity() * size_of::<Option<Box<Page>>>() + self.taken * size_of::<Page>()
    }

    /// Hands the pages to a mover, as [`super::super::slab::Slab::relocate`].
    pub fn relocate(&mut self, from: Slot, mover: &mut impl Mover) -> Option<Slot> {
        relocate_each(&mut self.pages, from, mover, |page, mover| {
            if let Some(page) = page {
                mover.boxed(page);
            }
        })
    }
}

impl Residents for Places {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let number = (slot >> PAGE_BITS) as usize;
        if number >= self.pages.len() {
            self.pages.resize(number + 1, None);
        }
        let Some(page) = self.pages.get_mut(number) else {
            return;
        };
        self.taken += usize::from(page.is_none());
        let page = page.get_or_insert_with(|| Box::new([0; PAGE_SLOTS]));
        if let Some(place) = page.get_mut(slot as usize & (PAGE_SLOTS - 1)) {
            *place = bucket;
        }
    }
}

impl Line {
    pub fn insert(&mut self, arrival: &Arrival, places: &mut Places) {
        match self {
            Line::Empty => {
                let mut bucket = Bucket::default();
                bucket.insert(0, arrival.entry(), arrival.window, GROWTH);
                *self = Line::Few(Box::new(bucket));
            }
            Line::Few(bucket) if bucket.len() < FEW_MAX => {
                let at = bucket.place_of(arrival.time, arrival.rank);
                bucket.insert(at, arrival.entry(), arrival.window, GROWTH);
            }
            Line::Few(bucket) => {
                let mut buckets = in_buckets(bucket, places);
                buckets.insert(arrival, places);
                *self = Line::Many(Box::new(buckets));
            }
            Line::Many(buckets) => buckets.insert(arrival, places),
        }
    }

    /// Whether it was there. O(log n + bucket).
    pub fn remove(&mut self, slot: Slot, places: &mut Places) -> bool {
        match self {
            Line::Empty => false,
            Line::Few(bucket) => bucket.remove(slot).is_some(),
            Line::Many(buckets) => {
                let was_there = buckets.remove(slot, places.get(slot), places).is_some();
                if buckets.first().is_none() {
                    *self = Line::Empty;
                }
                was_there
            }
        }
    }

    /// The time of the first job, also of one that has expired.
    pub fn first_time(&self) -> Option<Time> {
        match self {
            Line::Empty => None,
            Line::Few(bucket) => bucket.entries().first().map(Entry::time),
            Line::Many(buckets) => buckets.first().map(|(time, _)| time),
        }
    }

    /// The first job up to `now` that hasn't expired by then.
    pub fn first_open(&self, now: Time, windows: &impl Windows) -> Option<(Time, Slot)> {
        match self {
            Line::Empty => None,
            Line::Few(bucket) if bucket.is_closed(now) => None,
            Line::Few(bucket) => first_open_in(bucket, now, windows),
            Line::Many(buckets) => buckets.first_open(now, windows),
        }
    }

    /// The earliest time after `now`.
    pub fn first_after(&self, now: Time) -> Option<Time> {
        match self {
            Line::Empty => None,
            Line::Few(bucket) => bucket.entries().get(bucket.up_to(now)).map(Entry::time),
            Line::Many(buckets) => buckets.first_after(now),
        }
    }

    /// How many have a time after `now`.
    pub fn after(&self, now: Time) -> usize {
        match self {
            Line::Empty => 0,
            Line::Few(bucket) => bucket.len() - bucket.up_to(now),
            Line::Many(buckets) => buckets.tally_after(now).jobs,
        }
    }

    /// How many have a time up to `now`.
    pub fn up_to(&self, now: Time) -> usize {
        match self {
            Line::Empty => 0,
            Line::Few(bucket) => bucket.up_to(now),
            Line::Many(buckets) => buckets.tallies().0.jobs - buckets.tally_after(now).jobs,
        }
    }

    /// The time of the one behind which there are so many. O(buckets).
    pub fn time_from_end(&self, behind: usize) -> Option<Time> {
        match self {
            Line::Empty => None,
            Line::Few(bucket) => bucket.entries().iter().nth_back(behind).map(Entry::time),
            Line::Many(buckets) => buckets.time_from_end(behind),
        }
    }

    /// Hands its memory to a mover; of a long line, but for its buckets.
    pub fn relocate(&mut self, mover: &mut impl Mover) {
        match self {
            Line::Empty => (),
            Line::Few(bucket) => {
                mover.boxed(bucket);
                bucket.relocate(mover);
            }
            Line::Many(buckets) => mover.boxed(buckets),
        }
    }

    pub fn memory(&self) -> usize {
        match self {
            Line::Empty => 0,
            Line::Few(bucket) => size_of::<Bucket>() + bucket.capacity() * size_of::<Entry>(),
            Line::Many(buckets) => size_of::<Buckets>() + buckets.memory(),
        }
    }
}

fn in_buckets(few: &Bucket, places: &mut Places) -> Buckets {
    let mut buckets = Buckets::default();
    for entry in few.entries() {
        let (time, slot, _) = entry.parts();
        let arrival =
            Arrival { time, slot, hold: Hold::Waiting, rank: Rank::Last, window: few.widest(entry) };
        buckets.insert(&arrival, places);
    }
    buckets
}
