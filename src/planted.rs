//! Faults on purpose, to show that the judge finds them: `make soak-faults`. Nothing of this is in the module unless it
//! is built with the feature `planted-faults`. The environment variable `DQ_PLANTED_FAULT` says which fault such a build
//! has; without it, it has none.
//!
//! Each place where a fault is made is a line or two under `#[cfg(feature = "planted-faults")]`: search for `planted::`.
//! The core makes its faults by the time that it is told, so that the log repeats them; the services count.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// DQ.FINISH of several jobs takes one that is ready with them.
    LostJob,
    /// Jobs are handed out 50 ms before they are due.
    Early,
    /// Leases end after half of their time.
    ShortLease,
    /// The latest lease's number is given again.
    LeaseTwice,
    /// What a crash or a failover has lost isn't reckoned with: its lease numbers are given again.
    NoLeaseMargin,
    /// A lease counts that isn't the job's.
    StaleLease,
    /// A delivery isn't counted as an attempt.
    UncountedAttempt,
    /// DQ.LEN says one more.
    CountOffByOne,
    /// Of jobs of the same millisecond, the last one leaves first.
    WrongOrder,
    /// One more lease lives than CONCURRENCY allows.
    OverConcurrency,
    /// What leaves isn't always counted by RATE.
    OverRate,
    /// One more lease of a group lives than GROUPCONCURRENCY allows.
    OverfullGroup,
    /// A group that was served keeps its turn.
    UnfairTurns,
    /// What leaves is counted twice by RATE.
    CountedTwice,
    /// DQ.FORECAST says one more.
    WrongForecast,
    /// A page of DQ.PEEK begins with the job behind which it is to begin.
    PageFromItself,
    /// A consumer that waits stands in no line.
    ForgottenConsumer,
    /// The timer isn't told of queues that wait for something.
    ForgottenQueue,
    /// What was on its way to a consumer that has gone away stays leased.
    NotGivenBack,
    /// An entry is left out of the log.
    UnloggedEntry,
    /// Dead and done jobs are kept for ever.
    KeptForEver,
    /// Memory isn't freed.
    Leak,
    /// The process ends.
    Abort,
}

const NAMES: [(&str, Fault); 23] = [
    ("lost-job", Fault::LostJob),
    ("early", Fault::Early),
    ("short-lease", Fault::ShortLease),
    ("lease-twice", Fault::LeaseTwice),
    ("no-lease-margin", Fault::NoLeaseMargin),
    ("stale-lease", Fault::StaleLease),
    ("uncounted-attempt", Fault::UncountedAttempt),
    ("count-off-by-one", Fault::CountOffByOne),
    ("wrong-order", Fault::WrongOrder),
    ("over-concurrency", Fault::OverConcurrency),
    ("over-rate", Fault::OverRate),
    ("overfull-group", Fault::OverfullGroup),
    ("unfair-turns", Fault::UnfairTurns),
    ("counted-twice", Fault::CountedTwice),
    ("wrong-forecast", Fault::WrongForecast),
    ("page-from-itself", Fault::PageFromItself),
    ("forgotten-consumer", Fault::ForgottenConsumer),
    ("forgotten-queue", Fault::ForgottenQueue),
    ("not-given-back", Fault::NotGivenBack),
    ("unlogged-entry", Fault::UnloggedEntry),
    ("kept-for-ever", Fault::KeptForEver),
    ("leak", Fault::Leak),
    ("abort", Fault::Abort),
];

const EARLY_MS: u64 = 50;
const LEAK_BYTES: usize = 4_096;

/// Whether the module has this fault.
pub fn has(fault: Fault) -> bool {
    static CHOSEN: OnceLock<Option<Fault>> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| {
        let name = std::env::var("DQ_PLANTED_FAULT").ok()?;
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault)
    });
    *chosen == Some(fault)
}

/// Whether it shows this time: once in so many.
pub fn strikes(fault: Fault, once_in: u64) -> bool {
    static TIMES: AtomicU64 = AtomicU64::new(0);
    has(fault) && TIMES.fetch_add(1, Ordering::Relaxed) % once_in == once_in - 1
}

/// Whether it shows in this millisecond: in one of so many.
pub fn strikes_at(fault: Fault, unix_ms: u64, once_in: u64) -> bool {
    has(fault) && unix_ms % once_in == 0
}

/// How far the clock of DQ.POP is ahead.
pub fn ahead_ms() -> u64 {
    if has(Fault::Early) {
        EARLY_MS
    } else {
        0
    }
}

/// How long a lease lasts that should last so long.
pub fn lease_ms(ms: u64) -> u64 {
    if has(Fault::ShortLease) {
        ms / 2
    } else {
        ms
    }
}

/// Which attempt a delivery is that should be this one.
pub fn attempt(attempt: u32, unix_ms: u64) -> u32 {
    if attempt > 1 && strikes_at(Fault::UncountedAttempt, unix_ms, 4) {
        attempt - 1
    } else {
        attempt
    }
}

/// How many jobs leave that RATE counts, where so many do.
pub fn counted_by_rate(jobs: usize, unix_ms: u64) -> usize {
    if strikes_at(Fault::OverRate, unix_ms, 4) {
        0
    } else {
        jobs * (1 + usize::from(has(Fault::CountedTwice)))
    }
}

/// Whatever is changed: memory is lost, and after a while the process.
pub fn at_a_change() {
    if has(Fault::Leak) {
        std::mem::forget(vec![0_u8; LEAK_BYTES]);
    }
    if strikes(Fault::Abort, 500) {
        std::process::abort();
    }
}
