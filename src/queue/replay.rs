//! Records of a file, and effects that a primary of version 0.1 sent, or wrote to its AOF. An effect says what a job
//! came to, not what was said; times and leases come with it.

use super::door::{Changed, Operation};
use super::job::{JobView, Stage};
use super::job_record::{Cause, DropRecord, Exit, JobRecord, LeaseRecord, MoveRecord};
use super::produce::{Naming, Serial};
use super::queue_record::{count, LimitsRecord, QueueRecord};
use super::recent::Recent;
use super::record::{lease, time, RecordError};
use super::shift::Counted;
use super::slab::Slot;
use super::time::Time;
use super::{GroupRecord, Id, Lease, Progress, Queue, Reason, Shift, Tally};

/// What a primary of version 0.1 told its replicas. The first and the last are also what an AOF is rewritten to.
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// This job is there, instead of any with its id.
    Put {
        id: &'a [u8],
        body: &'a [u8],
        record: JobRecord,
    },
    Lease(Vec<LeaseRecord>),
    Move(Vec<MoveRecord>),
    Drop(DropRecord),
    /// These groups have got there. Only in an AOF that was rewritten.
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
            Effect::Lease(records) => records.iter().map(LeaseRecord::lease_number).max(),
            Effect::Move(records) => records.iter().map(MoveRecord::lease_number).max(),
            Effect::Drop(_) | Effect::Groups(_) => None,
            Effect::Queue(record) => Some(record.last_lease),
        };
        Lease::new(number.unwrap_or_default())
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        match self {
            Effect::Put { id, body, record } => record.job(id, body).map(drop),
            Effect::Lease(records) => records.iter().try_for_each(|record| record.parts().map(drop)),
            Effect::Move(records) => records.iter().try_for_each(MoveRecord::check),
            Effect::Drop(record) => record.check(),
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
            Effect::Lease(records) => records.iter().try_for_each(|record| queue.lease(record)),
            Effect::Move(records) => records.iter().try_for_each(|record| queue.move_job(record)),
            Effect::Drop(record) => queue.drop_jobs(record),
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

    fn lease(&mut self, record: &LeaseRecord) -> Result<(), RecordError> {
        let (id, lease, end) = record.parts()?;
        if let Some(slot) = self.pool.find(id) {
            self.count_what_ended(slot);
            self.hand_out(slot, lease, end);
        }
        Ok(())
    }

    fn hand_out(&mut self, slot: Slot, lease: Lease, end: Time) {
        let before = self.progress(slot).unwrap_or_default();
        let attempt = before.attempt.saturating_add(1);
        let leased = Progress { stage: Stage::Leased, attempt, lease: Some(lease), ..before };
        self.shift_untold(slot, &Shift::new(Cause::Popped, end, end, &leased));
        count(&mut self.totals.popped, 1);
    }

    fn move_job(&mut self, record: &MoveRecord) -> Result<(), RecordError> {
        let (id, cause, time, progress) = record.parts()?;
        if let Some(slot) = self.pool.find(id) {
            if cause == Cause::Kicked {
                self.count_what_ended(slot);
            }
            let shift = Shift::new(cause, time, time, &progress).because(Reason::given(record.reason()));
            self.shift_untold(slot, &shift);
        }
        Ok(())
    }

    /// Version 0.1 counted nothing of a job. So its log makes the same jobs as its files.
    fn shift_untold(&mut self, slot: Slot, shift: &Shift) {
        let tally = self.details_of(slot).map_or(Tally::default(), |details| details.tally());
        self.shift(slot, &Shift { counted: Counted::Is(tally), ..*shift });
    }

    fn drop_jobs(&mut self, record: &DropRecord) -> Result<(), RecordError> {
        let (exit, ids) = record.parts()?;
        let jobs = ids.into_iter().filter_map(|id: Id| self.remove_called(id)).count();
        match exit {
            Exit::Finished => count(&mut self.totals.finished, jobs),
            Exit::Purged => count(&mut self.totals.purged, jobs),
        }
        Ok(())
    }

    /// A job that is handed out or kicked had its lease end, and died, before that, also if nobody has let
    /// time pass here meanwhile.
    fn count_what_ended(&mut self, slot: Slot) {
        let counted = self.schedule.horizon().max(self.counted);
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

    /// What this job came to, as version 0.1 told it.
    pub fn move_record(&self, cause: Cause) -> MoveRecord {
        MoveRecord::new(self, cause)
    }
}
