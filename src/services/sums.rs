//! Sums over all queues, kept up to date queue by queue: so INFO walks neither queues nor jobs.
//!
//! Of each data set by itself: a replica may load one async_load while it serves another, and what is
//! thrown away is freed bit by bit, on a thread of the server's. Hence the atomics.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use crate::queue::{Counts, State};

/// The sums over the queues of one data set.
#[derive(Default)]
struct Sums {
    queues: AtomicI64,
    jobs: [AtomicI64; State::ALL.len()],
    /// Queues that have left their key, wait for something, and live on who knows where.
    unlocated: AtomicI64,
}

/// The data set that is served, and the one that is being loaded async_load, if one is.
pub struct DataSets {
    served: Option<Arc<Sums>>,
    async_load: Option<Arc<Sums>>,
}

impl DataSets {
    pub const NONE: DataSets = DataSets { served: None, async_load: None };

    /// A data set is about to be loaded async_load.
    pub fn begin_async_load(&mut self) {
        self.async_load = Some(Arc::default());
    }

    /// It is the one that is served now.
    pub fn swap_in(&mut self) {
        let loaded = self.async_load.take();
        if loaded.is_some() {
            self.served = loaded;
        }
    }

    /// All that is served is about to be removed. Some of it may be freed later, on another thread:
    /// it counts no more.
    pub fn flush(&mut self) {
        self.served = None;
    }

    /// It won't be served.
    pub fn throw_away(&mut self) {
        self.async_load = None;
    }

    /// The share of a queue that is empty, or whose counts are about to be read.
    pub fn share(&mut self) -> QueueSums {
        QueueSums::of(self.served.get_or_insert_default().clone())
    }

    /// That of a queue of the data set that is being loaded async_load, if one is.
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

    /// How many jobs are in this state: on a primary, to the tick; a replica lets no time pass by
    /// itself.
    pub fn jobs(&self, state: State) -> u64 {
        let jobs = self.served.iter().flat_map(|sums| State::ALL.into_iter().zip(&sums.jobs));
        jobs.filter(|(one, _)| *one == state).map(|(_, sum)| shown(sum)).sum()
    }

    /// Whether a queue that waits for something is who knows where.
    pub fn is_any_unlocated(&self) -> bool {
        self.served.as_ref().is_some_and(|sums| shown(&sums.unlocated) > 0)
    }
}

/// What one queue adds to the sums; taken away when it ends.
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

    pub fn is_unlocated(&self) -> bool {
        self.is_unlocated
    }

    /// The queue has gone who knows where, or has been found.
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
