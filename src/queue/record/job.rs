//! What a job looks like in a file.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};
use serde_bytes::ByteBuf;

use super::schedule::ScheduleRecord;
use crate::queue::kernel::job::JobView;
use crate::queue::value::ids::{Id, Lease};
use crate::queue::value::policy::{Attempts, Backoff, Policy};
use crate::queue::value::record::{lease, span, time, Record, RecordError};
use crate::queue::value::serial::Naming;
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::tally::Tally;
use crate::queue::value::time::{Millis, Time};

/// Everything about a job but its id and body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// As in [`JobView`]; unix milliseconds, as all times here.
    pub(in crate::queue) time: u64,
    pub(in crate::queue) created: u64,
    pub(in crate::queue) ttr: u64,
    pub(in crate::queue) attempts: u32,
    pub(in crate::queue) priority: u8,
    /// 0: never handed out.
    pub(in crate::queue) attempt: u32,
    /// 0: none.
    pub(in crate::queue) lease: u64,
    pub(in crate::queue) stage: u8,
    pub(in crate::queue) named_by_queue: bool,
    /// What most jobs don't have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::queue) extra: Option<ExtraRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(in crate::queue) struct ExtraRecord {
    backoff_base: u64,
    backoff_max: u64,
    ttl: u64,
    keep: u64,
    expires_at: Option<u64>,
    reason: Option<ByteBuf>,
    #[serde(default)]
    schedule: Option<ScheduleRecord>,
    #[serde(default)]
    late: u64,
    #[serde(default)]
    tally: TallyRecord,
    #[serde(default)]
    group: Option<ByteBuf>,
}

/// How often it timed out, was released, buried and kicked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct TallyRecord(u16, u16, u16, u16);

impl TallyRecord {
    fn of(tally: Tally) -> TallyRecord {
        let Tally { timed_out, released, buried, kicked } = tally;
        TallyRecord(timed_out, released, buried, kicked)
    }

    fn tally(self) -> Tally {
        let TallyRecord(timed_out, released, buried, kicked) = self;
        Tally { timed_out, released, buried, kicked }
    }
}

/// The fields that came later are left out, from the last one on that says something.
impl Serialize for ExtraRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_group = self.group.is_some();
        let has_tally = has_group || self.tally != TallyRecord::default();
        let has_late = has_tally || self.late > 0;
        let has_schedule = has_late || self.schedule.is_some();
        let later = [has_schedule, has_late, has_tally, has_group];
        let fields = 6 + later.into_iter().filter(|has_it| *has_it).count();
        let mut record = serializer.serialize_struct("ExtraRecord", fields)?;
        record.serialize_field("backoff_base", &self.backoff_base)?;
        record.serialize_field("backoff_max", &self.backoff_max)?;
        record.serialize_field("ttl", &self.ttl)?;
        record.serialize_field("keep", &self.keep)?;
        record.serialize_field("expires_at", &self.expires_at)?;
        record.serialize_field("reason", &self.reason)?;
        if has_schedule {
            record.serialize_field("schedule", &self.schedule)?;
        }
        if has_late {
            record.serialize_field("late", &self.late)?;
        }
        if has_tally {
            record.serialize_field("tally", &self.tally)?;
        }
        if has_group {
            record.serialize_field("group", &self.group)?;
        }
        record.end()
    }
}

const STAGE_WAITING: u8 = 0;
const STAGE_LEASED: u8 = 1;
const STAGE_DEAD: u8 = 2;
const STAGE_DONE: u8 = 3;

impl JobRecord {
    pub fn of(job: &JobView, naming: Naming) -> JobRecord {
        let Policy { ttr, attempts, priority, backoff, ttl, keep, late } = job.policy;
        let extra = ExtraRecord {
            backoff_base: backoff.base.as_u64(),
            backoff_max: backoff.max.as_u64(),
            ttl: ttl.as_u64(),
            keep: keep.as_u64(),
            expires_at: job.progress.expires_at.map(Time::unix_ms),
            reason: job.reason.map(ByteBuf::from),
            schedule: job.schedule.as_ref().map(ScheduleRecord::new),
            late: late.as_u64(),
            tally: TallyRecord::of(job.tally),
            group: job.group.map(|group| ByteBuf::from(group.bytes())),
        };
        JobRecord {
            time: job.time.unix_ms(),
            created: job.created.unix_ms(),
            ttr: ttr.as_u64(),
            attempts: attempts.limit(),
            priority,
            attempt: job.progress.attempt,
            lease: job.progress.lease.map_or(0, Lease::number),
            stage: stage_number(job.progress.stage),
            named_by_queue: naming == Naming::ByQueue,
            extra: (extra != ExtraRecord::default()).then_some(extra),
        }
    }

    pub fn lease_number(&self) -> u64 {
        self.lease
    }

    pub fn naming(&self) -> Naming {
        if self.named_by_queue {
            Naming::ByQueue
        } else {
            Naming::Given
        }
    }

    /// The job with this id and body, if all that the record says is possible.
    pub fn job<'a>(&'a self, id: &'a [u8], body: &'a [u8]) -> Result<JobView<'a>, RecordError> {
        let ttr = Millis::new(self.ttr).filter(|ttr| !ttr.is_zero());
        let extra = self.extra.as_ref();
        let in_extra = |field: fn(&ExtraRecord) -> u64| span(extra.map_or(0, field));
        if extra.is_some_and(|extra| extra.schedule.is_some() && extra.late > 0) {
            // A schedule has its own.
            return Err(RecordError::Schedule);
        }
        Ok(JobView {
            id: Id::new(id).ok_or(RecordError::Id)?,
            body,
            time: time(self.time)?,
            created: time(self.created)?,
            policy: Policy {
                ttr: ttr.ok_or(RecordError::Span)?,
                attempts: Attempts::new(self.attempts),
                priority: self.priority,
                backoff: Backoff {
                    base: in_extra(|extra| extra.backoff_base)?,
                    max: in_extra(|extra| extra.backoff_max)?,
                },
                ttl: in_extra(|extra| extra.ttl)?,
                keep: in_extra(|extra| extra.keep)?,
                late: in_extra(|extra| extra.late)?,
            },
            progress: progress(
                self.stage,
                self.attempt,
                self.lease,
                extra.and_then(|extra| extra.expires_at),
            )?,
            reason: extra.and_then(|extra| extra.reason.as_ref()).map(|reason| &reason[..]),
            tally: extra.map_or(Tally::default(), |extra| extra.tally.tally()),
            group: extra
                .and_then(|extra| extra.group.as_ref())
                .map(|group| Id::new(group).ok_or(RecordError::Group))
                .transpose()?,
            schedule: extra
                .and_then(|extra| extra.schedule.as_ref())
                .map(ScheduleRecord::parts)
                .transpose()?,
        })
    }
}

fn stage_number(stage: Stage) -> u8 {
    match stage {
        Stage::Waiting => STAGE_WAITING,
        Stage::Leased => STAGE_LEASED,
        Stage::Dead => STAGE_DEAD,
        Stage::Done => STAGE_DONE,
    }
}

/// A progress, if it is a possible one: a reserved job has a lease, and no other has one.
fn progress(
    stage: u8,
    attempt: u32,
    number: u64,
    expires_at: Option<u64>,
) -> Result<Progress, RecordError> {
    let stage = match stage {
        STAGE_WAITING => Stage::Waiting,
        STAGE_LEASED => Stage::Leased,
        STAGE_DEAD => Stage::Dead,
        STAGE_DONE => Stage::Done,
        _ => return Err(RecordError::Stage),
    };
    let lease = lease(number)?;
    let lease = (lease > Lease::default()).then_some(lease);
    if lease.is_some() != (stage == Stage::Leased) || (stage == Stage::Leased && attempt == 0) {
        return Err(RecordError::Lease);
    }
    Ok(Progress {
        stage,
        attempt,
        lease,
        expires_at: expires_at.map(time).transpose()?.filter(|expiry| *expiry < Time::MAX),
    })
}

impl Record for JobRecord {}

#[cfg(test)]
mod tests;
