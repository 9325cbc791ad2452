//! Sums over all queues, kept up to date queue by queue: so INFO walks neither queues nor jobs.
//!
//! Of each data set by itself: a replica may load one aside while it serves another, and what is thrown away is freed
//! bit by bit, on a thread of the server's. Hence the atomics.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::queue::{Counts, State};

/// The sums over the queues of one data set.
#[derive(Default)]
struct Sums {
    queues: AtomicI64,
    jobs: [AtomicI64; State::ALL.len()],
    /// Queues that have left their key, wait for something, and live on who knows where.
    astray: AtomicI64,
}

#[derive(Default)]
struct DataSets {
    served: Option<Arc<Sums>>,
    aside: Option<Arc<Sums>>,
}

static DATA_SETS: Mutex<DataSets> = Mutex::new(DataSets { served: None, aside: None });

fn data_sets() -> MutexGuard<'static, DataSets> {
    DATA_SETS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn served() -> Arc<Sums> {
    data_sets().served.get_or_insert_default().clone()
}

/// A data set is about to be loaded aside.
pub fn begin_aside() {
    data_sets().aside = Some(Arc::default());
}

/// It is the one that is served now.
pub fn swap_in() {
    let mut sets = data_sets();
    let loaded = sets.aside.take();
    if loaded.is_some() {
        sets.served = loaded;
    }
}

/// It won't be served.
pub fn throw_away() {
    data_sets().aside = None;
}

/// What one queue adds to the sums; taken away when it ends.
pub struct Share {
    sums: Arc<Sums>,
    counts: Counts,
    is_astray: bool,
}

impl Share {
    /// Of a queue that is empty, or about to be asked.
    pub fn new() -> Share {
        Share::of(served())
    }

    /// Of a queue of the data set that is being loaded aside, if one is.
    pub fn aside() -> Share {
        let aside = data_sets().aside.clone();
        Share::of(aside.unwrap_or_else(served))
    }

    fn of(sums: Arc<Sums>) -> Share {
        sums.queues.fetch_add(1, Ordering::Relaxed);
        Share { sums, counts: Counts::default(), is_astray: false }
    }

    /// The queue has so many jobs now.
    pub fn update(&mut self, counts: Counts) {
        if counts == self.counts {
            return;
        }
        for (state, sum) in State::ALL.into_iter().zip(&self.sums.jobs) {
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
        self.sums.astray.fetch_add(more, Ordering::Relaxed);
        self.is_astray = is_astray;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.update(Counts::default());
        self.set_astray(false);
        self.sums.queues.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How many queues there are.
pub fn queues() -> u64 {
    shown(&served().queues)
}

/// How many jobs are in this state: on a primary, to the tick; a replica lets no time pass by itself.
pub fn jobs(state: State) -> u64 {
    let sums = served();
    State::ALL.into_iter().zip(&sums.jobs).find(|(one, _)| *one == state).map_or(0, |(_, sum)| shown(sum))
}

/// Whether a queue that waits for something is who knows where.
pub fn is_any_astray() -> bool {
    shown(&served().astray) > 0
}

fn shown(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Ordering::Relaxed)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, since the sums are those of the process.
    #[test]
    fn each_data_set_has_its_own_sums() {
        let before = queues();
        let old = Share::new();
        begin_aside();
        let (mut new, other) = (Share::aside(), Share::aside());
        new.set_astray(true);
        assert_eq!((queues() - before, is_any_astray()), (1, false));
        swap_in();
        assert_eq!((queues(), is_any_astray()), (2, true));
        drop((old, other));
        assert_eq!(queues(), 1);
        begin_aside();
        let never_served = Share::aside();
        throw_away();
        assert_eq!(queues(), 1);
        drop((never_served, new));
        assert_eq!((queues(), is_any_astray()), (0, false));
    }
}
