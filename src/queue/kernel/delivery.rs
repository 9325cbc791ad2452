//! What an operation delivers.

use crate::queue::memory::impossible::impossible;
use smallvec::SmallVec;

use super::job::Job;
use super::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Id, Lease};
use crate::queue::value::time::Time;

/// No further job is delivered once so many bytes of bodies are together. Part of what is logged:
/// it must stay as it is.
pub const POP_BYTES_MAX: usize = 16 << 20;

/// What becomes of jobs that are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Each job is leased until the consumer finishes it.
    Lease,
    /// Each job is finished by being delivered.
    NoAck,
}

/// Jobs delivered together, in their order.
#[derive(Default)]
pub struct Deliveries {
    pub(in crate::queue) jobs: SmallVec<[Delivery; 1]>,
    /// Of all bodies.
    bytes: usize,
    pub(in crate::queue) lack_places: bool,
    pub(in crate::queue) passed_over: usize,
    pub(in crate::queue) has_ended_early: bool,
    pub(in crate::queue) has_noticed_set_back: bool,
}

/// A job delivered.
pub struct Delivery {
    pub(in crate::queue) slot: Slot,
    pub attempt: u32,
    pub lease: Lease,
    /// When the lease runs out.
    pub end: Time,
    /// Since when the job was ready.
    pub due: Time,
    pub(in crate::queue) occurrence: Time,
    /// A job that was finished by being delivered and isn't kept; or that comes back, perhaps more
    /// than once in the same pop.
    pub(in crate::queue) gone: Option<Job>,
}

impl Deliveries {
    pub(in crate::queue) fn have_done_anything(&self) -> bool {
        !self.is_empty() || self.passed_over > 0
    }

    /// Where it comes to nothing, a pop that finds that the clock was set back makes a change of
    /// that, which counts for groups: they don't wait for the clock as it was.
    #[inline]
    pub(in crate::queue) fn or_set_back(mut self, queue: &mut Queue) -> Deliveries {
        self.has_noticed_set_back = !self.have_done_anything() && queue.notices_set_back();
        self
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    /// Whether one more may join them, where so many may.
    pub(in crate::queue) fn have_room(&self, at_most: usize) -> bool {
        self.len() < at_most && self.bytes < POP_BYTES_MAX
    }

    #[inline]
    pub(in crate::queue) fn add(&mut self, delivery: Delivery, body_bytes: u32) {
        self.bytes += body_bytes as usize;
        self.jobs.push(delivery);
    }

    /// Whether CONCURRENCY held back a ready job that was wanted.
    pub fn lack_places(&self) -> bool {
        self.lack_places
    }

    /// How many occurrences of schedules nobody took in time, so that it went on behind them.
    pub fn passed_over(&self) -> usize {
        self.passed_over
    }

    /// Whether there was more to do than one pop does: though it has delivered less than was
    /// wanted, or nothing, there may be more that is ready.
    pub fn have_ended_early(&self) -> bool {
        self.has_ended_early
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Delivery> + ExactSizeIterator {
        self.jobs.iter()
    }
}

impl Delivery {
    /// As long as the queue hasn't changed since.
    pub fn id_and_body<'a>(&'a self, queue: &'a Queue) -> (Id<'a>, &'a [u8]) {
        match self.gone.as_ref().or_else(|| queue.store.get(self.slot)) {
            Some(job) => job.id_and_body(),
            None => {
                impossible("a job that was delivered is there, or on its way");
                (Id::NONE, &[])
            }
        }
    }

    /// The time by which this run is called: of a job that comes back, its occurrence, for each
    /// attempt the same; otherwise when it was due.
    pub fn occurrence(&self) -> Time {
        self.occurrence
    }
}
