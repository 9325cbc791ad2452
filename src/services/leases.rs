//! Leases across queues. A queue's leases only grow; but a queue can be deleted and made again, replaced by another, or
//! loaded from a file that is older than the last leases it gave. Its numbers begin with the time, which most often
//! settles it. Where the clock doesn't (it was set back, or more leases were given than there are numbers in a
//! millisecond), what settles it is the highest lease that this process has seen: a queue that may be new at its key is
//! told of it with its first pop.

use super::value::QueueValue;
use crate::queue::{Lease, Millis, Queue, Time, LEASES_PER_MILLISECOND_BITS};

/// Clocks of servers differ by less than this. A number that is further ahead was forged (in a RESTORE
/// payload, say): it binds its own queue, not all of them.
const AHEAD_MAX: Millis = match Millis::new(366 * 24 * 3_600_000) {
    Some(year) => year,
    None => Millis::MAX,
};

/// As many numbers as ten minutes have: a crash or a failover may have lost the last leases that were given.
const MARGIN: u64 = 600_000 << LEASES_PER_MILLISECOND_BITS;

/// Whether no server can have given this lease by now. A queue that took it could soon give none.
pub fn is_forged(lease: Lease, wall_clock: Time) -> bool {
    lease > Queue::lease_at(wall_clock.saturating_add(AHEAD_MAX))
}

pub struct Leases {
    highest: Lease,
    /// Goes up whenever a queue may have come to a key at which another one was.
    epoch: u64,
}

impl Leases {
    pub const NONE: Leases = Leases { highest: Lease::new(0), epoch: 1 };

    /// Remembers that this lease exists.
    pub fn saw(&mut self, lease: Lease, now: Time) {
        if lease > self.highest && !is_forged(lease, now) {
            self.highest = lease;
        }
    }

    /// Queues may have come to other keys.
    pub fn keys_changed(&mut self) {
        self.epoch += 1;
    }

    /// Leases may exist that nobody here has seen.
    pub fn may_have_lost_some(&mut self) {
        let number = self.highest.number().saturating_add(MARGIN).min(Lease::MAX.number() - 1);
        if self.highest > Lease::default() {
            self.highest = Lease::new(number);
        }
        self.keys_changed();
    }

    /// Up to where leases belong to others, when this queue must be told so before it gives one; zero otherwise.
    pub fn floor_for(&self, value: &QueueValue, now: Time) -> Lease {
        if value.lease_epoch == self.epoch || self.highest < Queue::lease_at(now) {
            return Lease::default();
        }
        self.highest
    }

    /// The queue gives none below from here on.
    pub fn has_told(&self, value: &mut QueueValue) {
        value.lease_epoch = self.epoch;
    }
}
