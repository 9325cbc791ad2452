//! Jobs on their way to a consumer that waits: handed out, and not yet replied.

use std::sync::{Arc, Weak};

use smallvec::{smallvec, SmallVec};

use super::place::{Database, Place};
use super::value::QueueValue;
use crate::queue::{Deliveries, Id, JobRecord, Lease, Mode, Queue, Time};

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
    /// See [`crate::queue::Delivery::missed`] and [`crate::queue::Delivery::stays`].
    pub(super) missed: u32,
    stays: bool,
}

impl PendingDelivery {
    /// Whether somebody has removed the job since it was handed out and finished by that: then there is nothing to be given
    /// back. The timer doesn't remove what is on its way.
    pub(super) fn was_removed(&self, queue: &Queue) -> bool {
        self.stays && Id::new(&self.id).is_some_and(|id| queue.get(id).is_none())
    }
}

impl PendingDeliveries {
    /// As long as the queue hasn't changed since they were handed out.
    pub(super) fn of(deliveries: &Deliveries, queue: &Queue) -> PendingDeliveries {
        let jobs = deliveries.iter().filter_map(|delivery| {
            let (id, body) = delivery.id_and_body(queue);
            let (id, body) = (id.bytes().into(), body.into());
            let record = delivery.before(queue)?;
            let (lease, attempt, occurrence) = (delivery.lease, delivery.attempt, delivery.occurrence());
            let (missed, stays) = (delivery.missed(), delivery.stays(queue));
            Some(PendingDelivery { id, body, lease, attempt, occurrence, record, missed, stays })
        });
        PendingDeliveries { jobs: jobs.collect() }
    }

    pub fn jobs(&self) -> &[PendingDelivery] {
        &self.jobs
    }
}

/// The queue that jobs are from, and the key at which it was seen last. It may leave that key before the jobs are given
/// back: they go back to it, not to whatever is at the key by then.
#[derive(Clone)]
pub struct Origin {
    pub place: Place,
    pub sight: Sight,
    life: Weak<()>,
}

/// What is known of where a queue is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// At its place.
    There,
    /// It has left its place, and nobody has met it since.
    Astray,
    /// Everything has been flushed. If that was for loading it again, the same queue will be at this place.
    Flushed,
}

impl Origin {
    pub fn new(place: Place, value: &QueueValue) -> Origin {
        Origin { place, sight: Sight::There, life: value.life() }
    }

    pub fn is(&self, value: &QueueValue) -> bool {
        value.is(&self.life)
    }

    /// Whether the queue still lives, wherever it is.
    pub fn is_alive(&self) -> bool {
        self.life.strong_count() > 0
    }

    /// It has been met at this place.
    pub fn found(&mut self, place: &Place) {
        self.place.clone_from(place);
        self.sight = Sight::There;
    }

    /// A database, or all of them, will be empty; false when the queue ends by that.
    pub fn outlives_flush(&mut self, database: Option<Database>) -> bool {
        match (self.sight, database) {
            (Sight::There, None) => {
                self.sight = Sight::Flushed;
                true
            }
            (Sight::Astray | Sight::Flushed, None) => false,
            (Sight::There, Some(database)) => self.place.0 != database,
            (Sight::Astray | Sight::Flushed, Some(_)) => true,
        }
    }

    /// Everything is about to be loaded again; false when the queue ends by that. Most servers have flushed everything by now.
    /// Valkey 9.1 does so when it has read the beginning of the file.
    pub fn outlives_loading(&mut self) -> bool {
        match self.sight {
            Sight::There | Sight::Flushed => {
                self.sight = Sight::Flushed;
                true
            }
            Sight::Astray => false,
        }
    }

    pub fn swap(&mut self, a: Database, b: Database) {
        let (database, _) = &mut self.place;
        *database = match *database {
            one if one == a => b,
            other if other == b => a,
            neither => neither,
        };
    }
}

/// The jobs for a consumer.
#[derive(Clone)]
pub struct Parcel {
    /// The key of the queue when the consumer was served.
    pub key: Box<[u8]>,
    pub pending: Arc<PendingDeliveries>,
    /// The queue, and copies that were made of it meanwhile: they are copies of a queue that has handed out.
    pub origins: SmallVec<[Origin; 1]>,
}

impl Parcel {
    pub fn new(place: Place, value: &QueueValue, pending: PendingDeliveries) -> Parcel {
        let key = place.1.clone();
        Parcel { key, pending: Arc::new(pending), origins: smallvec![Origin::new(place, value)] }
    }

    /// What is lost when nobody gets it, queue by queue.
    pub fn lost(self, mode: Mode) -> impl Iterator<Item = Lost> {
        let pending = self.pending;
        let left = pending.jobs().len();
        self.origins.into_iter().map(move |origin| Lost { origin, pending: pending.clone(), left, mode })
    }
}

/// Jobs whose consumer went away before it got them, of one queue.
pub struct Lost {
    pub origin: Origin,
    pending: Arc<PendingDeliveries>,
    /// So many of them have not been given back yet, from the front.
    left: usize,
    pub mode: Mode,
}

impl Lost {
    pub fn last_lease(&self) -> Option<Lease> {
        let last = self.left.checked_sub(1)?;
        self.pending.jobs().get(last).map(|job| job.lease)
    }

    /// The same of a copy of its queue.
    pub fn of_copy(&self, origin: Origin) -> Lost {
        Lost { origin, pending: self.pending.clone(), ..*self }
    }

    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Those that are left.
    pub(super) fn jobs(&self) -> &[PendingDelivery] {
        self.pending.jobs().get(..self.left).unwrap_or_default()
    }

    /// The job that was handed out last, of those that are left.
    pub(super) fn take_last(&mut self) -> Option<&PendingDelivery> {
        self.left = self.left.checked_sub(1)?;
        self.pending.jobs().get(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::sums::Share;

    #[test]
    fn who_is_from_one_of_two_databases_is_from_the_other_one_when_they_are_swapped() {
        let value = QueueValue::new(Queue::new((1, 2)), Share::default());
        let swapped = [0, 1, 2].map(|database| {
            let mut origin = Origin::new((database, b"q"[..].into()), &value);
            origin.swap(0, 1);
            origin.place.0
        });
        assert_eq!(swapped, [1, 0, 2]);
    }

    #[test]
    fn a_queue_lives_as_long_as_its_value() {
        let value = QueueValue::new(Queue::new((1, 2)), Share::default());
        let origin = Origin::new((0, b"q"[..].into()), &value);
        assert!(origin.is_alive());
        drop(value);
        assert!(!origin.is_alive());
    }
}
