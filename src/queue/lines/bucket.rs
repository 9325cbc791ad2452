//! One bucket: a short sorted run of entries, and bounds that hold for all of them.

use std::cell::Cell;

use super::entry::{tally_of, Entry, JobCounts};
use super::window::{Window, Windows};
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// How far from a guess a place is looked for. Where times are random, most are this near.
const NEAR: usize = 12;

/// Which of `len` entries is the first one after `time`, if they lie evenly between the two others.
fn guess(time: Time, (first, last): (Time, Time), len: usize) -> usize {
    let (before, all) = (time.since(first).as_u64(), last.since(first).as_u64());
    (before.saturating_mul(len as u64).checked_div(all).unwrap_or(0) as usize).min(len)
}

/// The bounds `opens` and `closes` let a search skip a whole bucket. They may be wider than
/// necessary, as a job that leaves doesn't narrow them. A search that found nothing in the bucket
/// narrows them, and a split narrows them by what the entries know.
pub struct Bucket {
    /// `entries[..left]` are removed: jobs mostly leave from the front.
    entries: Vec<Entry>,
    left: u32,
    leased: u32,
    leased_then_waiting: u32,
    /// No window of these entries opens earlier …
    opens: Cell<Time>,
    /// … and no window that closes does so later.
    closes: Cell<Time>,
}

impl Default for Bucket {
    fn default() -> Bucket {
        let (opens, closes) = (Cell::new(Time::MAX), Cell::new(Time::ZERO));
        Bucket { entries: Vec::new(), left: 0, leased: 0, leased_then_waiting: 0, opens, closes }
    }
}

/// Keeps the capacity of the original, which [`Buckets`](super::buckets::Buckets) counts.
impl Clone for Bucket {
    fn clone(&self) -> Bucket {
        let mut entries = Vec::with_capacity(self.entries.capacity());
        entries.extend_from_slice(&self.entries);
        let (opens, closes) = (self.opens.clone(), self.closes.clone());
        Bucket { entries, opens, closes, ..*self }
    }
}

impl Bucket {
    pub fn entries(&self) -> &[Entry] {
        self.entries.get(self.left as usize..).unwrap_or_default()
    }

    pub fn len(&self) -> usize {
        self.entries.len() - self.left as usize
    }

    /// For how many entries there is memory.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    pub fn defrag(&mut self, defragmenter: &mut impl Defragmenter) {
        defragmenter.vec(&mut self.entries);
    }

    pub fn tally(&self) -> JobCounts {
        JobCounts {
            jobs: self.len(),
            leased: self.leased as usize,
            leased_then_waiting: self.leased_then_waiting as usize,
        }
    }

    /// Whether some window may be open at `now`.
    pub fn may_be_open(&self, now: Time) -> bool {
        self.opens.get() <= now && !self.is_closed(now)
    }

    /// Whether every window has closed by `now`.
    pub fn is_closed(&self, now: Time) -> bool {
        self.closes.get() <= now && self.entries().iter().all(Entry::expires)
    }

    /// Makes the bounds as narrow as possible, by asking each job.
    pub fn narrow(&self, windows: &(impl Windows + ?Sized)) {
        let (mut opens, mut closes) = (Time::MAX, Time::ZERO);
        for entry in self.entries() {
            let window = windows.window_of(entry.slot);
            opens = opens.min(window.opens);
            if entry.expires() {
                closes = closes.max(window.closes);
            }
        }
        self.opens.set(opens);
        self.closes.set(closes);
    }

    /// An upper bound of the window of a waiting entry.
    pub fn widest(&self, entry: &Entry) -> Window {
        let mut widest = entry.widest();
        if entry.expires() {
            widest.closes = widest.closes.min(self.closes.get());
        }
        widest
    }

    /// Makes the bounds as narrow as the entries know, without asking the jobs.
    fn narrow_roughly(&mut self) {
        let opens = self.entries().iter().map(Entry::opens_from).min().unwrap_or(Time::MAX);
        let closing = self.entries().iter().filter(|entry| entry.expires());
        let closes = closing.map(Entry::closes_by).max().unwrap_or(Time::ZERO);
        self.opens.set(self.opens.get().max(opens));
        self.closes.set(self.closes.get().min(closes));
    }

    /// How many entries have a time up to and including `time`.
    pub fn up_to(&self, time: Time) -> usize {
        self.entries().partition_point(|entry| entry.time() <= time)
    }

    /// Where a job with this time goes: after those with an equal time. All others here lie between
    /// the two times of `range`.
    #[inline(always)]
    pub fn position_of(&self, time: Time, range: (Time, Time)) -> usize {
        // Times mostly ascend.
        if self.entries.last().is_none_or(|last| last.time() <= time) {
            self.len()
        } else {
            self.up_to_near(time, guess(time, range, self.len()))
        }
    }

    /// As [`Bucket::up_to`], begun at a guess: each step of a search is a wait for memory, and those
    /// around a place are one.
    fn up_to_near(&self, time: Time, guess: usize) -> usize {
        let near = guess.saturating_sub(NEAR)..(guess + NEAR).min(self.len());
        let (from, is_before) = (near.start, |entry: &Entry| entry.time() <= time);
        match self.entries().get(near) {
            Some(near @ [first, .., last]) if is_before(first) && !is_before(last) => {
                from + near.partition_point(is_before)
            }
            _ => self.up_to(time),
        }
    }

    /// Returns for how many more entries it took memory.
    #[inline(always)]
    pub fn insert(&mut self, at: usize, entry: Entry, window: Window, growth: usize) -> usize {
        let more =
            if self.entries.len() == self.entries.capacity() { self.make_room(growth) } else { 0 };
        let position = self.left as usize + at;
        if position == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries.insert(position, entry);
        }
        let one = entry.tally();
        self.leased += one.leased as u32;
        self.leased_then_waiting += one.leased_then_waiting as u32;
        self.opens.set(self.opens.get().min(window.opens));
        if entry.expires() {
            self.closes.set(self.closes.get().max(window.closes));
        }
        more
    }

    #[cold]
    fn make_room(&mut self, growth: usize) -> usize {
        let before = self.entries.capacity();
        self.close_up();
        if self.entries.len() == before {
            self.entries.reserve_exact(growth);
        }
        self.entries.capacity() - before
    }

    pub fn remove(&mut self, slot: Slot) -> Option<Entry> {
        let entry = match self.entries().first() {
            Some(first) if first.slot == slot => {
                let first = *first;
                self.left += 1;
                first
            }
            _ => {
                let at = self.entries().iter().rposition(|entry| entry.slot == slot)?;
                self.entries.remove(self.left as usize + at)
            }
        };
        let one = entry.tally();
        self.leased -= one.leased as u32;
        self.leased_then_waiting -= one.leased_then_waiting as u32;
        Some(entry)
    }

    /// Reuses the space of removed entries.
    fn close_up(&mut self) {
        self.entries.drain(..self.left as usize);
        self.left = 0;
    }

    /// Moves the entries from `middle` on to a new bucket. Both then have room for `growth` more.
    pub fn split_off(&mut self, middle: usize, growth: usize) -> Bucket {
        self.close_up();
        let mut entries = Vec::with_capacity(self.entries.len().saturating_sub(middle) + growth);
        entries.extend(self.entries.drain(middle..));
        self.entries.shrink_to(middle + growth);
        let mut upper = Bucket {
            entries,
            opens: self.opens.clone(),
            closes: self.closes.clone(),
            ..Bucket::default()
        };
        for half in [self, &mut upper] {
            half.recount();
            half.narrow_roughly();
        }
        upper
    }

    /// Appends the entries of the next bucket.
    pub fn append(&mut self, behind: &Bucket, growth: usize) {
        self.close_up();
        self.entries.extend_from_slice(behind.entries());
        self.entries.shrink_to(self.entries.len() + growth);
        self.leased += behind.leased;
        self.leased_then_waiting += behind.leased_then_waiting;
        self.opens.set(self.opens.get().min(behind.opens.get()));
        self.closes.set(self.closes.get().max(behind.closes.get()));
    }

    /// Counts the entries with a time after `from`, up to and including `to`.
    pub fn count_between(&self, from: Time, to: Time) -> JobCounts {
        tally_of(self.entries().get(self.up_to(from)..self.up_to(to)).unwrap_or_default())
    }

    fn recount(&mut self) {
        let tally = tally_of(self.entries());
        (self.leased, self.leased_then_waiting) =
            (tally.leased as u32, tally.leased_then_waiting as u32);
    }
}
