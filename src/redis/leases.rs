//! Where the numbers of leases start.
//!
//! A queue's leases only grow; but a queue can be deleted and made again, and then must not give a number
//! that a worker of the old one still holds. So a lease is never below the time (2,048 numbers a
//! millisecond), nor below any that this process has given or seen. They stay below 2^53, where every
//! client's numbers are exact, until the year 2109.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::queue::{Lease, Millis, Time};

const NUMBERS_A_MILLISECOND_BITS: u32 = 11;

/// Clocks of servers differ by less than this. A number that is further ahead was forged (in a RESTORE
/// payload, say): it binds its own queue, not all of them.
const AHEAD_MAX: Millis = match Millis::new(366 * 24 * 3_600_000) {
    Some(year) => year,
    None => Millis::MAX,
};

/// Only the main thread uses it; atomic because a static has to be.
static HIGHEST: AtomicU64 = AtomicU64::new(0);

/// The lowest number that a lease given `now` may have.
pub fn floor(now: Time) -> Lease {
    let by_history = HIGHEST.load(Ordering::Relaxed).saturating_add(1);
    Lease::new(by_time(now).max(by_history).min(Lease::MAX.number()))
}

/// Remembers that this lease exists.
pub fn saw(lease: Lease, now: Time) {
    if lease.number() <= by_time(now.saturating_add(AHEAD_MAX)) {
        HIGHEST.fetch_max(lease.number(), Ordering::Relaxed);
    }
}

fn by_time(time: Time) -> u64 {
    time.unix_ms() << NUMBERS_A_MILLISECOND_BITS
}
