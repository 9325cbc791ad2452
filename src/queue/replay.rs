//! What happened elsewhere, done again here: the effects that a primary sends, the records of a file.
//! Times and leases come with them; nothing here knows what time it is.

use super::job::JobView;
use super::record::{lease, time, JobRecord, LeaseRecord, QueueRecord, RecordError};
use super::time::Time;
use super::{Naming, Queue, Serial};

impl Queue {
    /// Puts a job as the record has it, instead of any with that id. O(log n).
    pub fn put(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<Time, RecordError> {
        let job = record.job(id, body)?;
        let replaced = self.pool.find(job.id);
        if self.put_job(&job, record.naming(), replaced) {
            Ok(job.time)
        } else {
            Err(RecordError::TooMany)
        }
    }

    /// As [`Queue::put`], for a file, in which no id can occur twice.
    pub fn load(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<Time, RecordError> {
        let job = record.job(id, body)?;
        if self.get(job.id).is_some() {
            return Err(RecordError::TakenId);
        }
        self.put(id, body, record)
    }

    /// Gives the lease that somebody else's pop gave; the end of it, or `None` when there is no such job.
    pub fn lease(&mut self, record: &LeaseRecord) -> Result<Option<Time>, RecordError> {
        let (id, lease, end) = record.parts()?;
        let handout = self.pool.find(id).and_then(|slot| self.hand_out(slot, lease, end));
        Ok(handout.map(|handout| handout.end))
    }

    /// Everything about the queue but its jobs.
    pub fn record(&self) -> QueueRecord {
        QueueRecord {
            last_lease: self.last_lease.number(),
            serial_time: self.last_serial.time.unix_ms(),
            serial_number: self.last_serial.number,
            totals: self.totals,
        }
    }

    /// Takes over what [`Queue::record`] told: after the jobs, whose arrival it doesn't count.
    pub fn restore(&mut self, record: &QueueRecord) -> Result<(), RecordError> {
        let serial = Serial { time: time(record.serial_time)?, number: record.serial_number };
        let last_lease = lease(record.last_lease)?;
        self.last_serial = self.last_serial.max(serial);
        self.last_lease = self.last_lease.max(last_lease);
        self.totals = record.totals;
        Ok(())
    }
}

impl JobView<'_> {
    /// The record with which [`Queue::put`] makes this job again.
    pub fn record(&self) -> JobRecord {
        JobRecord::of(self, Naming::Given)
    }
}
