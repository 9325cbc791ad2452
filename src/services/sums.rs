//! Sums over all queues, kept up to date queue by queue: so INFO walks neither queues nor jobs.
//!
//! Atomic because a queue may end on the server's freeing thread.

use std::sync::atomic::{AtomicI64, Ordering};

use crate::queue::{Counts, State};

static QUEUES: AtomicI64 = AtomicI64::new(0);
static JOBS: [AtomicI64; State::ALL.len()] = [const { AtomicI64::new(0) }; State::ALL.len()];

/// What one queue adds to the sums; taken away when it ends.
pub struct Share(Counts);

impl Share {
    /// Of a queue that is empty, or about to be asked.
    pub fn new() -> Share {
        QUEUES.fetch_add(1, Ordering::Relaxed);
        Share(Counts::default())
    }

    /// The queue has so many jobs now.
    pub fn update(&mut self, counts: Counts) {
        if counts == self.0 {
            return;
        }
        for (state, sum) in State::ALL.into_iter().zip(&JOBS) {
            let more = counts.of(state) as i64 - self.0.of(state) as i64;
            if more != 0 {
                sum.fetch_add(more, Ordering::Relaxed);
            }
        }
        self.0 = counts;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.update(Counts::default());
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

fn shown(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Ordering::Relaxed)).unwrap_or_default()
}
