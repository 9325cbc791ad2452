//! The details of a job: its deliveries, its lease, when it expires, a worker's reason, its tally,
//! its schedule. A job has them once it was delivered, released, buried, or finished and kept, or
//! if it has a TTL, LATE or a schedule. Most jobs have none.

use super::pool::Pool;
use crate::queue::lines::buckets::{BucketListener, BucketNumber};
use crate::queue::lines::lanes::{MainLine, SideLine};
use crate::queue::lines::placement::Placement;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::ids::Lease;
use crate::queue::value::policy::{Policy, PolicyNumber};
use crate::queue::value::recurrence::RunState;
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

#[derive(Clone)]
pub struct Details {
    /// As [`JobView::time`](super::job::JobView::time). Some lines keep the job at another time.
    pub time: Time,
    mark: Mark,
    /// [`NEVER`] for a job that doesn't expire.
    expires_at: u64,
    /// Boxed, to save 8 bytes per job without it.
    extras: Option<Box<RareDetails>>,
    attempt: u32,
    pub policy: PolicyNumber,
    expiry_bucket: BucketNumber,
    lease_bucket: BucketNumber,
}

/// Details that few jobs have.
#[derive(Clone, Default)]
pub struct RareDetails {
    reason: Option<Box<[u8]>>,
    tally: Tally,
    recurring: Option<Box<JobSchedule>>,
}

/// The schedule of a job that comes back.
#[derive(Clone)]
pub struct JobSchedule {
    pub rule: RuleNumber,
    pub run_state: RunState,
}

/// The number of a shared [`Recurrence`](crate::queue::value::recurrence::Recurrence).
pub type RuleNumber = Slot;

const _: () = assert!(size_of::<RareDetails>() <= 32, "bytes per job are a feature");
const _: () = assert!(size_of::<JobSchedule>() <= 48, "bytes per job are a feature");

impl RareDetails {
    /// `None` if the job has none of these.
    pub fn of(
        reason: Option<&[u8]>,
        tally: Tally,
        recurring: Option<JobSchedule>,
    ) -> Option<Box<RareDetails>> {
        let extras = RareDetails {
            reason: reason.map(Box::from),
            tally,
            recurring: recurring.map(Box::new),
        };
        (!extras.is_none()).then(|| Box::new(extras))
    }

    fn is_none(&self) -> bool {
        self.reason.is_none() && self.tally == Tally::default() && self.recurring.is_none()
    }

    /// Replaces the reason, or removes it.
    pub fn with_reason(
        extras: Option<Box<RareDetails>>,
        reason: Option<&[u8]>,
    ) -> Option<Box<RareDetails>> {
        if extras.is_none() && reason.is_none() {
            return None;
        }
        let mut extras = extras.unwrap_or_default();
        extras.reason = reason.map(Box::from);
        (!extras.is_none()).then_some(extras)
    }

    /// Replaces the tally.
    pub fn with_tally(extras: Option<Box<RareDetails>>, tally: Tally) -> Option<Box<RareDetails>> {
        if extras.is_none() && tally == Tally::default() {
            return None;
        }
        let mut extras = extras.unwrap_or_default();
        extras.tally = tally;
        (!extras.is_none()).then_some(extras)
    }

    pub fn reason(&self) -> Option<&[u8]> {
        self.reason.as_deref()
    }

    pub fn tally(&self) -> Tally {
        self.tally
    }

    pub fn schedule(&self) -> Option<&JobSchedule> {
        self.recurring.as_deref()
    }

    /// Bytes of this value and of what it points to.
    fn size(&self) -> usize {
        let schedule = self.schedule().map_or(0, |_| size_of::<JobSchedule>());
        size_of::<RareDetails>() + schedule + self.reason().map_or(0, <[u8]>::len)
    }
}

/// Later than any [`Time`].
const NEVER: u64 = u64::MAX;

/// The lease's number; in the bits above it the stage, and which lines hold the job.
#[derive(Clone, Copy)]
struct Mark(u64);

const STAGE_SHIFT: u32 = 61;
const DYING_BIT: u64 = 1 << 60;
const EXPIRING_BIT: u64 = 1 << 59;
const IN_LEASE_LINE_BIT: u64 = 1 << 58;

impl Mark {
    fn new(lease: Option<Lease>, stage: Stage) -> Mark {
        Mark(lease.unwrap_or_default().number() | u64::from(stage.number()) << STAGE_SHIFT)
    }

    fn stage(self) -> Stage {
        Stage::of((self.0 >> STAGE_SHIFT) as u8).unwrap_or_default()
    }

    fn set_placement(&mut self, placement: &Placement) {
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        self.0 |= bit(placement.main_line == MainLine::Dying, DYING_BIT)
            | bit(placement.expiry.is_some(), EXPIRING_BIT)
            | bit(placement.lease_end.is_some(), IN_LEASE_LINE_BIT);
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
        extras: Option<Box<RareDetails>>,
    ) -> Details {
        Details {
            time,
            mark: Mark::new(progress.lease, progress.stage),
            expires_at: progress.expires_at.map_or(NEVER, Time::unix_ms),
            extras,
            attempt: progress.attempt,
            policy,
            expiry_bucket: 0,
            lease_bucket: 0,
        }
    }

    /// Stores which lines hold the job.
    pub fn set_placement(&mut self, placement: &Placement) {
        self.mark.set_placement(placement);
    }

    /// The job's main line.
    pub fn main_line(&self, policy: &Policy) -> MainLine {
        MainLine::of(self.mark.stage(), self.mark.0 & DYING_BIT != 0, policy)
    }

    /// Whether there is nothing to it but a lease: the job is in its lane and in no other line.
    pub fn are_plain_lease(&self) -> bool {
        let stage = u64::from(Stage::Leased.number()) << STAGE_SHIFT;
        self.mark.0 & !Lease::MAX.number() == stage && self.extras.is_none()
    }

    /// Its bucket in the line of jobs that expire, if it is in that line.
    pub fn expiry_bucket(&self) -> Option<BucketNumber> {
        (self.mark.0 & EXPIRING_BIT != 0).then_some(self.expiry_bucket)
    }

    /// Its bucket in the line of leases, if it is in that line.
    pub fn lease_bucket(&self) -> Option<BucketNumber> {
        (self.mark.0 & IN_LEASE_LINE_BIT != 0).then_some(self.lease_bucket)
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
        self.extras.as_ref()?.reason()
    }

    pub fn tally(&self) -> Tally {
        self.extras.as_ref().map_or(Tally::default(), |extras| extras.tally())
    }

    /// Whether the job was leased and the lease has run out by `now`.
    pub fn has_timed_out(&self, now: Time) -> bool {
        self.mark.stage() == Stage::Leased
            && self.time.unix_ms().min(self.expires_at) <= now.unix_ms()
    }

    pub fn schedule(&self) -> Option<&JobSchedule> {
        self.extras.as_ref()?.schedule()
    }

    pub fn set_run_state(&mut self, run_state: RunState) {
        if let Some(schedule) = self.extras.as_mut().and_then(|extras| extras.recurring.as_mut()) {
            schedule.run_state = run_state;
        }
    }

    /// The last attempt at an occurrence has timed out, and the job is delivered for the next one:
    /// the attempts are counted from 0 again.
    pub fn begin_anew(&mut self, reason: &[u8]) {
        self.attempt = 0;
        self.extras = RareDetails::with_reason(self.extras.take(), Some(reason));
    }

    pub fn defrag(&mut self, defragmenter: &mut impl Defragmenter) {
        let Some(extras) = &mut self.extras else {
            return;
        };
        defragmenter.boxed(extras);
        if let Some(reason) = &mut extras.reason {
            defragmenter.bytes(reason);
        }
        if let Some(recurring) = &mut extras.recurring {
            defragmenter.boxed(recurring);
        }
    }

    pub fn into_extras(self) -> Option<Box<RareDetails>> {
        self.extras
    }

    /// Bytes outside this struct.
    pub fn size(&self) -> usize {
        self.extras.as_ref().map_or(0, |extras| extras.size())
    }
}

const _: () = assert!(size_of::<Details>() <= 48, "bytes per job are a feature");

/// Stores the bucket numbers of a side line.
pub struct Residents<'q> {
    pub line: SideLine,
    pub pool: &'q Pool,
    pub details: &'q mut Slab<Details>,
}

impl BucketListener for Residents<'_> {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let number = self.pool.get(slot).and_then(|job| job.details());
        if let Some(details) = number.and_then(|number| self.details.get_mut(number)) {
            match self.line {
                SideLine::Expiring | SideLine::HeldExpiring => details.expiry_bucket = bucket,
                SideLine::Leases => details.lease_bucket = bucket,
            }
        }
    }
}
