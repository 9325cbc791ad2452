//! The jobs in hand of a worker: each has a place, and a lease that is good for a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::worker::running::RunningJob;

/// A job in hand.
pub(super) struct Hand {
    pub(super) job: RunningJob,
    /// Until when the lease is good, by this machine's monotonic clock.
    good_until: Mutex<Instant>,
}

impl Hand {
    pub(super) fn new(job: RunningJob, good_until: Instant) -> Self {
        Self { job, good_until: Mutex::new(good_until) }
    }

    pub(super) fn good_until(&self) -> Instant {
        *self.good_until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn renew(&self, good_until: Instant) {
        *self.good_until.lock().unwrap_or_else(PoisonError::into_inner) = good_until;
    }

    pub(super) fn is_lost(&self) -> bool {
        self.job.lost().is_cancelled()
    }

    /// The job isn't this worker's any more: the handler is told to end.
    pub(super) fn lose(&self) {
        self.job.lost().cancel();
    }
}

/// Those of one queue.
pub(super) struct Hands {
    in_hand: Mutex<HashMap<u64, Arc<Hand>>>,
    next: AtomicU64,
    count: watch::Sender<usize>,
}

impl Hands {
    pub(super) fn new() -> Self {
        Self { in_hand: Mutex::default(), next: AtomicU64::new(0), count: watch::Sender::new(0) }
    }

    /// Its number, to let go of it.
    pub(super) fn take(&self, hand: Arc<Hand>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut in_hand = self.held();
        in_hand.insert(number, hand);
        self.count.send_replace(in_hand.len());
        number
    }

    pub(super) fn let_go(&self, number: u64) {
        let mut in_hand = self.held();
        in_hand.remove(&number);
        self.count.send_replace(in_hand.len());
    }

    /// Those whose leases are to be kept, the oldest lease first.
    pub(super) fn kept(&self) -> Vec<Arc<Hand>> {
        let mut kept: Vec<_> =
            self.held().values().filter(|hand| !hand.is_lost()).cloned().collect();
        kept.sort_by_key(|hand| hand.good_until());
        kept
    }

    /// Waits until a job is in hand.
    pub(super) async fn some(&self) {
        // An error would be that the sender is gone, which is here.
        let _ = self.count.subscribe().wait_for(|&count| count > 0).await;
    }

    /// Waits until no job is in hand.
    pub(super) async fn none(&self) {
        let _ = self.count.subscribe().wait_for(|&count| count == 0).await;
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<Hand>>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
