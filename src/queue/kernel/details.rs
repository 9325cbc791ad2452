//! The details of a job that was handed out, released, buried, finished and kept, or that has a TTL
//! or may be late: its deliveries so far, its lease, when it expires, a worker's reason, its tally,
//! its schedule. Most jobs have none of that, and no details.

use super::pool::Pool;
use crate::queue::lines::buckets::{BucketNumber, Residents};
use crate::queue::lines::lanes::Home;
use crate::queue::lines::standing::Standing;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::ids::Lease;
use crate::queue::value::policy::{Policy, PolicyNumber};
use crate::queue::value::recurrence::Round;
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

#[derive(Clone)]
pub struct Details {
    /// As in [`super::JobView`]; a job's place in its line may be at another time.
    pub time: Time,
    mark: Mark,
    /// [`NEVER`] for a job that doesn't expire.
    expires_at: u64,
    /// Two steps away, for eight bytes less in all the others.
    rare: Option<Box<Rare>>,
    attempt: u32,
    pub policy: PolicyNumber,
    expiry_bucket: BucketNumber,
    lease_bucket: BucketNumber,
}

/// What few jobs have.
#[derive(Clone, Default)]
pub struct Rare {
    reason: Option<Box<[u8]>>,
    tally: Tally,
    recurring: Option<Box<Recurring>>,
}

/// The schedule of a job that comes back.
#[derive(Clone)]
pub struct Recurring {
    pub rule: RuleNumber,
    pub round: Round,
}

/// The number of a shared [`super::Recurrence`].
pub type RuleNumber = Slot;

const _: () = assert!(size_of::<Rare>() <= 32, "bytes per job are a feature");
const _: () = assert!(size_of::<Recurring>() <= 48, "bytes per job are a feature");

impl Rare {
    /// `None` where there is none of it.
    pub fn of(
        reason: Option<&[u8]>,
        tally: Tally,
        recurring: Option<Recurring>,
    ) -> Option<Box<Rare>> {
        let rare =
            Rare { reason: reason.map(Box::from), tally, recurring: recurring.map(Box::new) };
        (!rare.is_none()).then(|| Box::new(rare))
    }

    fn is_none(&self) -> bool {
        self.reason.is_none() && self.tally == Tally::default() && self.recurring.is_none()
    }

    /// The same with another reason, or with none.
    pub fn with_reason(rare: Option<Box<Rare>>, reason: Option<&[u8]>) -> Option<Box<Rare>> {
        if rare.is_none() && reason.is_none() {
            return None;
        }
        let mut rare = rare.unwrap_or_default();
        rare.reason = reason.map(Box::from);
        (!rare.is_none()).then_some(rare)
    }

    /// The same with another tally.
    pub fn with_tally(rare: Option<Box<Rare>>, tally: Tally) -> Option<Box<Rare>> {
        if rare.is_none() && tally == Tally::default() {
            return None;
        }
        let mut rare = rare.unwrap_or_default();
        rare.tally = tally;
        (!rare.is_none()).then_some(rare)
    }

    pub fn reason(&self) -> Option<&[u8]> {
        self.reason.as_deref()
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    pub fn schedule(&self) -> Option<&Recurring> {
        self.recurring.as_deref()
    }

    /// Bytes, with those that it owns elsewhere.
    fn size(&self) -> usize {
        let schedule = self.schedule().map_or(0, |_| size_of::<Recurring>());
        size_of::<Rare>() + schedule + self.reason().map_or(0, <[u8]>::len)
    }
}

/// Later than any [`Time`].
const NEVER: u64 = u64::MAX;

/// The number of the lease; above it the stage, and in which lines the job stands.
#[derive(Clone, Copy)]
struct Mark(u64);

const STAGE_SHIFT: u32 = 62;
const DYING_BIT: u64 = 1 << 61;
const EXPIRING_BIT: u64 = 1 << 60;
const LEASED_AT_FIRST_BIT: u64 = 1 << 59;

impl Mark {
    fn new(lease: Option<Lease>, stage: Stage) -> Mark {
        let bits = match stage {
            Stage::Waiting => 0,
            Stage::Leased => 1,
            Stage::Dead => 2,
            Stage::Done => 3,
        };
        Mark(lease.unwrap_or_default().number() | bits << STAGE_SHIFT)
    }

    fn stage(self) -> Stage {
        match self.0 >> STAGE_SHIFT {
            0 => Stage::Waiting,
            1 => Stage::Leased,
            2 => Stage::Dead,
            _ => Stage::Done,
        }
    }

    fn stand(&mut self, standing: &Standing) {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        self.0 |= bit(standing.home == Home::Dying, DYING_BIT)
            | bit(standing.expiry.is_some(), EXPIRING_BIT)
            | bit(standing.lease_end.is_some(), LEASED_AT_FIRST_BIT);
    }

    fn lease(self) -> Option<Lease> {
        let number = self.0 & Lease::MAX.number();
        (number > 0).then(|| Lease::new(number))
    }
}

impl Details {
    pub fn new(
        policy: PolicyNumber,
        time: Time,
        progress: &Progress,
        rare: Option<Box<Rare>>,
    ) -> Details {
        Details {
            time,
            mark: Mark::new(progress.lease, progress.stage),
            expires_at: progress.expires_at.map_or(NEVER, Time::unix_ms),
            rare,
            attempt: progress.attempt,
            policy,
            expiry_bucket: 0,
            lease_bucket: 0,
        }
    }

    /// Remembers in which lines the job stands.
    pub fn stand(&mut self, standing: &Standing) {
        self.mark.stand(standing);
    }

    /// The line in which it waits.
    pub fn home(&self, policy: &Policy) -> Home {
        match self.mark.stage() {
            Stage::Dead => Home::Dead,
            Stage::Done => Home::Done,
            Stage::Waiting | Stage::Leased if self.mark.0 & DYING_BIT != 0 => Home::Dying,
            Stage::Waiting | Stage::Leased => Home::Lane(policy.priority),
        }
    }

    /// Its bucket in the line of those that expire, if it stands there.
    pub fn expiry_bucket(&self) -> Option<BucketNumber> {
        (self.mark.0 & EXPIRING_BIT != 0).then_some(self.expiry_bucket)
    }

    /// Its bucket in the line of leases, if it stands there.
    pub fn lease_bucket(&self) -> Option<BucketNumber> {
        (self.mark.0 & LEASED_AT_FIRST_BIT != 0).then_some(self.lease_bucket)
    }

    pub fn progress(&self) -> Progress {
        Progress {
            stage: self.mark.stage(),
            attempt: self.attempt,
            lease: self.mark.lease(),
            expires_at: Time::new(self.expires_at),
        }
    }

    pub fn reason(&self) -> Option<&[u8]> {
        self.rare.as_ref()?.reason()
    }

    pub fn tally(&self) -> Tally {
        self.rare.as_ref().map_or(Tally::default(), |rare| rare.tally())
    }

    /// Whether it was leased, and that lease has run out by `now`.
    pub fn has_timed_out(&self, now: Time) -> bool {
        self.mark.stage() == Stage::Leased
            && self.time.unix_ms().min(self.expires_at) <= now.unix_ms()
    }

    pub fn schedule(&self) -> Option<&Recurring> {
        self.rare.as_ref()?.schedule()
    }

    pub fn set_round(&mut self, round: Round) {
        if let Some(schedule) = self.rare.as_mut().and_then(|rare| rare.recurring.as_mut()) {
            schedule.round = round;
        }
    }

    /// It is handed out anew, for another occurrence: the last attempt at the one before has timed
    /// out.
    pub fn begin_anew(&mut self, reason: &[u8]) {
        self.attempt = 0;
        self.rare = Rare::with_reason(self.rare.take(), Some(reason));
    }

    pub fn defrag(&mut self, defragmenter: &mut impl Defragmenter) {
        let Some(rare) = &mut self.rare else {
            return;
        };
        defragmenter.boxed(rare);
        if let Some(reason) = &mut rare.reason {
            defragmenter.bytes(reason);
        }
        if let Some(recurring) = &mut rare.recurring {
            defragmenter.boxed(recurring);
        }
    }

    pub fn into_rare(self) -> Option<Box<Rare>> {
        self.rare
    }

    /// Bytes that it owns elsewhere.
    pub fn size(&self) -> usize {
        self.rare.as_ref().map_or(0, |rare| rare.size())
    }
}

const _: () = assert!(size_of::<Details>() <= 48, "bytes per job are a feature");

/// Jobs as residents of the line of those that expire.
pub struct Expiring<'q>(pub &'q Pool, pub &'q mut Slab<Details>);

impl Residents for Expiring<'_> {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let number = self.0.get(slot).and_then(|job| job.details());
        if let Some(details) = number.and_then(|number| self.1.get_mut(number)) {
            details.expiry_bucket = bucket;
        }
    }
}

/// Jobs as residents of the line of leases.
pub struct Leased<'q>(pub &'q Pool, pub &'q mut Slab<Details>);

impl Residents for Leased<'_> {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let number = self.0.get(slot).and_then(|job| job.details());
        if let Some(details) = number.and_then(|number| self.1.get_mut(number)) {
            details.lease_bucket = bucket;
        }
    }
}
