//! Sums over all queues. Each queue updates them, so INFO walks neither queues nor jobs.
//!
//! Each data set has its own: a replica may load one in an async load while it serves another. A
//! data set that is thrown away is freed step by step on a thread of the server. Hence the atomics.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use crate::queue::{Counts, State};

/// The sums over the queues of one data set.
#[derive(Default)]
struct Sums {
    queues: AtomicI64,
    jobs: [AtomicI64; State::ALL.len()],
    /// Queues that have left their key, have a time to wait for, and live on at an unknown key.
    unlocated: AtomicI64,
}

/// The data set that is served, and the data set of an async load, if one is in progress.
pub struct DataSets {
    served: Option<Arc<Sums>>,
    async_load: Option<Arc<Sums>>,
}

impl DataSets {
    pub const NONE: DataSets = DataSets { served: None, async_load: None };

    /// An async load begins.
    pub fn begin_async_load(&mut self) {
        self.async_load = Some(Arc::default());
    }

    /// The loaded data set is served from now on.
    pub fn swap_in(&mut self) {
        let loaded = self.async_load.take();
        if loaded.is_some() {
            self.served = loaded;
        }
    }

    /// All that is served is about to be removed. Some of it may be freed later, on another thread:
    /// it counts no longer.
    pub fn flush(&mut self) {
        self.served = None;
    }

    /// The async load has failed.
    pub fn throw_away(&mut self) {
        self.async_load = None;
    }

    /// The sums' share of a queue in the served data set, with no jobs counted yet.
    pub fn share(&mut self) -> QueueSums {
        QueueSums::of(self.served.get_or_insert_default().clone())
    }

    /// The sums' share of a queue that is loaded: in the async load, if one is in progress.
    pub fn share_of_async_load(&mut self) -> QueueSums {
        match &self.async_load {
            Some(async_load) => QueueSums::of(async_load.clone()),
            None => self.share(),
        }
    }

    /// How many queues there are.
    pub fn queues(&self) -> u64 {
        self.served.as_ref().map_or(0, |sums| shown(&sums.queues))
    }

    /// How many jobs are in this state. On a primary this is as of the timer's last run; on a
    /// replica, as of each queue's last command.
    pub fn jobs(&self, state: State) -> u64 {
        let jobs = self.served.iter().flat_map(|sums| State::ALL.into_iter().zip(&sums.jobs));
        jobs.filter(|(one, _)| *one == state).map(|(_, sum)| shown(sum)).sum()
    }

    /// Whether a queue with a time to wait for is at an unknown key.
    pub fn is_any_unlocated(&self) -> bool {
        self.served.as_ref().is_some_and(|sums| shown(&sums.unlocated) > 0)
    }
}

/// What one queue adds to the sums. It is subtracted when the queue is freed.
pub struct QueueSums {
    sums: Arc<Sums>,
    counts: Counts,
    is_unlocated: bool,
}

impl Default for QueueSums {
    /// Of no data set.
    fn default() -> QueueSums {
        QueueSums::of(Arc::default())
    }
}

impl QueueSums {
    fn of(sums: Arc<Sums>) -> QueueSums {
        sums.queues.fetch_add(1, Ordering::Relaxed);
        QueueSums { sums, counts: Counts::default(), is_unlocated: false }
    }

    /// Sets the queue's number of jobs in each state.
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

    pub fn is_unlocated(&self) -> bool {
        self.is_unlocated
    }

    /// Sets whether the queue is at an unknown key.
    pub fn set_unlocated(&mut self, is_unlocated: bool) {
        let more = i64::from(is_unlocated) - i64::from(self.is_unlocated);
        self.sums.unlocated.fetch_add(more, Ordering::Relaxed);
        self.is_unlocated = is_unlocated;
    }
}

impl Drop for QueueSums {
    fn drop(&mut self) {
        self.update(Counts::default());
        self.set_unlocated(false);
        self.sums.queues.fetch_sub(1, Ordering::Relaxed);
    }
}

fn shown(sum: &AtomicI64) -> u64 {
    u64::try_from(sum.load(Ordering::Relaxed)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_data_set_has_its_own_sums() {
        let mut sets = DataSets::NONE;
        let old = sets.share();
        sets.begin_async_load();
        let (mut new, other) = (sets.share_of_async_load(), sets.share_of_async_load());
        new.set_unlocated(true);
        assert_eq!((sets.queues(), sets.is_any_unlocated()), (1, false));
        sets.swap_in();
        assert_eq!((sets.queues(), sets.is_any_unlocated()), (2, true));
        drop((old, other));
        assert_eq!(sets.queues(), 1);
        sets.begin_async_load();
        let never_served = sets.share_of_async_load();
        sets.throw_away();
        assert_eq!(sets.queues(), 1);
        drop((never_served, new));
        assert_eq!((sets.queues(), sets.is_any_unlocated()), (0, false));
    }

    #[test]
    fn what_was_flushed_does_not_count_though_it_is_freed_later() {
        let mut sets = DataSets::NONE;
        let mut flushed = sets.share();
        flushed.set_unlocated(true);
        sets.flush();
        let made_since = sets.share();
        assert_eq!((sets.queues(), sets.is_any_unlocated()), (1, false));
        drop(flushed);
        assert_eq!(sets.queues(), 1);
        drop(made_since);
        assert_eq!(sets.queues(), 0);
    }
}
