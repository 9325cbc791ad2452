//! What a job consists of: the words that the core and its callers share, and the 40 bytes in which a job
//! is kept.

use super::buckets::BucketNumber;
use super::policy::{Policy, PolicyNumber};
use super::slab::{Slot, NO_SLOT};
use super::time::Time;

/// Ids are 1 to so many bytes long.
pub const ID_BYTES_MAX: usize = 512;

/// A job's name in its queue: any bytes, 1 to [`ID_BYTES_MAX`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a [u8]);

impl<'a> Id<'a> {
    /// `None` when there are too few or too many bytes.
    pub fn new(bytes: &'a [u8]) -> Option<Id<'a>> {
        (1..=ID_BYTES_MAX).contains(&bytes.len()).then_some(Id(bytes))
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// The number of a lease: greater than all that the queue gave before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease(u64);

impl Lease {
    pub const fn new(number: u64) -> Lease {
        Lease(number)
    }

    /// Below 2^53, so that it is exact in every client.
    pub const MAX: Lease = Lease((1 << 53) - 1);

    pub const fn number(self) -> u64 {
        self.0
    }
}

/// By which right somebody speaks of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// `*`: of the job's latest delivery, whichever that is.
    Latest,
    Lease(Lease),
}

/// What a job is, seen at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
}

impl State {
    pub const ALL: [State; 4] = [State::Delayed, State::Ready, State::Reserved, State::Dead];

    pub const fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Dead => "dead",
        }
    }
}

/// What commands made of a job. The states follow from this, the stored time and the clock: nothing has
/// to be written when a job falls due or a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Delayed until its time, then ready.
    Waiting,
    /// Reserved until its time; then ready again, or dead when that was its last attempt.
    Leased,
}

/// A job's deliveries so far; only jobs that have been handed out have one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub lease: Lease,
    pub attempt: u32,
    pub stage: Stage,
}

/// Everything about a job but when it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobView<'a> {
    pub id: Id<'a>,
    pub body: &'a [u8],
    /// Due time; end of the lease while there is one; the moment of death for a dead job.
    pub time: Time,
    pub created: Time,
    pub policy: Policy,
    pub delivery: Option<Delivery>,
}

impl JobView<'_> {
    /// Its state at `now`.
    pub fn state(&self, now: Time) -> State {
        let stage = self.delivery.map_or(Stage::Waiting, |delivery| delivery.stage);
        match (stage, self.time <= now) {
            (Stage::Waiting, false) => State::Delayed,
            (Stage::Waiting, true) => State::Ready,
            (Stage::Leased, false) => State::Reserved,
            (Stage::Leased, true) if self.is_at_its_last_attempt() => State::Dead,
            (Stage::Leased, true) => State::Ready,
        }
    }

    pub fn is_at_its_last_attempt(&self) -> bool {
        self.delivery.is_some_and(|delivery| self.policy.attempts.end_with(delivery.attempt))
    }
}

/// A job as it is kept. Its time stands in its bucket, next to those that it is compared with.
#[derive(Clone)]
pub(super) struct Job {
    /// The id, then the body.
    bytes: Box<[u8]>,
    stamp: Stamp,
    pub policy: PolicyNumber,
    pub bucket: BucketNumber,
    /// The next job in the index's chain.
    pub next: Slot,
    /// In the queue's deliveries; `NO_SLOT` for a job that was never handed out.
    pub delivery: Slot,
}

/// When the job was created (48 bits), how long its id is (10) and a bit of the id's hash (6): the latter
/// tells most strangers in a chain apart without touching their bytes.
#[derive(Clone, Copy)]
struct Stamp(u64);

const ID_LEN_SHIFT: u32 = 48;
const TAG_SHIFT: u32 = 58;

impl Stamp {
    fn new(created: Time, id_len: usize, hash: u64) -> Stamp {
        Stamp(created.unix_ms() | (id_len as u64) << ID_LEN_SHIFT | (hash >> TAG_SHIFT) << TAG_SHIFT)
    }

    fn created(self) -> Time {
        Time::new(self.0 & Time::MAX.unix_ms()).unwrap_or_default()
    }

    fn id_len(self) -> usize {
        (self.0 >> ID_LEN_SHIFT) as usize & (2 * ID_BYTES_MAX - 1)
    }

    fn has_tag_of(self, hash: u64) -> bool {
        self.0 >> TAG_SHIFT == hash >> TAG_SHIFT
    }
}

impl Job {
    pub fn new(id: Id, body: &[u8], created: Time, policy: PolicyNumber, hash: u64) -> Job {
        let mut bytes = Vec::with_capacity(id.bytes().len() + body.len());
        bytes.extend_from_slice(id.bytes());
        bytes.extend_from_slice(body);
        Job {
            bytes: bytes.into_boxed_slice(),
            stamp: Stamp::new(created, id.bytes().len(), hash),
            policy,
            bucket: 0,
            next: NO_SLOT,
            delivery: NO_SLOT,
        }
    }

    pub fn id_and_body(&self) -> (Id<'_>, &[u8]) {
        let (id, body) = self.bytes.split_at_checked(self.stamp.id_len()).unwrap_or_default();
        (Id(id), body)
    }

    pub fn created(&self) -> Time {
        self.stamp.created()
    }

    /// Whether the job is called `id`, whose hash is `hash`.
    pub fn is_called(&self, id: Id, hash: u64) -> bool {
        self.stamp.has_tag_of(hash) && self.id_and_body().0 == id
    }

    /// Bytes of id and body.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

const _: () = assert!(size_of::<Job>() == 40, "bytes per job are a feature");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_one_to_512_bytes() {
        assert_eq!(Id::new(b""), None);
        assert!(Id::new(&[0; 512]).is_some());
        assert_eq!(Id::new(&[0; 513]), None);
    }

    #[test]
    fn a_job_keeps_the_longest_id_and_the_latest_time() {
        let id = [255; ID_BYTES_MAX];
        let id = Id::new(&id).unwrap();
        let job = Job::new(id, b"body", Time::MAX, 7, u64::MAX);
        assert_eq!(job.id_and_body(), (id, &b"body"[..]));
        assert_eq!(job.created(), Time::MAX);
        assert!(job.is_called(id, u64::MAX));
        assert!(!job.is_called(id, 0));
        assert!(!job.is_called(Id::new(b"x").unwrap(), u64::MAX));
    }
}
