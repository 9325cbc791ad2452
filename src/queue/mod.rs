//! The queue as a state machine over explicit time: no server, no clock, no randomness, no globals.
//!
//! ```
//! use dq::queue::*;
//!
//! let at = |ms| Time::new(ms).unwrap();
//! let ms = |ms| Millis::new(ms).unwrap();
//! let mut queue = Queue::new((0, 0));
//! let policy = Policy { ttr: ms(200), attempts: Attempts::new(25), priority: 128 };
//! let job = NewJob { id: Id::new(b"a").unwrap(), body: b"hello", due: Due::In(ms(500)), policy, naming: Naming::Given };
//!
//! assert!(matches!(queue.add(at(0), &job, IfTaken::Refuse), Added::New(_)));
//! assert_eq!(queue.pop(at(499), None, Lease::new(1)), None);
//! let handout = queue.pop(at(500), None, Lease::new(1)).unwrap();
//! assert!(queue.finish(job.id, Claim::Lease(handout.lease)));
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `mod.rs` | the operations of a queue, as the commands call them |
//! | `replay.rs` | the same from the outside: effects of a primary, records of a file |
//! | `record.rs` | what a job and a queue look like in files and in the replication stream |
//! | `job.rs`, `policy.rs` | what a job consists of, and how it is kept |
//! | `pool.rs`, `index.rs`, `slab.rs` | the job pool: by id, by slot |
//! | `schedule.rs`, `buckets.rs` | the lanes of sorted buckets: by priority and time |
//! | `time.rs` | points and lengths of time |

mod buckets;
mod index;
mod job;
mod policy;
mod pool;
mod record;
mod replay;
mod schedule;
mod slab;
mod time;

use buckets::Hold;
use pool::Pool;
use record::count;
use schedule::{Home, Schedule};
use slab::{Slab, NO_SLOT};

pub use job::{Claim, Delivery, Id, JobView, Lease, Stage, State, ID_BYTES_MAX};
pub use policy::{Attempts, Policy};
pub use record::{JobRecord, LeaseRecord, QueueRecord, Record, RecordError, Totals};
pub use schedule::Counts;
pub use slab::Slot;
pub use time::{Millis, Time};

/// A delay queue.
#[derive(Clone)]
pub struct Queue {
    pool: Pool,
    policies: policy::Policies,
    deliveries: Slab<Delivery>,
    schedule: Schedule,
    last_lease: Lease,
    last_serial: Serial,
    totals: Totals,
}

/// Where ids made by the queue have got to: `<time>-<number>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Serial {
    time: Time,
    number: u64,
}

/// A job to be added.
#[derive(Clone, Copy, Debug)]
pub struct NewJob<'a> {
    pub id: Id<'a>,
    pub body: &'a [u8],
    pub due: Due,
    pub policy: Policy,
    pub naming: Naming,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    In(Millis),
    /// In the past, this is now.
    At(Time),
}

/// Who made the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    Given,
    /// [`Queue::next_id`]; it is never made again.
    ByQueue,
}

/// What to do when the id is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    Refuse,
    Replace,
}

/// What became of an add; the time is when the job is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    New(Time),
    Replaced(Time),
    /// The id belongs to another job, which is left as it was.
    Taken,
    /// There are as many jobs as slots can be numbered.
    Full,
}

/// A job handed out. Its id and body are at [`Queue::view`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handout {
    pub slot: Slot,
    pub lease: Lease,
    pub attempt: u32,
    /// When the lease runs out.
    pub end: Time,
}

impl Queue {
    /// An empty queue. The seed keys the hash of the ids; it shows in nothing that a queue says or does.
    pub fn new(seed: (u64, u64)) -> Queue {
        Queue {
            pool: Pool::new(seed),
            policies: policy::Policies::new(seed),
            deliveries: Slab::default(),
            schedule: Schedule::default(),
            last_lease: Lease::default(),
            last_serial: Serial::default(),
            totals: Totals::default(),
        }
    }

    /// Lets time pass up to `now`: what is due is ready, what has run out is ready again or dead. Time
    /// never runs backwards here; the result is the time that it is for this queue.
    pub fn advance(&mut self, now: Time) -> Time {
        self.schedule.advance(now);
        self.schedule.now()
    }

    /// An id that is not taken and sorts behind all that were made before: `<unix-ms>-<number>`.
    pub fn next_id(&self, now: Time) -> String {
        let mut serial = Serial { time: now.max(self.schedule.now()), number: 0 };
        if serial.time <= self.last_serial.time {
            serial = Serial { time: self.last_serial.time, number: self.last_serial.number.wrapping_add(1) };
        }
        // Somebody may have given such ids by hand: steps that double leave any block of them quickly.
        let mut step: u64 = 1;
        loop {
            let id = format!("{}-{}", serial.time.unix_ms(), serial.number);
            if Id::new(id.as_bytes()).is_none_or(|id| self.pool.find(id).is_none()) {
                return id;
            }
            serial.number = serial.number.wrapping_add(step);
            step = step.saturating_mul(2);
        }
    }

    /// O(log n).
    pub fn add(&mut self, now: Time, job: &NewJob, if_taken: IfTaken) -> Added {
        let now = self.advance(now);
        let taken = self.pool.find(job.id);
        if taken.is_some() && if_taken == IfTaken::Refuse {
            return Added::Taken;
        }
        let due = match job.due {
            Due::In(delay) => now.saturating_add(delay),
            Due::At(time) => time.max(now),
        };
        let created = JobView {
            id: job.id,
            body: job.body,
            time: due,
            created: now,
            policy: job.policy,
            delivery: None,
        };
        if !self.put_job(&created, job.naming, taken) {
            return Added::Full;
        }
        match taken {
            None => Added::New(due),
            Some(_) => Added::Replaced(due),
        }
    }

    /// Hands out the first ready job by (priority, due time, order of scheduling). Its lease lasts `ttr`
    /// or, without it, what the job itself says; its number is at least `floor`. O(log n).
    pub fn pop(&mut self, now: Time, ttr: Option<Millis>, floor: Lease) -> Option<Handout> {
        let now = self.advance(now);
        let slot = self.schedule.first_ready()?;
        let policy = self.policies.get(self.pool.get(slot)?.policy)?;
        let end = now.saturating_add(ttr.unwrap_or(policy.ttr));
        let lease = Lease::new(floor.number().max(self.last_lease.number().saturating_add(1)));
        if lease >= Lease::MAX {
            return None;
        }
        self.hand_out(slot, lease, end)
    }

    /// Takes a job that was handed out from the queue: it is done. False when the claim isn't that to its
    /// latest delivery. A lease stays good after its end, until the job is handed out again. O(log n).
    pub fn finish(&mut self, id: Id, claim: Claim) -> bool {
        let Some(slot) = self.pool.find(id) else {
            return false;
        };
        let delivery = self.pool.get(slot).and_then(|job| self.deliveries.get(job.delivery));
        let is_good = match (delivery, claim) {
            (Some(_), Claim::Latest) => true,
            (Some(delivery), Claim::Lease(lease)) => delivery.lease == lease,
            (None, _) => false,
        };
        if is_good {
            self.remove(slot);
            count(&mut self.totals.finished);
        }
        is_good
    }

    /// Takes a job from the queue, whatever its state. O(log n).
    pub fn delete(&mut self, id: Id) -> bool {
        let found = self.pool.find(id);
        if let Some(slot) = found {
            self.remove(slot);
            count(&mut self.totals.deleted);
        }
        found.is_some()
    }

    pub fn get(&self, id: Id) -> Option<JobView<'_>> {
        self.view(self.pool.find(id)?)
    }

    /// The job in a slot. O(bucket).
    pub fn view(&self, slot: Slot) -> Option<JobView<'_>> {
        let job = self.pool.get(slot)?;
        let time = self.schedule.time_of(self.home_of(slot)?, slot, job.bucket)?;
        self.view_at(slot, time)
    }

    /// Id and body of the job in a slot.
    pub fn id_and_body(&self, slot: Slot) -> Option<(Id<'_>, &[u8])> {
        self.pool.get(slot).map(|job| job.id_and_body())
    }

    /// Every job, each priority in the order in which it is handed out; the same for queues to which the
    /// same happened.
    pub fn jobs(&self) -> impl Iterator<Item = JobView<'_>> {
        self.schedule.iter().filter_map(|(time, slot)| self.view_at(slot, time))
    }

    pub fn len(&self) -> usize {
        self.pool.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many jobs are in each state, as of the last [`Queue::advance`].
    pub fn counts(&self) -> Counts {
        self.schedule.counts()
    }

    /// When the next job becomes ready, ready again or dead without anyone doing anything.
    pub fn next_change(&self) -> Option<Time> {
        self.schedule.next_change()
    }

    /// The number of the latest lease, if there was any.
    pub fn last_lease(&self) -> Option<Lease> {
        (self.last_lease > Lease::default()).then_some(self.last_lease)
    }

    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Bytes that the queue asked its allocator for.
    pub fn memory(&self) -> usize {
        size_of::<Queue>()
            + self.pool.memory()
            + self.policies.memory()
            + self.deliveries.memory()
            + self.schedule.memory()
    }

    /// Puts a job as it is seen, instead of the one that has its id; false when there is no slot left.
    fn put_job(&mut self, job: &JobView, naming: Naming, replaced: Option<Slot>) -> bool {
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
        if let Some(delivery) = job.delivery {
            self.last_lease = self.last_lease.max(delivery.lease);
            self.keep_delivery(slot, delivery);
        }
        if naming == Naming::ByQueue {
            self.last_serial = self.last_serial.max(Serial::of(job.id).unwrap_or_default());
        }
        self.place(slot, job.time);
        match replaced {
            None => count(&mut self.totals.added),
            Some(_) => count(&mut self.totals.replaced),
        }
        true
    }

    fn hand_out(&mut self, slot: Slot, lease: Lease, end: Time) -> Option<Handout> {
        self.unplace(slot);
        let before = self.pool.get(slot).and_then(|job| self.deliveries.get(job.delivery)).copied();
        let attempt = before.map_or(0, |delivery| delivery.attempt).saturating_add(1);
        if before.is_some_and(|delivery| delivery.stage == Stage::Leased) {
            count(&mut self.totals.timed_out);
        }
        self.keep_delivery(slot, Delivery { lease, attempt, stage: Stage::Leased });
        self.last_lease = self.last_lease.max(lease);
        count(&mut self.totals.popped);
        self.place(slot, end);
        Some(Handout { slot, lease, attempt, end })
    }

    fn keep_delivery(&mut self, slot: Slot, delivery: Delivery) {
        let Some(job) = self.pool.get_mut(slot) else {
            return;
        };
        match self.deliveries.get_mut(job.delivery) {
            Some(kept) => *kept = delivery,
            None => job.delivery = self.deliveries.insert(delivery).unwrap_or(NO_SLOT),
        }
    }

    fn remove(&mut self, slot: Slot) {
        self.unplace(slot);
        if let Some(job) = self.pool.remove(slot) {
            self.policies.give_back(job.policy);
            self.deliveries.remove(job.delivery);
        }
    }

    fn place(&mut self, slot: Slot, time: Time) {
        if let Some((home, hold)) = self.home_and_hold(slot) {
            self.schedule.insert(home, time, slot, hold, &mut self.pool);
        }
    }

    fn unplace(&mut self, slot: Slot) {
        let bucket = self.pool.get(slot).map(|job| job.bucket);
        if let (Some(bucket), Some(home)) = (bucket, self.home_of(slot)) {
            self.schedule.remove(home, slot, bucket, &mut self.pool);
        }
    }

    fn home_of(&self, slot: Slot) -> Option<Home> {
        self.home_and_hold(slot).map(|(home, _)| home)
    }

    fn home_and_hold(&self, slot: Slot) -> Option<(Home, Hold)> {
        let job = self.pool.get(slot)?;
        let policy = self.policies.get(job.policy)?;
        let lane = Home::Lane(policy.priority);
        Some(match self.deliveries.get(job.delivery) {
            None => (lane, Hold::Waiting),
            Some(delivery) => match delivery.stage {
                Stage::Waiting => (lane, Hold::Waiting),
                Stage::Leased if policy.attempts.end_with(delivery.attempt) => {
                    (Home::LastAttempt, Hold::Leased)
                }
                Stage::Leased => (lane, Hold::Leased),
            },
        })
    }

    fn view_at(&self, slot: Slot, time: Time) -> Option<JobView<'_>> {
        let job = self.pool.get(slot)?;
        let (id, body) = job.id_and_body();
        Some(JobView {
            id,
            body,
            time,
            created: job.created(),
            policy: self.policies.get(job.policy)?,
            delivery: self.deliveries.get(job.delivery).copied(),
        })
    }
}

impl Serial {
    /// The serial in an id that [`Queue::next_id`] made.
    fn of(id: Id) -> Option<Serial> {
        let (time, number) = std::str::from_utf8(id.bytes()).ok()?.split_once('-')?;
        Some(Serial { time: Time::new(time.parse().ok()?)?, number: number.parse().ok()? })
    }
}

#[cfg(test)]
#[allow(clippy::string_slice, reason = "scripts are ASCII")]
mod tests;
