//! The names of jobs and of deliveries.

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use super::record::read_where_possible;
use super::time::Time;

/// An id has 1 to this many bytes.
pub const ID_BYTES_MAX: usize = 512;

/// A job's name in its queue: any bytes, 1 to [`ID_BYTES_MAX`] of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id<'a>(&'a [u8]);

impl<'a> Id<'a> {
    /// No job has this id.
    pub(in crate::queue) const NONE: Id<'static> = Id(&[]);

    /// `None` if there are no bytes, or too many.
    pub fn new(bytes: &'a [u8]) -> Option<Id<'a>> {
        (1..=ID_BYTES_MAX).contains(&bytes.len()).then_some(Id(bytes))
    }

    /// The id of a stored job, whose length was checked when it was added.
    pub(in crate::queue) fn of(bytes: &'a [u8]) -> Id<'a> {
        Id(bytes)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }
}

/// Ids that a command names; most often one.
pub type Ids<'a> = SmallVec<[Id<'a>; 2]>;

/// Copies of ids, to be used on their queue while it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IdList(Vec<Box<[u8]>>);

impl IdList {
    pub(in crate::queue) fn of<'a>(ids: impl Iterator<Item = Id<'a>>) -> IdList {
        IdList(ids.map(|id| id.bytes().into()).collect())
    }

    pub fn ids(&self) -> Ids<'_> {
        self.0.iter().map(|name| Id(name)).collect()
    }

    pub fn bytes(&self) -> Vec<&[u8]> {
        self.0.iter().map(|name| &name[..]).collect()
    }
}

/// Each millisecond begins 2^11 lease numbers: see [`Lease`].
pub(in crate::queue) const LEASES_PER_MILLISECOND_BITS: u32 = 11;

/// The number of a lease, greater than all that the queue gave before. The numbers given in a
/// millisecond begin at `unix-ms × 2048`. They stay below 2^53, where every client's numbers are
/// exact, until the year 2109.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(try_from = "u64")]
pub struct Lease(u64);

// A number that no queue can get to by itself would leave it without a next one.
read_where_possible!(Lease, u64, |number| (number < Lease::MAX.0).then_some(Lease(number)));

impl Lease {
    pub const fn new(number: u64) -> Lease {
        Lease(number)
    }

    /// The lowest lease that a pop at `time` would give.
    pub fn first_at(time: Time) -> Lease {
        // The last one of all is never given, and no record has it.
        Lease((time.unix_ms() << LEASES_PER_MILLISECOND_BITS).min(Lease::MAX.0 - 1))
    }

    /// Below 2^53, so that it is exact in every client.
    pub const MAX: Lease = Lease((1 << 53) - 1);

    pub const fn number(self) -> u64 {
        self.0
    }
}

/// By which right somebody speaks of a delivery of a job: that of its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim<'a> {
    pub id: Id<'a>,
    /// `None`: that of the job's latest delivery, whichever it is.
    pub lease: Option<Lease>,
}

/// Most often one.
pub type Claims<'a> = SmallVec<[Claim<'a>; 2]>;
