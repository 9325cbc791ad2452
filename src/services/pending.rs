//! Jobs that a waiting consumer was assigned, and that it has not been told of yet.

use super::place::KeyRef;
use super::value::{QueueNumber, QueueValue};
use crate::queue::{Deliveries, Lease, Mode, Queue, Time};

/// With bytes of its own: the queue may change before the consumer gets it.
#[derive(Debug)]
pub struct PendingDelivery {
    pub id: Box<[u8]>,
    pub body: Box<[u8]>,
    pub lease: Lease,
    pub attempt: u32,
    pub occurrence: Time,
}

/// What a waiting consumer is to get.
#[derive(Debug)]
pub struct Assigned {
    /// The key of the queue when the consumer was served.
    pub place: KeyRef,
    queue: QueueNumber,
    pub jobs: Vec<PendingDelivery>,
}

impl Assigned {
    /// As long as the queue hasn't changed since the jobs were handed out.
    pub fn new(place: KeyRef, value: &QueueValue, deliveries: &Deliveries) -> Assigned {
        let job = |queue: &Queue, delivery: &crate::queue::Delivery| {
            let (id, body) = delivery.id_and_body(queue);
            let (lease, attempt, occurrence) =
                (delivery.lease, delivery.attempt, delivery.occurrence());
            PendingDelivery { id: id.bytes().into(), body: body.into(), lease, attempt, occurrence }
        };
        let jobs = deliveries.iter().map(|delivery| job(&value.queue, delivery)).collect();
        Assigned { place, queue: value.number(), jobs }
    }

    /// What is to be given back when the consumer has gone away, with its first lease and its key.
    /// What was taken with NOACK isn't: that is at most once.
    pub fn undelivered(&self, mode: Mode) -> Option<((Lease, KeyRef), Undelivered)> {
        let first = self.jobs.first().filter(|_| mode == Mode::Lease)?.lease;
        let claims = self.jobs.iter().rev().map(|job| (job.id.clone(), job.lease)).collect();
        Some(((first, self.place.clone()), Undelivered { queue: self.queue, claims }))
    }
}

/// Leases of which the consumer was never told, since it went away.
pub struct Undelivered {
    queue: QueueNumber,
    /// Those that have not been given back yet; the next one last.
    claims: Vec<(Box<[u8]>, Lease)>,
}

impl Undelivered {
    /// Whether they are leases of this queue, and not of one that has come to its key since.
    pub fn is_of(&self, value: &QueueValue) -> bool {
        self.queue == value.number()
    }

    pub fn is_empty(&self) -> bool {
        self.claims.is_empty()
    }

    pub fn take_next(&mut self) -> Option<(Box<[u8]>, Lease)> {
        self.claims.pop()
    }
}
