//! What a job looks like in a file.

use serde::ser::SerializeTuple;
use serde::{Deserialize, Serialize, Serializer};
use serde_bytes::ByteBuf;

use crate::queue::kernel::job::JobView;
use crate::queue::value::ids::{Id, Lease};
use crate::queue::value::policy::{Attempts, Backoff, Policy};
use crate::queue::value::record::{Record, RecordError};
use crate::queue::value::recurrence::{Recurrence, RunState, ScheduleView};
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::tally::Tally;
use crate::queue::value::time::{Millis, Time};

/// Everything about a job but its id and body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// As in [`JobView`].
    pub(super) time: Time,
    pub(super) created: Time,
    pub(super) ttr: Millis,
    pub(super) attempts: Attempts,
    pub(super) priority: u8,
    /// 0: never delivered.
    pub(super) attempt: u32,
    /// 0: none.
    pub(super) lease: Lease,
    pub(super) stage: Stage,
    /// What most jobs don't have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<Box<ExtraRecord>>,
}

/// A record that ends with the last of its fields that says something.
macro_rules! record_of_optional_fields {
    ($name:ident { $($field:ident: $value:ty,)* }) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
        #[serde(default)]
        pub(super) struct $name {
            $($field: Option<$value>,)*
        }

        impl $name {
            const NONE: &'static $name = &$name { $($field: None,)* };
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let are_given = [$(self.$field.is_some(),)*];
                let last = are_given.iter().rposition(|is_given| *is_given);
                let mut fields = 0..last.map_or(0, |last| last + 1);
                let mut record = serializer.serialize_tuple(fields.len())?;
                $(if fields.next().is_some() {
                    record.serialize_element(&self.$field)?;
                })*
                record.end()
            }
        }
    };
}

// What comes later goes to the end.
record_of_optional_fields!(ExtraRecord {
    backoff: Backoff,
    ttl: Millis,
    expires_at: Time,
    keep: Millis,
    reason: ByteBuf,
    tally: Tally,
    group: ByteBuf,
    late: Millis,
    schedule: (Recurrence, RunState),
    note: ByteBuf,
    result: ByteBuf,
});

fn unless_default<T: Default + PartialEq>(value: T) -> Option<T> {
    (value != T::default()).then_some(value)
}

impl JobRecord {
    /// The record with which [`Queue::load`](crate::queue::Queue::load) makes this job again.
    pub fn of(job: &JobView) -> JobRecord {
        let Policy { ttr, attempts, priority, backoff, ttl, keep, late } = job.policy;
        let Progress { stage, attempt, lease, expires_at } = job.progress;
        let extra = ExtraRecord {
            backoff: unless_default(backoff),
            ttl: unless_default(ttl),
            expires_at,
            keep: unless_default(keep),
            reason: job.reason.map(ByteBuf::from),
            tally: unless_default(job.tally),
            group: job.group.map(|group| ByteBuf::from(group.bytes())),
            late: unless_default(late),
            schedule: job.schedule.map(|schedule| (schedule.rule.clone(), schedule.run_state)),
            note: job.note.map(ByteBuf::from),
            result: job.result.map(ByteBuf::from),
        };
        JobRecord {
            time: job.time,
            created: job.created,
            ttr,
            attempts,
            priority,
            attempt,
            lease: lease.unwrap_or_default(),
            stage,
            extra: unless_default(extra).map(Box::new),
        }
    }

    pub fn lease(&self) -> Lease {
        self.lease
    }

    /// The job with this id and body, if all that the record says is possible.
    pub fn job<'a>(&'a self, id: &'a [u8], body: &'a [u8]) -> Result<JobView<'a>, RecordError> {
        let extra = self.extra.as_deref().unwrap_or(ExtraRecord::NONE);
        let group = extra.group.as_ref().map(|group| Id::new(group));
        let has_lease = self.lease > Lease::default();
        let is_leased = self.stage == Stage::Leased;
        let is_possible = !self.ttr.is_zero()
            && has_lease == is_leased
            && (self.attempt > 0 || !is_leased)
            && group != Some(None)
            // A schedule has its own.
            && (extra.late.unwrap_or_default().is_zero() || extra.schedule.is_none())
            && (self.stage != Stage::Held || extra.schedule.is_none());
        if !is_possible {
            return Err(RecordError::Impossible);
        }
        Ok(JobView {
            id: Id::new(id).ok_or(RecordError::Id)?,
            body,
            time: self.time,
            created: self.created,
            policy: Policy {
                ttr: self.ttr,
                attempts: self.attempts,
                priority: self.priority,
                backoff: extra.backoff.unwrap_or_default(),
                ttl: extra.ttl.unwrap_or_default(),
                keep: extra.keep.unwrap_or_default(),
                late: extra.late.unwrap_or_default(),
            },
            progress: Progress {
                stage: self.stage,
                attempt: self.attempt,
                lease: has_lease.then_some(self.lease),
                expires_at: extra.expires_at.filter(|expiry| *expiry < Time::MAX),
            },
            reason: extra.reason.as_ref().map(|reason| &reason[..]),
            tally: extra.tally.unwrap_or_default(),
            group: group.flatten(),
            schedule: extra
                .schedule
                .as_ref()
                .map(|(rule, run_state)| ScheduleView { rule, run_state: *run_state }),
            note: extra.note.as_ref().map(|note| &note[..]).filter(|note| !note.is_empty()),
            result: extra.result.as_ref().map(|result| &result[..]),
        })
    }
}

impl Record for JobRecord {}

#[cfg(test)]
mod tests;
