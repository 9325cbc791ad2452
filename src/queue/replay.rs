//! What happened elsewhere, done again here: the effects that a primary sends, the records of a file.
//! Times and leases come with them; nothing here knows what time it is.

use super::job::{Id, JobView, Stage};
use super::job_record::{Cause, DropRecord, JobRecord, LeaseRecord, Leave, MoveRecord};
use super::produce::Serial;
use super::queue_record::{count, QueueRecord};
use super::record::{lease, time, RecordError};
use super::slab::Slot;
use super::time::Time;
use super::{Naming, Queue};

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
        let Some(slot) = self.pool.find(id) else {
            return Ok(None);
        };
        self.count_what_ended(slot);
        Ok(self.hand_out(slot, lease, end).map(|_| end))
    }

    /// Moves a job as somebody else moved it; false when there is no such job.
    pub fn move_job(&mut self, record: &MoveRecord) -> Result<bool, RecordError> {
        let (id, cause, time, progress) = record.parts()?;
        let Some(slot) = self.pool.find(id) else {
            return Ok(false);
        };
        if cause == Cause::Kicked {
            self.count_what_ended(slot);
        }
        self.shift(slot, cause, time, &progress, record.reason());
        Ok(true)
    }

    /// Removes the jobs that somebody else removed; how many were there.
    pub fn drop_jobs(&mut self, record: &DropRecord) -> Result<usize, RecordError> {
        let (leave, ids) = record.parts()?;
        let slots: Vec<Slot> = ids.into_iter().filter_map(|id| self.take_out(id)).collect();
        match leave {
            Leave::Finished => count(&mut self.totals.finished, slots.len()),
            Leave::Purged => count(&mut self.totals.purged, slots.len()),
        }
        Ok(slots.len())
    }

    fn take_out(&mut self, id: Id) -> Option<Slot> {
        let slot = self.pool.find(id)?;
        self.remove(slot);
        Some(slot)
    }

    /// A job that is handed out or kicked had its lease end, and died, before that, also if nobody has let
    /// time pass here meanwhile.
    fn count_what_ended(&mut self, slot: Slot) {
        let counted = self.schedule.now().max(self.counted);
        let Some(job) = self.view(slot) else {
            return;
        };
        let has_timed_out = job.progress.stage == Stage::Leased && job.time > counted;
        let has_died = has_timed_out && job.is_at_its_last_attempt();
        count(&mut self.totals.timed_out, usize::from(has_timed_out));
        count(&mut self.totals.died, usize::from(has_died));
    }

    /// Everything about the queue but its jobs.
    pub fn record(&self) -> QueueRecord {
        QueueRecord {
            last_lease: self.last_lease.number(),
            serial_time: self.last_serial.time.unix_ms(),
            serial_number: self.last_serial.number,
            totals: self.totals,
            counted: self.counted.max(self.schedule.now()).unix_ms(),
            paused_until: self.paused_until.unix_ms(),
            settings: (&self.settings).into(),
        }
    }

    /// Takes over what [`Queue::record`] told: after the jobs, whose arrival it doesn't count.
    pub fn restore(&mut self, record: &QueueRecord) -> Result<(), RecordError> {
        record.check()?;
        let serial = Serial { time: time(record.serial_time)?, number: record.serial_number };
        self.last_serial = self.last_serial.max(serial);
        self.last_lease = self.last_lease.max(lease(record.last_lease)?);
        self.settings = record.settings()?;
        self.paused_until = time(record.paused_until)?;
        self.totals = record.totals;
        self.counted = time(record.counted)?;
        Ok(())
    }
}

impl JobView<'_> {
    /// The record with which [`Queue::put`] makes this job again.
    pub fn record(&self) -> JobRecord {
        JobRecord::of(self, Naming::Given)
    }

    /// The record with which [`Queue::move_job`] brings this job to where it is.
    pub fn move_record(&self, cause: Cause) -> MoveRecord {
        MoveRecord::new(self, cause)
    }
}
