//! What a job carries that was handed out, released, buried, finished and kept, or that has a TTL. Most
//! jobs have none of that, and no trail.

use super::buckets::{BucketNumber, Residents};
use super::entry::Hold;
use super::job::{Lease, Progress, Stage};
use super::policy::Policy;
use super::pool::Pool;
use super::schedule::Home;
use super::slab::{Slab, Slot, NO_SLOT};
use super::time::Time;

#[derive(Clone)]
pub struct Trail {
    /// As in [`super::JobView`]; a job's place in its line may be at another time.
    pub time: Time,
    lease: Lease,
    /// `Time::MAX` with `is_mortal` unset is for ever.
    dies: Time,
    /// Two steps away, for eight bytes less in all the others.
    reason: Option<Box<Box<[u8]>>>,
    attempt: u32,
    life_bucket: BucketNumber,
    lease_bucket: BucketNumber,
    stage: Stage,
    is_mortal: bool,
    /// Its life was over, and it has been carried from its lane to the graves.
    pub is_buried: bool,
}

impl Trail {
    pub fn new(time: Time, progress: Progress, reason: Option<&[u8]>) -> Trail {
        Trail {
            time,
            lease: progress.lease.unwrap_or_default(),
            dies: progress.dies.unwrap_or(Time::MAX),
            reason: reason.map(|reason| Box::new(reason.into())),
            attempt: progress.attempt,
            life_bucket: 0,
            lease_bucket: 0,
            stage: progress.stage,
            is_mortal: progress.dies.is_some(),
            is_buried: false,
        }
    }

    pub fn progress(&self) -> Progress {
        Progress {
            stage: self.stage,
            attempt: self.attempt,
            lease: (self.lease > Lease::default()).then_some(self.lease),
            dies: self.is_mortal.then_some(self.dies),
        }
    }

    pub fn reason(&self) -> Option<&[u8]> {
        self.reason.as_ref().map(|reason| &reason[..])
    }

    /// Bytes that it owns elsewhere.
    pub fn size(&self) -> usize {
        self.reason.as_ref().map_or(0, |reason| size_of::<Box<[u8]>>() + reason.len())
    }

    pub fn life_bucket(&self) -> BucketNumber {
        self.life_bucket
    }

    pub fn lease_bucket(&self) -> BucketNumber {
        self.lease_bucket
    }
}

const _: () = assert!(size_of::<Trail>() <= 48, "bytes per job are a feature");

/// Where a job stands, in which lines and at which times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub home: Home,
    pub time: Time,
    pub hold: Hold,
    /// In the line of lives: the end of its life.
    pub life: Option<Time>,
    /// In the line of leases: the end of its lease.
    pub lease: Option<Time>,
}

impl Standing {
    /// Of a job with this policy and progress, whose time is `time`.
    pub fn of(policy: &Policy, time: Time, progress: &Progress, is_buried: bool) -> Standing {
        let alone = |home, time, hold| Standing { home, time, hold, life: None, lease: None };
        let (end, due, is_last) = match progress.stage {
            Stage::Dead => return alone(Home::Graves, time, Hold::Waiting),
            Stage::Done => return alone(Home::Kept, time, Hold::Waiting),
            _ if is_buried => return alone(Home::Graves, progress.dies.unwrap_or(time), Hold::Waiting),
            Stage::Waiting => (None, time, false),
            Stage::Leased => {
                let wait = policy.backoff.after(progress.attempt, progress.lease.unwrap_or_default());
                (Some(time), time.saturating_add(wait), policy.attempts.end_with(progress.attempt))
            }
        };
        let death = match (is_last, progress.dies) {
            (true, dies) => Some(dies.map_or(time, |dies| dies.min(time))),
            (false, Some(dies)) if dies <= due => Some(dies),
            (false, _) => None,
        };
        let until = death.unwrap_or(due);
        let hold = match end {
            None => Hold::Waiting,
            Some(end) if end < until => Hold::LeasedAtFirst,
            Some(_) => Hold::Leased,
        };
        Standing {
            home: if death.is_some() { Home::Deaths } else { Home::Lane(policy.priority) },
            time: until,
            hold,
            life: if death.is_some() { None } else { progress.dies },
            lease: end.filter(|_| hold == Hold::LeasedAtFirst),
        }
    }
}

/// Jobs as residents of the line of lives.
pub struct Lives<'q>(pub &'q Pool, pub &'q mut Slab<Trail>);

impl Residents for Lives<'_> {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let trail = self.0.get(slot).map_or(NO_SLOT, |job| job.trail);
        if let Some(trail) = self.1.get_mut(trail) {
            trail.life_bucket = bucket;
        }
    }
}

/// Jobs as residents of the line of leases.
pub struct Leases<'q>(pub &'q Pool, pub &'q mut Slab<Trail>);

impl Residents for Leases<'_> {
    fn moved_to(&mut self, slot: Slot, bucket: BucketNumber) {
        let trail = self.0.get(slot).map_or(NO_SLOT, |job| job.trail);
        if let Some(trail) = self.1.get_mut(trail) {
            trail.lease_bucket = bucket;
        }
    }
}
