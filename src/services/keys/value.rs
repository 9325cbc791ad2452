//! The value of a key: the queue, and what the services remember of it.

use super::lateness::Lateness;
use super::sums::QueueSums;
use crate::queue::{Counts, Lease, Queue, Time};
use crate::services::timer::sink_trouble::SinkTrouble;

pub struct QueueValue {
    /// Operations go through `change/commit.rs`. Other code only advances the queue and reads it.
    pub(in crate::services) queue: Queue,
    /// The time of this queue's hint, if it has one.
    pub(in crate::services) hint: Option<Time>,
    pub(in crate::services) lateness: Lateness,
    /// If the stream of its sink has refused a job.
    pub(in crate::services) sink_trouble: Option<Box<SinkTrouble>>,
    share: QueueSums,
    /// The lease epoch in which this queue last got its lease floor: see `change/leases.rs`.
    pub(in crate::services) lease_epoch: u64,
    number: QueueNumber,
}

/// A different number for each queue of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueNumber(pub u64);

impl QueueValue {
    /// `share` is the queue's share of the sums over a data set.
    pub fn new(queue: Queue, share: QueueSums, number: QueueNumber) -> QueueValue {
        QueueValue {
            queue,
            hint: None,
            lateness: Lateness::default(),
            sink_trouble: None,
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

    /// Why a job can't leave for the sink that would leave at `now`: the stream has refused one. Not
    /// when workers have taken them all, when a pause or a limit holds them back, or when it was
    /// another stream.
    pub fn sink_error(&self, now: Time) -> Option<&str> {
        let stream = self.queue.sink()?.stream();
        let error = self.sink_trouble.as_ref()?.error_of(stream)?;
        // The queue's clock may be ahead, as when jobs leave.
        let now = now.max(self.queue.log_state().clock);
        self.queue.next_to_leave(now).map(|_| error)
    }

    /// Updates the sums over all queues with the number of jobs of this queue.
    pub(in crate::services) fn share_counts(&mut self) {
        let counts: Counts = self.queue.counts();
        self.share.update(counts);
    }

    /// Whether the timer may wake too late for this queue: it came to its key unnoticed, or the
    /// clock was set back.
    pub(in crate::services) fn is_to_be_planned(&self) -> bool {
        let next = self.queue.wake_at();
        next < Time::MAX && self.hint.is_none_or(|hint| next < hint)
    }

    /// Whether RENAME or MOVE took the queue to a key that DQ doesn't know yet.
    pub(in crate::services) fn is_unlocated(&self) -> bool {
        self.share.is_unlocated()
    }

    pub(in crate::services) fn set_unlocated(&mut self, is_unlocated: bool) {
        self.share.set_unlocated(is_unlocated);
    }

    pub(in crate::services) fn last_lease(&self) -> Lease {
        self.queue.last_lease().unwrap_or_default()
    }

    pub(in crate::services) fn number(&self) -> QueueNumber {
        self.number
    }

    /// Bytes besides the queue's own.
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
        let overhead = value.overhead();
        assert!((64..1_024).contains(&overhead), "{overhead}");
        let now = Circumstances::default();
        value.queue.apply(&now, &Add::plain(Id::new(b"a").unwrap(), b"x"));
        let deliveries = value.queue.apply(&now, &Pop::ONE);
        value.lateness.record(&deliveries, now.now);
        assert_eq!(value.overhead(), overhead + value.lateness().memory());
        assert!(value.lateness().memory() > 0);
    }
}
