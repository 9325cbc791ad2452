//! What a queue's key holds: the queue, and what the services remember of it.

use super::lateness::Lateness;
use super::sums::QueueSums;
use crate::queue::{Counts, Lease, Queue, Time};

pub struct QueueValue {
    /// Operations on it go through [`super::commit::commit`]. Others only let time pass in it, and
    /// ask what that did.
    pub(super) queue: Queue,
    /// The time of this queue's hint, if it has one.
    pub(super) hint: Option<Time>,
    pub(super) lateness: Lateness,
    share: QueueSums,
    /// When it was last told up to where leases belong to others: see [`super::leases`].
    pub(super) lease_epoch: u64,
    number: QueueNumber,
}

/// Another one for each queue of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueNumber(pub u64);

impl QueueValue {
    /// With its share of the sums over a data set.
    pub fn new(queue: Queue, share: QueueSums, number: QueueNumber) -> QueueValue {
        QueueValue {
            queue,
            hint: None,
            lateness: Lateness::default(),
            share,
            lease_epoch: 0,
            number,
        }
    }

    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    pub fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    /// The sums over all queues learn how many jobs there are by now.
    pub(super) fn share_counts(&mut self) {
        let counts: Counts = self.queue.counts();
        self.share.update(counts);
    }

    /// Whether the timer may come too late for it: it has come to this key unseen, or the clock was
    /// set back.
    pub(super) fn is_to_be_planned(&self) -> bool {
        self.hint.is_none_or(|hint| self.queue.wake_at() < hint)
    }

    /// Whether it has left its key, and nobody has met it since.
    pub(super) fn is_unlocated(&self) -> bool {
        self.share.is_unlocated()
    }

    pub(super) fn set_unlocated(&mut self, is_unlocated: bool) {
        self.share.set_unlocated(is_unlocated);
    }

    pub(super) fn last_lease(&self) -> Lease {
        self.queue.last_lease().unwrap_or_default()
    }

    pub(super) fn number(&self) -> QueueNumber {
        self.number
    }

    /// Bytes beyond the queue's own.
    pub fn overhead(&self) -> usize {
        size_of::<QueueValue>() - size_of::<Queue>() + self.lateness.memory()
    }

    pub fn into_queue(self) -> Queue {
        self.queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Add, Circumstances, Id, Pop};

    #[test]
    fn a_value_is_little_more_than_its_queue_and_how_late_it_was() {
        let mut value =
            QueueValue::new(Queue::new((1, 2)), QueueSums::default(), QueueNumber::default());
        let words = value.overhead();
        assert!((64..1_024).contains(&words), "{words}");
        let now = Circumstances::default();
        value.queue.apply(&now, &Add::plain(Id::new(b"a").unwrap(), b"x"));
        let deliveries = value.queue.apply(&now, &Pop::ONE);
        value.lateness.record(&deliveries, now.now);
        assert_eq!(value.overhead(), words + value.lateness().memory());
        assert!(value.lateness().memory() > 0);
    }
}
