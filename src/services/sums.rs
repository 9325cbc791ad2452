//! Sums over all queues, kept up to date queue by queue: so INFO walks neither queues nor jobs.
//!
//! Atomic because a queue may end on the server's freeing thread.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::queue::{Counts, State};

static QUEUES: AtomicI64 = AtomicI64::new(0);
static JOBS: [AtomicI64; State::ALL.len()] = [const { AtomicI64::new(0) }; State::ALL.len()];
/// Queues that have left their key, wait for something, and live on who knows where.
static ASTRAY: AtomicI64 = AtomicI64::new(0);

/// What one queue adds to the sums; taken away when it ends.
pub struct Share {
    counts: Counts,
    is_astray: bool,
}

impl Share {
    /// Of a queue that is empty, or about to be asked.
    pub fn new() -> Share {
        QUEUES.fetch_add(1, Ordering::Relaxed);
        Share { counts: Counts::default(), is_astray: false }
    }

    /// The queue has so many jobs now.
    pub fn update(&mut self, counts: Counts) {
        if counts == self.counts {
            return;
        }
        for (state, sum) in State::ALL.into_iter().zip(&JOBS) {
            let more = counts.of(state) as i64 - self.counts.of(state) as i64;
            if more != 0 {
                sum.fetch_add(more, Ordering::Relaxed);
            }
        }
        self.counts = counts;
    }

    pub fn is_astray(&self) -> bool {
        self.is_astray
    }

    /// The queue has gone who knows where, or has been found.
    pub fn set_astray(&mut self, is_astray: bool) {
        let more = i64::from(is_astray) - i64::from(self.is_astray);
        ASTRAY.fetch_add(more, Ordering::Relaxed);
        self.is_astray = is_astray;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.update(Counts::default());
        self.set_astray(false);
        QUEUES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many queues there are.
pub fn queues() -> u64 {
    shown(&QUEUES)
}

/// How many jobs are in this state: on a primary, to the tick; a replica lets no time pass by itself.
pub fn jobs(state: State) -> u64 {
    State::ALL.into_iter().zip(&JOBS).find(|(one, _)| *one == state).map_or(0, |(_, sum)| shown(sum))
}

/// Whether a queue that waits for something is who knows where.
pub fn is_any_astray() -> bool {
    shown(&ASTRAY) > 0
}

fn shown(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Ordering::Relaxed)).unwrap_or_default()
}
