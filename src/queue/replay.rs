//! Records of a file, and of an AOF that was rewritten.

use super::door::{Changed, Operation};
use super::job::JobView;
use super::job_record::JobRecord;
use super::produce::{Naming, Serial};
use super::queue_record::{LimitsRecord, QueueRecord};
use super::recent::Recent;
use super::record::{lease, time, RecordError};
use super::time::Time;
use super::{GroupRecord, Lease, Queue};

/// What an AOF is rewritten to.
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// This job is there, instead of any with its id.
    Put {
        id: &'a [u8],
        body: &'a [u8],
        record: JobRecord,
    },
    /// These groups have got there.
    Groups(Vec<GroupRecord>),
    Queue(QueueRecord),
}

/// Whether the effect was a possible one.
pub type Replayed = Result<(), RecordError>;

impl Changed for Replayed {
    fn has_changed(&self) -> bool {
        self.is_ok()
    }
}

impl Effect<'_> {
    /// The highest lease that it tells of.
    pub fn highest_lease(&self) -> Lease {
        let number = match self {
            Effect::Put { record, .. } => Some(record.lease_number()),
            Effect::Groups(_) => None,
            Effect::Queue(record) => Some(record.last_lease),
        };
        Lease::new(number.unwrap_or_default())
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        match self {
            Effect::Put { id, body, record } => record.job(id, body).map(drop),
            Effect::Groups(records) => records.iter().try_for_each(GroupRecord::check),
            Effect::Queue(record) => record.check(),
        }
    }
}

impl Operation for Effect<'_> {
    type Outcome = Replayed;

    const IS_RECORD: bool = true;

    fn run(&self, queue: &mut Queue, _now: Time) -> Replayed {
        self.check()?;
        if queue.groups.is_some() {
            // When the timer is to look at groups goes by the time of the last change, which is another now.
            queue.wake_at = Time::ZERO;
        }
        match self {
            Effect::Put { id, body, record } => queue.put(id, body, record),
            Effect::Groups(records) => {
                records.iter().try_for_each(|record| queue.load_group(record))?;
                queue.leave_no_empty_groups();
                Ok(())
            }
            Effect::Queue(record) => queue.restore(record),
        }
    }
}

impl Queue {
    fn put(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<(), RecordError> {
        let job = record.job(id, body)?;
        let found = self.pool.look_up(job.id);
        let put = self.put_job(&job, record.naming(), found);
        put.map(drop).ok_or(RecordError::TooMany)
    }

    /// So many jobs of a file are to be loaded. Only for speed.
    pub fn expect(&mut self, jobs: u64) {
        self.pool.expect(usize::try_from(jobs).unwrap_or(usize::MAX));
    }

    /// A job of a file, in which no id can occur twice.
    pub fn load(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<(), RecordError> {
        let job = record.job(id, body)?;
        let found = self.pool.look_up(job.id);
        if found.slot.is_some() {
            return Err(RecordError::TakenId);
        }
        let put = self.put_job(&job, record.naming(), found);
        put.map(drop).ok_or(RecordError::TooMany)
    }

    /// Everything about the queue but its jobs.
    pub fn record(&self) -> QueueRecord {
        QueueRecord {
            last_lease: self.last_lease.number(),
            serial_time: self.last_serial.time.unix_ms(),
            serial_number: self.last_serial.number,
            totals: self.totals,
            counted: self.counted.unix_ms(),
            paused_until: self.paused_until.unix_ms(),
            settings: (&self.settings).into(),
            heading: (&self.heading).into(),
            limits: LimitsRecord::of(&self.settings, self.tat, self.group_serials()),
        }
    }

    /// Takes over what [`Queue::record`] told: after the jobs, whose arrival it doesn't count.
    pub fn restore(&mut self, record: &QueueRecord) -> Result<(), RecordError> {
        record.check()?;
        let serial = Serial { time: time(record.serial_time)?, number: record.serial_number };
        self.last_serial = self.last_serial.max(serial);
        self.last_lease = self.last_lease.max(lease(record.last_lease)?);
        self.settings = record.settings()?;
        self.tat = record.tat()?;
        self.paused_until = time(record.paused_until)?;
        self.restore_groups(record.group_serials());
        self.totals = record.totals;
        self.recent = Recent::default();
        self.counted = time(record.counted)?;
        self.heading = record.heading()?;
        self.wake_at = Time::ZERO;
        Ok(())
    }
}

impl JobView<'_> {
    /// The record with which [`Queue::load`] makes this job again.
    pub fn record(&self) -> JobRecord {
        JobRecord::of(self, Naming::Given)
    }
}
