//! Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
//! learns that a job was cancelled, and it comes the moment that happens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::FutureExt;

use crate::errors::Result;
use crate::queue::Queue;
use crate::worker::hands::{Hand, Hands};
use crate::worker::outage::Patience;

/// Two renewals may get lost.
const PER_TTR: u32 = 3;
/// A job that comes is under the watch of a RENEW this soon.
const LONGEST: Duration = Duration::from_secs(1);
/// Jobs that end all the time don't make a RENEW each.
const SHORTEST: Duration = Duration::from_millis(100);
/// In one command.
const MOST_AT_ONCE: usize = 10_000;

/// How long a POP or a RENEW blocks.
pub(super) fn interval(ttr: Duration) -> Duration {
    (ttr / PER_TTR).clamp(Duration::from_millis(1), LONGEST)
}

/// Renews the leases of a queue's jobs, until an error that doesn't pass.
pub(super) async fn keep(
    queue: Queue,
    hands: Arc<Hands>,
    ttr: Duration,
    mut patience: Patience,
) -> Result<()> {
    loop {
        if hands.some().now_or_never().is_none() {
            // Nothing is left to ask for.
            patience.answered();
            hands.some().await;
        }
        let begun = Instant::now();
        match renewed(&queue, &hands.kept(), ttr).await {
            Ok(()) => patience.answered(),
            Err(error) if error.passes() => {
                patience.failed(&error);
                patience.pause().await;
                continue;
            }
            Err(error) => return Err(error),
        }
        // None may be left to renew: those in hand are lost, and their handlers have still to end.
        tokio::time::sleep(SHORTEST.saturating_sub(begun.elapsed())).await;
    }
}

/// All of them, one command after the other: the last one waits.
async fn renewed(queue: &Queue, held: &[Arc<Hand>], ttr: Duration) -> Result<()> {
    let mut parts = held.chunks(MOST_AT_ONCE).peekable();
    while let Some(part) = parts.next() {
        let block = if parts.peek().is_some() { Duration::ZERO } else { interval(ttr) };
        let begun = Instant::now();
        let pairs = part.iter().map(|hand| (hand.job.id(), hand.job.delivery().into()));
        let void: HashSet<_> = queue.renew(ttr, block, pairs).await?.into_iter().collect();
        for hand in part {
            if void.contains(hand.job.id()) {
                hand.lose();
            } else {
                hand.renew(begun + ttr);
            }
        }
    }
    Ok(())
}

/// Gives jobs up whose leases could not be renewed in time: another worker may have them.
pub(super) async fn watch(all: Vec<Arc<Hands>>, ttr: Duration) -> Result<()> {
    loop {
        tokio::time::sleep(interval(ttr)).await;
        let now = Instant::now();
        for hands in &all {
            let mut late = hands.kept();
            late.retain(|hand| hand.good_until() < now);
            let Some(first) = late.first() else { continue };
            let (queue, id, count) = (first.job.queue().name(), first.job.id(), late.len());
            tracing::warn!("{queue:?}: the leases of {count} jobs have run out, {id:?} is one");
            for hand in &late {
                hand.lose();
            }
        }
    }
}
