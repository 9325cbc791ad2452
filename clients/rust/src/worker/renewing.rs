//! Keeping leases: one RENEW for all jobs of a queue that are in hand. Its answer is how a worker
//! learns that a job was cancelled, and it comes the moment that happens.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::errors::Result;
use crate::queue::Queue;
use crate::worker::hands::{Hand, Hands};
use crate::worker::link::Pauses;

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
pub(super) async fn keep(queue: Queue, hands: Arc<Hands>, ttr: Duration) -> Result<()> {
    let mut pauses = Pauses::new();
    loop {
        hands.some().await;
        let begun = Instant::now();
        let mut held = hands.kept();
        held.truncate(MOST_AT_ONCE);
        if held.is_empty() {
            // Those in hand are lost, and their handlers have still to end.
            tokio::time::sleep(SHORTEST).await;
            continue;
        }
        match renewed(&queue, &held, ttr, begun).await {
            Ok(()) => pauses = Pauses::new(),
            Err(error) if error.passes() => {
                tracing::warn!("the leases of {} jobs can't be renewed: {error}", held.len());
                pauses.pause().await;
                continue;
            }
            Err(error) => return Err(error),
        }
        tokio::time::sleep(SHORTEST.saturating_sub(begun.elapsed())).await;
    }
}

async fn renewed(queue: &Queue, held: &[Arc<Hand>], ttr: Duration, begun: Instant) -> Result<()> {
    let pairs = held.iter().map(|hand| (hand.job.id(), hand.job.delivery().into()));
    let void: HashSet<_> = queue.renew(ttr, interval(ttr), pairs).await?.into_iter().collect();
    for hand in held {
        if void.contains(hand.job.id()) {
            hand.lose();
        } else {
            hand.renew(begun + ttr);
        }
    }
    Ok(())
}

/// Gives jobs up whose leases could not be renewed in time: another worker may have them.
pub(super) async fn watch(all: Vec<Arc<Hands>>, ttr: Duration) -> Result<()> {
    loop {
        tokio::time::sleep(interval(ttr)).await;
        let now = Instant::now();
        for hand in all.iter().flat_map(|hands| hands.kept()) {
            if hand.good_until() < now {
                tracing::warn!("{}: its lease has run out", hand.job.id());
                hand.lose();
            }
        }
    }
}
