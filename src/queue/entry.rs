//! What stands in a bucket for a job, and what it counts.

use std::ops::{AddAssign, Sub};

use super::slab::Slot;
use super::time::Time;

/// What the job does until its time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It waits.
    Waiting,
    /// Somebody works on it.
    Leased,
    /// Somebody works on it until an earlier time, and then it waits.
    LeasedAtFirst,
}

/// Whether the job expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Never,
    Expires,
}

/// What stands in a bucket, in 12 bytes: the time's upper half carries hold and expiry in its highest bits.
#[derive(Clone, Copy)]
pub struct Entry {
    pub slot: Slot,
    high: u32,
    low: u32,
}

const LEASED_BIT: u32 = 1 << 31;
const AT_FIRST_BIT: u32 = 1 << 30;
const EXPIRES_BIT: u32 = 1 << 29;
const TIME_BITS: u32 = (1 << 16) - 1;

impl Entry {
    pub fn new(time: Time, slot: Slot, hold: Hold, expiry: Expiry) -> Entry {
        let hold_bits = match hold {
            Hold::Waiting => 0,
            Hold::Leased => LEASED_BIT,
            Hold::LeasedAtFirst => AT_FIRST_BIT,
        };
        let expires_bit = if expiry == Expiry::Expires { EXPIRES_BIT } else { 0 };
        let high = (time.unix_ms() >> 32) as u32 | hold_bits | expires_bit;
        Entry { slot, high, low: time.unix_ms() as u32 }
    }

    pub fn time(&self) -> Time {
        let high = self.high & TIME_BITS;
        Time::new(u64::from(high) << 32 | u64::from(self.low)).unwrap_or(Time::MAX)
    }

    pub fn expires(&self) -> bool {
        self.high & EXPIRES_BIT != 0
    }

    pub fn hold(&self) -> Hold {
        match (self.high & LEASED_BIT, self.high & AT_FIRST_BIT) {
            (0, 0) => Hold::Waiting,
            (_, 0) => Hold::Leased,
            _ => Hold::LeasedAtFirst,
        }
    }

    pub fn parts(&self) -> (Time, Slot, Hold) {
        (self.time(), self.slot, self.hold())
    }

    /// What it counts. No job has both bits.
    pub fn tally(&self) -> Tally {
        Tally {
            jobs: 1,
            leased: usize::from(self.high & LEASED_BIT != 0),
            leased_at_first: usize::from(self.high & AT_FIRST_BIT != 0),
        }
    }
}

/// A number of jobs, and how many of them have which hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub jobs: usize,
    pub leased: usize,
    pub leased_at_first: usize,
}

impl Tally {
    pub fn waiting(&self) -> usize {
        self.jobs - self.leased - self.leased_at_first
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.jobs += other.jobs;
        self.leased += other.leased;
        self.leased_at_first += other.leased_at_first;
    }
}

impl Sub for Tally {
    type Output = Tally;

    fn sub(self, other: Tally) -> Tally {
        Tally {
            jobs: self.jobs - other.jobs,
            leased: self.leased - other.leased,
            leased_at_first: self.leased_at_first - other.leased_at_first,
        }
    }
}

pub fn tally_of(entries: &[Entry]) -> Tally {
    let mut tally = Tally::default();
    entries.iter().for_each(|entry| tally += entry.tally());
    tally
}
