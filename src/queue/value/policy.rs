//! The policy of a job: the options of its ADD, shared by all jobs with the same.
//!
//! A queue's jobs have one or a few policies; each is kept once, and a job carries its number. So
//! an option costs the jobs that use it, not the others.

use serde::{Deserialize, Serialize};

use super::ids::Lease;
use super::time::{Millis, Time};
use crate::queue::memory::slab::Slot;

/// The settings of a job, resolved at ADD: later changes of defaults don't touch it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Policy {
    /// How long a lease lasts unless the POP says otherwise.
    pub ttr: Millis,
    pub attempts: Attempts,
    /// 0 leaves first.
    pub priority: u8,
    pub backoff: Backoff,
    /// Not finished this long after ADD, the job is dead; zero is no limit.
    pub ttl: Millis,
    /// How long the job is kept once it is finished; zero is not at all.
    pub keep: Millis,
    /// The job is dead when it isn't delivered for this long after it is due; zero is no limit.
    /// Always zero for a job with a schedule: its
    /// [`Recurrence`](super::recurrence::Recurrence) has LATE.
    pub late: Millis,
}

impl Policy {
    /// Whether a job whose first lease runs out is ready at once.
    pub(in crate::queue) fn is_ready_again(&self) -> bool {
        self.backoff == Backoff::NONE && !self.attempts.end_with(1)
    }

    /// What a job has that was told nothing but its TTR.
    pub const fn plain(ttr: Millis) -> Policy {
        Policy {
            ttr,
            attempts: Attempts::new(0),
            priority: 128,
            backoff: Backoff::NONE,
            ttl: Millis::ZERO,
            keep: Millis::ZERO,
            late: Millis::ZERO,
        }
    }

    /// When a job expires whose TTL begins `now`; not at all at the end of time.
    pub fn expiry(&self, now: Time) -> Option<Time> {
        ends_after(self.ttl, now)
    }

    /// From when on it is too late for a job that is due then; never at the end of time.
    pub fn late_at(&self, due: Time) -> Option<Time> {
        ends_after(self.late, due)
    }
}

/// When a span ends that isn't without end.
pub(in crate::queue) fn ends_after(span: Millis, begin: Time) -> Option<Time> {
    (!span.is_zero()).then(|| begin.saturating_add(span)).filter(|end| *end < Time::MAX)
}

/// How long a job waits after an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Backoff {
    pub base: Millis,
    pub max: Millis,
}

/// The jitter takes away less than this part of a wait.
const JITTER_PART: u64 = 4;

impl Backoff {
    pub const NONE: Backoff = Backoff { base: Millis::ZERO, max: Millis::ZERO };

    pub fn is_none(&self) -> bool {
        *self == Backoff::NONE
    }

    /// The wait after this attempt, the first being 1: base·2^(attempt−1), at most max, less a
    /// jitter of up to a quarter. The jitter follows from the lease of the attempt, so that
    /// everyone who knows the job comes to the same wait, and jobs that failed together don't come
    /// back together.
    pub fn after(&self, attempt: u32, lease: Lease) -> Millis {
        if self.max.is_zero() {
            return Millis::ZERO;
        }
        let doublings = attempt.saturating_sub(1).min(Millis::BITS);
        let wait = self.base.saturating_doubled(doublings).min(self.max);
        let range = wait.as_u64() / JITTER_PART;
        let jitter = (u128::from(splitmix64(lease.number())) * u128::from(range)) >> u64::BITS;
        wait.saturating_sub(jitter as u64)
    }
}

/// A number in which each bit of `n` has stirred each bit (the finalizer of SplitMix64: G. Steele,
/// D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
pub(in crate::queue) fn splitmix64(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

/// How often a job is delivered at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempts(u32);

impl Attempts {
    /// 0 is no limit.
    pub const fn new(limit: u32) -> Attempts {
        Attempts(limit)
    }

    pub const fn limit(self) -> u32 {
        self.0
    }

    /// Whether the attempt with this number is the last one.
    pub const fn end_with(self, attempt: u32) -> bool {
        self.0 != 0 && attempt >= self.0
    }
}

/// The number of a policy and a group that jobs share: see
/// [`Terms`](crate::queue::kernel::terms::Terms).
pub type PolicyNumber = Slot;

#[cfg(test)]
mod tests;
