//! What producers do: add jobs.

use super::job::{Id, JobView, Progress};
use super::policy::Policy;
use super::time::{Millis, Time};
use super::Queue;

/// Where ids made by the queue have got to: `<time>-<number>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Serial {
    pub time: Time,
    pub number: u64,
}

impl Serial {
    /// The serial in an id that [`Queue::next_id`] made.
    pub fn of(id: Id) -> Option<Serial> {
        let (time, number) = std::str::from_utf8(id.bytes()).ok()?.split_once('-')?;
        Some(Serial { time: Time::new(time.parse().ok()?)?, number: number.parse().ok()? })
    }
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
    /// There are as many jobs as the queue may hold.
    Full,
}

impl Queue {
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

    /// A finished job that has been kept long enough holds its id no longer. O(log n).
    pub fn add(&mut self, now: Time, job: &NewJob, if_taken: IfTaken) -> Added {
        let now = self.advance(now);
        let taken = self.pool.find(job.id);
        let is_gone = taken.is_some_and(|slot| self.was_kept_until(slot, now));
        if taken.is_some() && !is_gone && if_taken == IfTaken::Refuse {
            return Added::Taken;
        }
        if taken.is_none() && self.settings.max_jobs.is_some_and(|max| self.len() as u64 >= max.get()) {
            return Added::Full;
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
            progress: Progress { dies: job.policy.death(now), ..Progress::default() },
            reason: None,
        };
        if !self.put_job(&created, job.naming, taken) {
            return Added::Full;
        }
        match taken {
            Some(_) if !is_gone => Added::Replaced(due),
            None | Some(_) => Added::New(due),
        }
    }
}
