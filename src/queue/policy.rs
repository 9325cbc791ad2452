//! What a job was told at ADD about how it is to be handed out, shared by all jobs that were told the same.
//!
//! A queue's jobs have one or a few policies; each is kept once, and a job carries its number. So an
//! option costs the jobs that use it, not the others.

use super::ids::Lease;
use super::slab::Slot;
use super::time::{Millis, Time};

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
    /// Not handed out this long after it came due, the job is dead; zero is no limit. Of a job with a schedule, whose
    /// [`super::Recurrence`] has it, always zero.
    pub late: Millis,
}

impl Policy {
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
pub(super) fn ends_after(span: Millis, begin: Time) -> Option<Time> {
    (!span.is_zero()).then(|| begin.saturating_add(span)).filter(|end| *end < Time::MAX)
}

/// How long a job waits after an attempt that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backoff {
    pub base: Millis,
    pub max: Millis,
}

/// The jitter takes away less than this part of a wait.
const JITTER_PART: u64 = 4;

impl Backoff {
    pub const NONE: Backoff = Backoff { base: Millis::ZERO, max: Millis::ZERO };

    /// The wait after this attempt, the first being 1: base·2^(attempt−1), at most max, less a jitter of up
    /// to a quarter. The jitter follows from the lease of the attempt, so that everyone who knows the job
    /// comes to the same wait, and jobs that failed together don't come back together.
    pub fn after(&self, attempt: u32, lease: Lease) -> Millis {
        if self.max.is_zero() {
            return Millis::ZERO;
        }
        let doublings = attempt.saturating_sub(1).min(Millis::BITS);
        let wait = self.base.saturating_doubled(doublings).min(self.max);
        let range = wait.as_u64() / JITTER_PART;
        let jitter = (u128::from(mixed(lease.number())) * u128::from(range)) >> u64::BITS;
        wait.saturating_sub(jitter as u64)
    }
}

/// A number in which each bit of `n` has stirred each bit (the finalizer of SplitMix64: G. Steele, D. Lea,
/// C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
pub(super) fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ n >> 31
}

/// How often a job is handed out at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// The number of a shared policy, with the group of the job: see [`super::terms`].
pub type PolicyNumber = Slot;

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(ms: u64) -> Millis {
        Millis::new(ms).unwrap()
    }

    #[test]
    fn attempts_end_with_the_last_one_and_never_without_a_limit() {
        assert!(!Attempts::new(2).end_with(1));
        assert!(Attempts::new(2).end_with(2));
        assert!(Attempts::new(2).end_with(3));
        assert!(!Attempts::new(0).end_with(u32::MAX));
    }

    #[test]
    fn waits_double_up_to_the_longest_less_a_quarter_at_most() {
        let backoff = Backoff { base: millis(1_000), max: millis(60_000) };
        for (attempt, whole) in [(1, 1_000), (2, 2_000), (6, 32_000), (7, 60_000), (u32::MAX, 60_000)] {
            for lease in 0..1_000 {
                let wait = backoff.after(attempt, Lease::new(lease)).as_u64();
                assert!(wait > whole - whole / 4 && wait <= whole, "{wait} after {attempt}");
            }
        }
    }

    #[test]
    fn waits_spread_and_are_the_same_each_time_they_are_asked_for() {
        let backoff = Backoff { base: millis(1_000), max: millis(1_000) };
        let waits: Vec<u64> = (0..100).map(|n| backoff.after(1, Lease::new(n)).as_u64()).collect();
        assert_eq!(waits, (0..100).map(|n| backoff.after(1, Lease::new(n)).as_u64()).collect::<Vec<_>>());
        let distinct: std::collections::BTreeSet<_> = waits.iter().collect();
        assert!(distinct.len() > 70, "{waits:?}");
    }

    #[test]
    fn the_longest_backoff_does_not_overflow_and_none_is_none() {
        let backoff = Backoff { base: Millis::MAX, max: Millis::MAX };
        assert!(backoff.after(u32::MAX, Lease::MAX) <= Millis::MAX);
        assert_eq!(Backoff::NONE.after(9, Lease::new(1)), Millis::ZERO);
    }
}
