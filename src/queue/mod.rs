//! The queue as a state machine over explicit time: no server, no clock, no randomness, no globals.
//!
//! ```
//! use dq::queue::*;
//!
//! let at = |ms| Time::new(ms).unwrap();
//! let ms = |ms| Millis::new(ms).unwrap();
//! let mut queue = Queue::new((0, 0));
//! let policy = Policy::plain(ms(200));
//! let job = NewJob { id: Id::new(b"a").unwrap(), body: b"hello", due: Due::In(ms(500)), policy, naming: Naming::Given };
//!
//! assert!(matches!(queue.add(at(0), &job, IfTaken::Refuse), Added::New(_)));
//! assert_eq!(queue.pop(at(499), None, Lease::new(1)), None);
//! let handout = queue.pop(at(500), None, Lease::new(1)).unwrap();
//! assert_eq!(queue.finish(at(501), job.id, Claim::Lease(handout.lease)), Finished::Gone);
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `mod.rs` | what a queue consists of, and how a job comes to where it stands |
//! | `produce.rs`, `consume.rs`, `manage.rs`, `look.rs` | the operations, as the commands call them |
//! | `replay.rs` | the same from the outside: effects of a primary, records of a file |
//! | `record.rs`, `job_record.rs`, `queue_record.rs` | what is in files and in the replication stream |
//! | `job.rs`, `policy.rs`, `trail.rs` | what a job consists of, and how it is kept |
//! | `pool.rs`, `index.rs`, `slab.rs` | the job pool: by id, by slot |
//! | `schedule.rs`, `buckets.rs`, `entry.rs` | the lines of sorted buckets: by priority and time |
//! | `settings.rs` | what an operator sets for a queue |
//! | `time.rs` | points and lengths of time |

mod buckets;
mod consume;
mod entry;
mod index;
mod job;
mod job_record;
mod look;
mod manage;
mod policy;
mod pool;
mod produce;
mod queue_record;
mod record;
mod replay;
mod schedule;
mod settings;
mod slab;
mod time;
mod trail;

use buckets::Rank;
use pool::Pool;
use queue_record::count;
use schedule::{Aside, Home, Schedule};
use slab::{Slab, NO_SLOT};
use trail::{Leases, Lives, Standing, Trail};

pub use consume::{Finished, Handout};
pub use job::{Claim, Id, JobView, Lease, Progress, Stage, State, ID_BYTES_MAX};
pub use job_record::{Cause, DropRecord, JobRecord, LeaseRecord, Leave, MoveRecord};
pub use look::Scanned;
pub use policy::{Attempts, Backoff, Policy};
pub use produce::{Added, Due, IfTaken, Naming, NewJob};
pub use queue_record::{QueueRecord, Totals};
pub use record::{Record, RecordError};
pub use schedule::Counts;
pub use settings::Settings;
pub use slab::Slot;
pub use time::{Millis, Time};

/// A delay queue.
#[derive(Clone)]
pub struct Queue {
    pool: Pool,
    policies: policy::Policies,
    trails: Slab<Trail>,
    /// Bytes that trails own elsewhere.
    trail_bytes: usize,
    schedule: Schedule,
    last_lease: Lease,
    last_serial: produce::Serial,
    settings: Settings,
    /// Until then nothing is handed out.
    paused_until: Time,
    totals: Totals,
    /// Up to here, what time did is in the totals.
    counted: Time,
    news: News,
}

/// What has become of jobs that somebody may want to hear of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub is_any_ready: bool,
    pub is_any_dead: bool,
}

impl Queue {
    /// An empty queue. The seed keys the hash of the ids; it shows in nothing that a queue says or does.
    pub fn new(seed: (u64, u64)) -> Queue {
        Queue {
            pool: Pool::new(seed),
            policies: policy::Policies::new(seed),
            trails: Slab::default(),
            trail_bytes: 0,
            schedule: Schedule::default(),
            last_lease: Lease::default(),
            last_serial: produce::Serial::default(),
            settings: Settings::default(),
            paused_until: Time::ZERO,
            totals: Totals::default(),
            counted: Time::ZERO,
            news: News::default(),
        }
    }

    /// Lets time pass up to `now`: what is due is ready, what has run out is ready again or dead. Time
    /// never runs backwards here; the result is the time that it is for this queue.
    pub fn advance(&mut self, now: Time) -> Time {
        let passed = self.schedule.advance(now, self.counted);
        count(&mut self.totals.timed_out, passed.timed_out);
        count(&mut self.totals.died, passed.died);
        self.news.is_any_ready |= passed.became_ready > 0;
        self.news.is_any_dead |= passed.died > 0;
        self.schedule.now()
    }

    /// What has happened since this was asked last.
    pub fn take_news(&mut self) -> News {
        std::mem::take(&mut self.news)
    }

    /// Puts a job as it is seen, instead of the one that has its id; false when there is no slot left.
    fn put_job(&mut self, job: &JobView, naming: Naming, replaced: Option<Slot>) -> bool {
        let is_gone = replaced.is_some_and(|slot| self.was_kept_until(slot, job.created));
        if let Some(slot) = replaced {
            self.remove(slot);
        }
        let Some(policy) = self.policies.take(&job.policy) else {
            return false;
        };
        let Some(slot) = self.pool.insert(job.id, job.body, job.created, policy) else {
            self.policies.give_back(policy);
            return false;
        };
        self.last_lease = self.last_lease.max(job.progress.lease.unwrap_or_default());
        if naming == Naming::ByQueue {
            self.last_serial = self.last_serial.max(produce::Serial::of(job.id).unwrap_or_default());
        }
        self.place(slot, job.time, &job.progress, job.reason, Rank::Last);
        match replaced {
            Some(_) if !is_gone => count(&mut self.totals.replaced, 1),
            None | Some(_) => count(&mut self.totals.added, 1),
        }
        count(&mut self.totals.purged, usize::from(is_gone));
        true
    }

    /// Whether this is a finished job that had been kept long enough by `now`: its id is free.
    fn was_kept_until(&self, slot: Slot, now: Time) -> bool {
        let trail = self.pool.get(slot).and_then(|job| self.trails.get(job.trail));
        trail.is_some_and(|trail| trail.progress().stage == Stage::Done && trail.time <= now)
    }

    /// Gives a job another progress and time, and with them another place; without a reason it keeps the
    /// one it had. All that a command, or the effect of one, does to a job that stays goes through here.
    fn shift(&mut self, slot: Slot, cause: Cause, time: Time, progress: &Progress, reason: Option<&[u8]>) {
        let dies = progress.stage == Stage::Dead && !self.is_dead(slot);
        let before = self.unplace(slot);
        let reason = reason.or(before.as_ref().and_then(Trail::reason));
        self.last_lease = self.last_lease.max(progress.lease.unwrap_or_default());
        let rank = if cause == Cause::Returned { Rank::First } else { Rank::Last };
        self.place(slot, time, progress, reason, rank);
        match cause {
            Cause::Popped => count(&mut self.totals.popped, 1),
            Cause::Released => count(&mut self.totals.released, 1),
            Cause::Buried => count(&mut self.totals.buried, 1),
            Cause::Finished => count(&mut self.totals.finished, 1),
            Cause::Kicked => count(&mut self.totals.kicked, 1),
            Cause::Returned => self.totals.popped = self.totals.popped.saturating_sub(1),
            Cause::Touched => (),
        }
        count(&mut self.totals.died, usize::from(dies));
    }

    fn remove(&mut self, slot: Slot) {
        self.unplace(slot);
        if let Some(job) = self.pool.remove(slot) {
            self.policies.give_back(job.policy);
        }
    }

    /// Puts a job into the lines in which it stands from here on. It has no trail.
    fn place(&mut self, slot: Slot, time: Time, progress: &Progress, reason: Option<&[u8]>, rank: Rank) {
        let Some(job) = self.pool.get_mut(slot) else {
            return;
        };
        let Some(policy) = self.policies.get(job.policy) else {
            return;
        };
        if *progress != Progress::default() || reason.is_some() {
            let trail = Trail::new(time, *progress, reason);
            self.trail_bytes += trail.size();
            job.trail = self.trails.insert(trail).unwrap_or(NO_SLOT);
        }
        let standing = Standing::of(&policy, time, progress, false);
        self.news.is_any_ready |=
            matches!(standing.home, Home::Lane(_)) && standing.time <= self.schedule.now();
        self.news.is_any_dead |= standing.home == Home::Graves;
        self.schedule.insert(standing.home, standing.time, slot, standing.hold, rank, &mut self.pool);
        if let Some(time) = standing.life {
            let lives = &mut Lives(&self.pool, &mut self.trails);
            self.schedule.insert_aside(Aside::Lives, time, slot, lives);
        }
        if let Some(time) = standing.lease {
            let leases = &mut Leases(&self.pool, &mut self.trails);
            self.schedule.insert_aside(Aside::Leases, time, slot, leases);
        }
    }

    /// Takes a job out of the lines in which it stands, and from it its trail.
    fn unplace(&mut self, slot: Slot) -> Option<Trail> {
        self.leave_lines(slot);
        let number = std::mem::replace(&mut self.pool.get_mut(slot)?.trail, NO_SLOT);
        let trail = self.trails.remove(number)?;
        self.trail_bytes -= trail.size();
        Some(trail)
    }

    fn leave_lines(&mut self, slot: Slot) {
        let (Some(standing), Some(job)) = (self.standing(slot), self.pool.get(slot)) else {
            return;
        };
        let trail = self.trails.get(job.trail);
        let (life_bucket, lease_bucket) =
            trail.map(|trail| (trail.life_bucket(), trail.lease_bucket())).unwrap_or_default();
        self.schedule.remove(standing.home, slot, job.bucket, &mut self.pool);
        if standing.life.is_some() {
            let lives = &mut Lives(&self.pool, &mut self.trails);
            self.schedule.remove_aside(Aside::Lives, slot, life_bucket, lives);
        }
        if standing.lease.is_some() {
            let leases = &mut Leases(&self.pool, &mut self.trails);
            self.schedule.remove_aside(Aside::Leases, slot, lease_bucket, leases);
        }
    }

    /// Carries a job whose life is over from its lane to the graves. Nothing that one can see changes but
    /// that nobody has to step over it any more.
    fn bury_overdue(&mut self, slot: Slot) {
        let Some(life) = self.standing(slot).and_then(|standing| standing.life) else {
            return;
        };
        self.leave_lines(slot);
        let number = self.pool.get(slot).map_or(NO_SLOT, |job| job.trail);
        if let Some(trail) = self.trails.get_mut(number) {
            trail.is_buried = true;
        }
        self.schedule.insert(Home::Graves, life, slot, entry::Hold::Waiting, Rank::Last, &mut self.pool);
    }

    /// Buries up to so many jobs whose life is over; whether none is left. Each costs O(log n).
    pub fn bury_the_overdue(&mut self, at_most: usize) -> bool {
        for _ in 0..at_most {
            match self.schedule.overdue() {
                Some(slot) => self.bury_overdue(slot),
                None => return true,
            }
        }
        self.schedule.overdue().is_none()
    }

    /// Whether the job is dead by now; one without a trail isn't.
    fn is_dead(&self, slot: Slot) -> bool {
        let has_trail = self.pool.get(slot).is_some_and(|job| job.trail != NO_SLOT);
        has_trail && self.view(slot).is_some_and(|job| job.state(self.schedule.now()) == State::Dead)
    }

    fn standing(&self, slot: Slot) -> Option<Standing> {
        let job = self.pool.get(slot)?;
        let policy = self.policies.get(job.policy)?;
        Some(match self.trails.get(job.trail) {
            Some(trail) => Standing::of(&policy, trail.time, &trail.progress(), trail.is_buried),
            // Of one without a trail, only the time is in the line alone; and that isn't asked for.
            None => Standing::of(&policy, Time::ZERO, &Progress::default(), false),
        })
    }

    fn progress(&self, slot: Slot) -> Option<Progress> {
        let trail = self.pool.get(slot)?.trail;
        Some(self.trails.get(trail).map(Trail::progress).unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::string_slice, reason = "scripts are ASCII")]
mod tests;
