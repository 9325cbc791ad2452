//! The jobs in hand of a worker: each has a lease that is good for a time, from its delivery until
//! the server knows its outcome.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::watch;

use crate::worker::running::RunningJob;

/// A job in hand.
pub(super) struct Hand {
    pub(super) job: RunningJob,
    /// Until when the lease is good, by this machine's monotonic clock.
    good_until: Mutex<Instant>,
    has_ended: AtomicBool,
}

impl Hand {
    pub(super) fn new(job: RunningJob, good_until: Instant) -> Self {
        Self { job, good_until: Mutex::new(good_until), has_ended: AtomicBool::new(false) }
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
    /// How many there are, and how many of them have a handler that goes on.
    counts: watch::Sender<(usize, usize)>,
}

impl Hands {
    pub(super) fn new() -> Self {
        Self {
            in_hand: Mutex::default(),
            next: AtomicU64::new(0),
            counts: watch::Sender::new((0, 0)),
        }
    }

    /// A handler begins. The reply is the hand's number.
    pub(super) fn take(&self, hand: Hand) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut held = self.held();
        held.insert(number, Arc::new(hand));
        let count = held.len();
        self.counts.send_modify(|(held, running)| (*held, *running) = (count, *running + 1));
        number
    }

    /// The handler has ended. The lease is kept until the server knows of it.
    pub(super) fn ended(&self, number: u64) {
        if let Some(hand) = self.held().get(&number) {
            hand.has_ended.store(true, Ordering::Relaxed);
        }
        self.counts.send_modify(|(_, running)| *running = running.saturating_sub(1));
    }

    /// The server knows the outcome.
    pub(super) fn let_go(&self, numbers: &[u64]) {
        let mut held = self.held();
        for number in numbers {
            held.remove(number);
        }
        let count = held.len();
        self.counts.send_modify(|(held, _)| *held = count);
    }

    /// Those whose leases are to be kept, the oldest lease first.
    pub(super) fn kept(&self) -> Vec<Arc<Hand>> {
        let mut kept: Vec<_> =
            self.held().values().filter(|hand| !hand.is_lost()).cloned().collect();
        kept.sort_by_cached_key(|hand| hand.good_until());
        kept
    }

    /// Those whose handlers go on, with their numbers.
    pub(super) fn running(&self) -> Vec<(u64, Arc<Hand>)> {
        let held = self.held();
        let running = held.iter().filter(|(_, hand)| !hand.has_ended.load(Ordering::Relaxed));
        running.map(|(&number, hand)| (number, hand.clone())).collect()
    }

    /// Waits until a job is in hand.
    pub(super) async fn some(&self) {
        // An error would be that the sender is gone, which is here.
        let _ = self.counts.subscribe().wait_for(|(held, _)| *held > 0).await;
    }

    /// Waits until no handler goes on.
    pub(super) async fn none(&self) {
        let _ = self.counts.subscribe().wait_for(|(_, running)| *running == 0).await;
    }

    fn held(&self) -> MutexGuard<'_, HashMap<u64, Arc<Hand>>> {
        self.in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
