//! Jobs delivered to a waiting client that hasn't got them yet.

use crate::queue::{Deliveries, Delivery, Lease, Mode, Queue, Time};
use crate::services::key_ref::KeyRef;
use crate::services::keys::value::{QueueNumber, QueueValue};

/// A delivered job, as its client gets it. One that waits gets a copy of the job's bytes: the queue
/// may change before that.
#[derive(Debug)]
pub struct DeliveredJob<B> {
    pub id: B,
    pub body: B,
    pub lease: Lease,
    pub attempt: u32,
    pub occurrence: Time,
}

impl<'q> DeliveredJob<&'q [u8]> {
    /// Must be called before the queue changes again.
    pub fn of(delivery: &'q Delivery, queue: &'q Queue) -> DeliveredJob<&'q [u8]> {
        let (id, body) = delivery.id_and_body(queue);
        let (lease, attempt, occurrence) =
            (delivery.lease, delivery.attempt, delivery.occurrence());
        DeliveredJob { id: id.bytes(), body, lease, attempt, occurrence }
    }

    fn copied(&self) -> DeliveredJob<Box<[u8]>> {
        self.with_bytes(self.id.into(), self.body.into())
    }
}

impl DeliveredJob<Box<[u8]>> {
    pub fn borrowed(&self) -> DeliveredJob<&[u8]> {
        self.with_bytes(&self.id, &self.body)
    }
}

impl<B> DeliveredJob<B> {
    fn with_bytes<C>(&self, id: C, body: C) -> DeliveredJob<C> {
        let DeliveredJob { lease, attempt, occurrence, .. } = *self;
        DeliveredJob { id, body, lease, attempt, occurrence }
    }
}

/// The jobs that a waiting client is to get.
#[derive(Debug)]
pub struct DeliveredJobs {
    /// The key of the queue when the client was served.
    pub key_ref: KeyRef,
    queue: QueueNumber,
    pub jobs: Vec<DeliveredJob<Box<[u8]>>>,
    bytes: usize,
}

impl DeliveredJobs {
    /// Must be called before the queue changes again.
    pub fn new(key_ref: KeyRef, value: &QueueValue, deliveries: &Deliveries) -> DeliveredJobs {
        let jobs: Vec<DeliveredJob<Box<[u8]>>> = deliveries
            .iter()
            .map(|delivery| DeliveredJob::of(delivery, &value.queue).copied())
            .collect();
        let bytes = jobs.iter().map(|job| job.id.len() + job.body.len()).sum();
        DeliveredJobs { key_ref, queue: value.number(), jobs, bytes }
    }

    /// Of the ids and bodies.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The jobs to give back when the client has gone away, with their first lease and their key.
    /// `None` for jobs taken with NOACK: they are delivered at most once.
    pub fn undelivered(&self, mode: Mode) -> Option<((Lease, KeyRef), Undelivered)> {
        let first = self.jobs.first().filter(|_| mode == Mode::Lease)?.lease;
        let claims = self.jobs.iter().rev().map(|job| (job.id.clone(), job.lease)).collect();
        Some(((first, self.key_ref.clone()), Undelivered { queue: self.queue, claims }))
    }
}

/// Leases of jobs that a client didn't get, because it went away.
pub struct Undelivered {
    queue: QueueNumber,
    /// Leases that aren't given back yet; the next one is the last.
    claims: Vec<(Box<[u8]>, Lease)>,
}

impl Undelivered {
    /// Whether they are leases of this queue, and not of another one that came to its key later.
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
