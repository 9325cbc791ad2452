//! Records of a file, and of an AOF that was rewritten.

use super::block::ReadJob;
use super::job::JobRecord;
use super::queue::{QueueExtra, QueueRecord};
use crate::queue::edges::record::{EdgesRecord, PendingRecord};
use crate::queue::groups::record::GroupRecord;
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::JobView;
use crate::queue::kernel::operation::{Changed, Operation};
use crate::queue::kernel::pool::Lookup;
use crate::queue::kernel::queue::Queue;
use crate::queue::value::ids::Lease;
use crate::queue::value::record::RecordError;
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::state::Stage;
use crate::queue::value::time::Time;

/// What an AOF is rewritten to.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Clone, Debug)]
pub enum Effect<'a> {
    /// These jobs are there, instead of any with their ids.
    Jobs(Vec<ReadJob<'a>>),
    /// These groups have got there.
    Groups(Vec<GroupRecord>),
    /// This is to be carried out for jobs that wait for others.
    Pending(Vec<PendingRecord>),
    /// These jobs wait for others.
    Edges(Vec<EdgesRecord>),
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
        match self {
            Effect::Jobs(jobs) => {
                jobs.iter().map(|(_, _, record)| record.lease()).max().unwrap_or_default()
            }
            Effect::Groups(_) | Effect::Pending(_) | Effect::Edges(_) => Lease::default(),
            Effect::Queue(record) => record.last_lease,
        }
    }

    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        match self {
            Effect::Jobs(jobs) => {
                jobs.iter().try_for_each(|(id, body, record)| record.job(id, body).map(drop))
            }
            Effect::Groups(records) => records.iter().try_for_each(GroupRecord::check),
            Effect::Pending(records) => records.iter().try_for_each(PendingRecord::check),
            Effect::Edges(records) => records.iter().try_for_each(EdgesRecord::check),
            Effect::Queue(record) => record.check(),
        }
    }
}

impl Operation for Effect<'_> {
    type Outcome = Replayed;

    const IS_RECORD: bool = true;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Replayed {
        self.check()?;
        let replayed = match self {
            Effect::Jobs(jobs) => {
                jobs.iter().try_for_each(|job| queue.check_put(job))?;
                jobs.iter().try_for_each(|(id, body, record)| queue.put(id, body, record))?;
                // A job that is dead now may have taken the place of one that others wait for.
                queue.carry_out(now, queue.settle_budget.of_operation);
                Ok(())
            }
            Effect::Groups(records) => {
                records.iter().try_for_each(|record| queue.load_group(record))?;
                queue.leave_no_empty_groups();
                Ok(())
            }
            Effect::Pending(records) => queue.load_pending(records),
            Effect::Edges(records) => queue.load_edges(records),
            Effect::Queue(record) => queue.restore(record),
        };
        if queue.groups.is_some() {
            // When the timer is to look at groups goes by the time of the last change, which is
            // another now; and a job of a block may have taken the place of one with a group.
            queue.ledger.wake_now();
        }
        replayed
    }
}

impl Queue {
    fn put(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<(), RecordError> {
        let job = record.job(id, body)?;
        let found = self.store.pool().look_up(job.id);
        self.put_loaded(&job, found)
    }

    fn put_loaded(&mut self, job: &JobView, found: Lookup) -> Result<(), RecordError> {
        let slot = self.put_job(job, found, Cause::Loaded).ok_or(RecordError::TooMany)?;
        if job.progress.stage == Stage::Held {
            self.hold_until_edges(slot);
        }
        Ok(())
    }

    /// Whether the job of a record can take the place of one that others wait for: it must end.
    fn check_put(&self, (id, body, record): &ReadJob) -> Result<(), RecordError> {
        let job = record.job(id, body)?;
        let is_waited_for = self.edges.as_ref().is_some_and(|edges| {
            self.store.find(job.id).is_some_and(|slot| edges.waiting_for(slot) > 0)
        });
        if is_waited_for && (job.progress.stage == Stage::Done || job.schedule.is_some()) {
            return Err(RecordError::Impossible);
        }
        Ok(())
    }

    /// So many jobs of a file are to be loaded. Only for speed.
    pub fn reserve(&mut self, jobs: u64) {
        self.store.reserve(usize::try_from(jobs).unwrap_or(usize::MAX));
    }

    /// A job of a file, in which no id can occur twice.
    pub fn load(&mut self, id: &[u8], body: &[u8], record: &JobRecord) -> Result<(), RecordError> {
        let job = record.job(id, body)?;
        let found = self.store.pool().look_up(job.id);
        if found.slot.is_some() {
            return Err(RecordError::TakenId);
        }
        self.put_loaded(&job, found)
    }

    /// Everything about the queue but its jobs.
    pub fn record(&self) -> QueueRecord {
        let Queue { limits, ledger, .. } = self;
        let rate = limits.settings().rate;
        QueueRecord {
            last_lease: ledger.last_lease(),
            serial: ledger.last_serial(),
            totals: *ledger.totals(),
            counted: ledger.counted(),
            paused_until: limits.paused_until(),
            settings: *limits.settings(),
            log_state: *ledger.log_state(),
            arrival: rate.map_or((0, 0), |rate| rate.parts_of(limits.tat())),
            groups: self.groups.as_ref().map_or((0, 0, 0), |groups| groups.serials()),
            extra: QueueExtra {
                sink: limits.sink().cloned(),
                edges: self.edges.as_ref().map_or(0, |edges| edges.dependents_len() as u64),
                pending: self.edges.as_ref().map_or(0, |edges| edges.pending_len() as u64),
            },
        }
    }

    /// Takes over what [`Queue::record`] told: after the jobs, whose arrival it doesn't count.
    pub fn restore(&mut self, record: &QueueRecord) -> Result<(), RecordError> {
        record.check()?;
        self.ledger.raise_serial(record.serial);
        self.ledger.raise_lease(record.last_lease);
        let sink = record.extra.sink.clone();
        self.limits.restore(record.settings, record.tat()?, record.paused_until, sink);
        if let Some(groups) = &mut self.groups {
            groups.restore_serials(record.groups, self.limits.settings());
        }
        self.leave_no_empty_groups();
        self.ledger.restore(&record.log_state, &record.totals, record.counted);
        self.ledger.wake_now();
        Ok(())
    }

    /// Every group, in the order in which they were made.
    pub fn group_records(&self) -> Vec<GroupRecord> {
        self.groups
            .as_ref()
            .map_or(Vec::new(), |groups| groups.records(self.limits.settings().group_rate))
    }

    /// Takes over what [`Queue::group_records`] told of a group: after the jobs, and before
    /// [`Queue::restore`] with the record of the queue.
    pub fn load_group(&mut self, record: &GroupRecord) -> Result<(), RecordError> {
        record.check()?;
        let (groups, limits) = self.groups_or_new();
        groups.restore(record, limits.settings())?;
        // Some may leave at another time.
        self.ledger.wake_now();
        Ok(())
    }

    /// Where there is no group, nothing is remembered of turns.
    pub(in crate::queue) fn leave_no_empty_groups(&mut self) {
        if self.groups.as_ref().is_some_and(|groups| groups.len() == 0) {
            self.groups = None;
        }
    }
}
