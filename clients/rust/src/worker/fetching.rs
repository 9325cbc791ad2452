//! Taking jobs: as many as there are free places, from queues by their weights.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::Delivery;
use crate::seam::Connection;
use crate::slots::slot_of;
use crate::words::Text;

/// One call delivers no more.
const MOST_AT_ONCE: usize = 10_000;

/// Queues from which jobs are taken by one call: those of one slot.
pub(super) struct Source {
    /// The places of the queues among all of the worker, with their weights.
    queues: Vec<(usize, Queue, i64)>,
    places: Arc<Semaphore>,
    credits: Vec<i64>,
}

impl Source {
    fn new(queues: Vec<(usize, Queue, i64)>, places: usize) -> Self {
        let places = places.min(Semaphore::MAX_PERMITS);
        let credits = vec![0; queues.len()];
        Self { queues, places: Arc::new(Semaphore::new(places)), credits }
    }

    /// The queues, with their places among all of the worker.
    pub(super) fn queues(&self) -> impl Iterator<Item = (usize, &Queue)> {
        self.queues.iter().map(|(at, queue, _)| (*at, queue))
    }

    /// Waits for a free place; takes all that are free.
    pub(super) async fn places(&self) -> Result<OwnedSemaphorePermit> {
        let closed = |_| Error::Misuse("a source is closed");
        let mut taken = self.places.clone().acquire_owned().await.map_err(closed)?;
        let more = self.places.available_permits().min(MOST_AT_ONCE - 1);
        if let Ok(more) =
            self.places.clone().try_acquire_many_owned(u32::try_from(more).unwrap_or(0))
        {
            taken.merge(more);
        }
        Ok(taken)
    }

    /// In which order to ask the queues this time: of as many calls as all weights together, each
    /// queue is the first as often as its weight says, evenly spread.
    pub(super) fn order(&mut self) -> Order {
        let total: i64 = self.queues.iter().map(|(_, _, weight)| weight).sum();
        for (credit, (_, _, weight)) in self.credits.iter_mut().zip(&self.queues) {
            *credit += weight;
        }
        let mut richest = 0;
        for (at, credit) in self.credits.iter().enumerate() {
            if self.credits.get(richest).is_none_or(|most| credit > most) {
                richest = at;
            }
        }
        if let Some(credit) = self.credits.get_mut(richest) {
            *credit -= total;
        }
        let names = self.queues.iter().enumerate();
        let others =
            names.filter(|(at, _)| *at != richest).map(|(_, (_, queue, _))| queue.name.clone());
        Order { first: richest, others: others.collect() }
    }

    pub(super) async fn take(
        &self,
        order: &Order,
        link: &Arc<dyn Connection>,
        count: usize,
        (block, ttr): (Duration, Duration),
    ) -> Result<Vec<Delivery>> {
        let first = self.queues.get(order.first).or(self.queues.first());
        let (_, queue, _) = first.ok_or(Error::Misuse("a source has no queue"))?;
        let queue = queue.over(link.clone());
        let count = i64::try_from(count).unwrap_or(1);
        if order.others.is_empty() {
            queue.pop().count(count).ttr(ttr).withdue().block(block).await
        } else {
            queue.mpop(&order.others).count(count).ttr(ttr).withdue().block(block).await
        }
    }

    /// The queue of a delivery, and its place among all of the worker; the delivery with its codec.
    pub(super) fn told(&self, mut delivery: Delivery) -> Option<(usize, Delivery)> {
        let (at, queue, _) = self.queues.iter().find(|(_, each, _)| each.name == delivery.key)?;
        delivery.codec = queue.codec;
        Some((*at, delivery))
    }
}

/// Which queue is asked first, and the names of the others.
pub(super) struct Order {
    first: usize,
    others: Vec<Text>,
}

/// The queues by their slots: one call can't wait in two. The places are divided evenly.
pub(super) fn sources(
    weights: &[(Queue, i64)],
    concurrency: usize,
    is_cluster: bool,
) -> Result<Vec<Source>> {
    let mut by_slot: BTreeMap<u64, Vec<(usize, Queue, i64)>> = BTreeMap::new();
    for (at, (queue, weight)) in weights.iter().enumerate() {
        let slot = if is_cluster { slot_of(queue.name.as_bytes()) } else { 0 };
        by_slot.entry(slot).or_default().push((at, queue.clone(), *weight));
    }
    if by_slot.is_empty() {
        return Err(Error::Misuse("a worker needs a queue"));
    }
    if concurrency == 0 {
        return Err(Error::Misuse("a worker whose concurrency is 0 has no place for a job"));
    }
    let slots = by_slot.len();
    if concurrency < slots {
        return Err(Error::Misuse(
            "queues in several slots of a cluster need a concurrency of as many at least, \
             or several workers that share them",
        ));
    }
    let (least, more) = (concurrency / slots, concurrency % slots);
    let parts = by_slot.into_values().enumerate();
    Ok(parts.map(|(at, of_slot)| Source::new(of_slot, least + usize::from(at < more))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_queue_is_the_first_as_often_as_its_weight_says() {
        let client = redis::Client::open("redis://127.0.0.1/").unwrap();
        let link = crate::worker::link::Link::over(&(Arc::new(client) as _));
        let queue = |name| Queue::shared(link.clone(), name);
        let mut all = sources(&[(queue("big"), 3), (queue("small"), 1)], 10, false).unwrap();
        let firsts: Vec<usize> = (0..8).map(|_| all[0].order().first).collect();
        assert_eq!(firsts, [0, 0, 1, 0, 0, 0, 1, 0]);
    }
}
