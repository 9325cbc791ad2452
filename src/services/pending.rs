//! Jobs on their way to a consumer that waits: handed out, and not yet replied.

use super::place::Place;
use crate::queue::{Deliveries, JobRecord, Lease, Mode, Queue, Time};

/// With bytes of their own: the queue may change before the consumer gets them.
#[derive(Debug, Default)]
pub struct PendingDeliveries {
    jobs: Vec<PendingDelivery>,
}

#[derive(Debug)]
pub struct PendingDelivery {
    pub id: Box<[u8]>,
    pub body: Box<[u8]>,
    pub lease: Lease,
    pub attempt: u32,
    pub occurrence: Time,
    /// As it was before.
    pub(super) record: JobRecord,
}

impl PendingDeliveries {
    /// As long as the queue hasn't changed since they were handed out.
    pub(super) fn of(deliveries: &Deliveries, queue: &Queue) -> PendingDeliveries {
        let jobs = deliveries.iter().filter_map(|delivery| {
            let (id, body) = delivery.id_and_body(queue);
            let (id, body) = (id.bytes().into(), body.into());
            let record = delivery.before(queue)?;
            let (lease, attempt, occurrence) = (delivery.lease, delivery.attempt, delivery.occurrence);
            Some(PendingDelivery { id, body, lease, attempt, occurrence, record })
        });
        PendingDeliveries { jobs: jobs.collect() }
    }

    pub fn jobs(&self) -> &[PendingDelivery] {
        &self.jobs
    }
}

/// Jobs whose consumer went away before it got them.
pub struct Lost {
    pub place: Place,
    pub pending: PendingDeliveries,
    pub mode: Mode,
}

impl Lost {
    pub fn last_lease(&self) -> Option<Lease> {
        self.pending.jobs().last().map(|job| job.lease)
    }
}
