//! What a job and a queue look like in a file and in the replication stream: MessagePack arrays, in the
//! order of the fields. A field that comes later goes to the end and gets a default, so that old records
//! are read forever; a record that is longer than this version knows is refused.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::job::{Delivery, Id, JobView, Lease, Stage};
use super::policy::{Attempts, Policy};
use super::time::{Millis, Time};
use super::Naming;

/// Everything about a job but its id and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    /// Due time, or end of the lease; unix milliseconds, as all times here.
    time: u64,
    created: u64,
    ttr: u64,
    attempts: u32,
    priority: u8,
    /// 0: never handed out.
    attempt: u32,
    lease: u64,
    stage: u8,
    named_by_queue: bool,
}

/// One lease that was given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRecord {
    id: ByteBuf,
    lease: u64,
    /// When it runs out.
    end: u64,
}

/// Everything about a queue but its jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueRecord {
    pub(super) last_lease: u64,
    pub(super) serial_time: u64,
    pub(super) serial_number: u64,
    pub(super) totals: Totals,
}

/// How often what happened since the queue was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    pub added: u64,
    pub replaced: u64,
    /// Jobs handed out.
    pub popped: u64,
    /// Leases that ran out and whose job was then handed out again.
    pub timed_out: u64,
    pub finished: u64,
    pub deleted: u64,
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    Unreadable,
    TrailingBytes,
    Time,
    Span,
    Stage,
    Lease,
    Id,
    TakenId,
    TooMany,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordError::Unreadable => "a record is not what this version can read",
            RecordError::TrailingBytes => "a record has bytes after its end",
            RecordError::Time => "a time is past the last one",
            RecordError::Span => "a TTR is not between 1 and the longest one",
            RecordError::Stage => "a job is in no known stage",
            RecordError::Lease => "a lease is not a possible one",
            RecordError::Id => "an id is not 1 to 512 bytes long",
            RecordError::TakenId => "an id occurs twice",
            RecordError::TooMany => "there are more jobs than a queue can hold",
        })
    }
}

const STAGE_WAITING: u8 = 0;
const STAGE_LEASED: u8 = 1;

impl JobRecord {
    pub fn of(job: &JobView, naming: Naming) -> JobRecord {
        JobRecord {
            time: job.time.unix_ms(),
            created: job.created.unix_ms(),
            ttr: job.policy.ttr.as_u64(),
            attempts: job.policy.attempts.limit(),
            priority: job.policy.priority,
            attempt: job.delivery.map_or(0, |delivery| delivery.attempt),
            lease: job.delivery.map_or(0, |delivery| delivery.lease.number()),
            stage: match job.delivery.map_or(Stage::Waiting, |delivery| delivery.stage) {
                Stage::Waiting => STAGE_WAITING,
                Stage::Leased => STAGE_LEASED,
            },
            named_by_queue: naming == Naming::ByQueue,
        }
    }

    pub fn naming(&self) -> Naming {
        if self.named_by_queue {
            Naming::ByQueue
        } else {
            Naming::Given
        }
    }

    /// The job with this id and body, if all that the record says is possible.
    pub fn job<'a>(&self, id: &'a [u8], body: &'a [u8]) -> Result<JobView<'a>, RecordError> {
        let ttr = Millis::new(self.ttr).filter(|ttr| *ttr > Millis::ZERO);
        Ok(JobView {
            id: Id::new(id).ok_or(RecordError::Id)?,
            body,
            time: time(self.time)?,
            created: time(self.created)?,
            policy: Policy {
                ttr: ttr.ok_or(RecordError::Span)?,
                attempts: Attempts::new(self.attempts),
                priority: self.priority,
            },
            delivery: self.delivery()?,
        })
    }

    fn delivery(&self) -> Result<Option<Delivery>, RecordError> {
        let stage = match self.stage {
            STAGE_WAITING => Stage::Waiting,
            STAGE_LEASED => Stage::Leased,
            _ => return Err(RecordError::Stage),
        };
        match (self.lease, self.attempt, stage) {
            (0, 0, Stage::Waiting) => Ok(None),
            (0, _, _) | (_, 0, _) => Err(RecordError::Lease),
            (number, attempt, stage) => {
                let lease = lease(number)?;
                Ok(Some(Delivery { lease, attempt, stage }))
            }
        }
    }
}

impl QueueRecord {
    /// Whether all that it says is possible.
    pub fn check(&self) -> Result<(), RecordError> {
        time(self.serial_time)?;
        lease(self.last_lease).map(drop)
    }

    /// The part that is the same on a primary and its replicas.
    pub fn without_totals(&self) -> QueueRecord {
        QueueRecord { totals: Totals::default(), ..*self }
    }
}

/// One more. A record may have brought any number: the last one there is stays.
pub(super) fn count(total: &mut u64) {
    *total = total.saturating_add(1);
}

impl LeaseRecord {
    pub fn new(id: Id, lease: Lease, end: Time) -> LeaseRecord {
        LeaseRecord { id: ByteBuf::from(id.bytes()), lease: lease.number(), end: end.unix_ms() }
    }

    /// Whose lease, its number and its end.
    pub fn parts(&self) -> Result<(Id<'_>, Lease, Time), RecordError> {
        let id = Id::new(&self.id).ok_or(RecordError::Id)?;
        if self.lease == 0 {
            return Err(RecordError::Lease);
        }
        Ok((id, lease(self.lease)?, time(self.end)?))
    }
}

/// A record, or a list of them, as MessagePack.
pub trait Record: Serialize + DeserializeOwned {
    fn encode(&self) -> Vec<u8> {
        // Writing integers, bytes and flags to memory can't fail.
        rmp_serde::to_vec(self).unwrap_or_default()
    }

    fn decode(mut bytes: &[u8]) -> Result<Self, RecordError> {
        let record = rmp_serde::from_read(&mut bytes).map_err(|_| RecordError::Unreadable)?;
        if bytes.is_empty() {
            Ok(record)
        } else {
            Err(RecordError::TrailingBytes)
        }
    }
}

impl Record for JobRecord {}
impl Record for QueueRecord {}
impl Record for Vec<LeaseRecord> {}

pub(super) fn time(unix_ms: u64) -> Result<Time, RecordError> {
    Time::new(unix_ms).ok_or(RecordError::Time)
}

/// A number that no queue can get to by itself would leave it without a next one.
pub(super) fn lease(number: u64) -> Result<Lease, RecordError> {
    if number < Lease::MAX.number() {
        Ok(Lease::new(number))
    } else {
        Err(RecordError::Lease)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> JobRecord {
        JobRecord {
            time: 1_763_725_200_500,
            created: 1_763_725_200_000,
            ttr: 60_000,
            attempts: 25,
            priority: 128,
            attempt: 2,
            lease: 3_612_109_209_600_001,
            stage: STAGE_LEASED,
            named_by_queue: true,
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let bytes = record().encode();
        assert_eq!(JobRecord::decode(&bytes), Ok(record()));
        let job = record().job(b"a", b"x").unwrap();
        assert_eq!(JobRecord::of(&job, Naming::ByQueue), record());
    }

    /// The bytes of version 1: they must be read forever.
    #[test]
    fn version_1_is_these_bytes() {
        let bytes = [
            0x99, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x35, 0x0f, 0x74, 0xcf, 0, 0, 0x01, 0x9a, 0xa6, 0x35, 0x0d,
            0x80, 0xcd, 0xea, 0x60, 25, 0xcc, 0x80, 2, 0xcf, 0, 0x0c, 0xd5, 0x31, 0xa8, 0x6c, 0x00, 0x01, 1,
            0xc3,
        ];
        let read = JobRecord::decode(&bytes).unwrap();
        assert_eq!(read.encode(), bytes);
        assert_eq!((read.ttr, read.attempts, read.attempt), (60_000, 25, 2));
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_refused() {
        let bytes = record().encode();
        for cut in 0..bytes.len() {
            assert_eq!(JobRecord::decode(&bytes[..cut]), Err(RecordError::Unreadable), "cut at {cut}");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(JobRecord::decode(&longer), Err(RecordError::TrailingBytes));
        let one_field_more = [&[0x9a], &bytes[1..], &[0]].concat();
        assert_eq!(JobRecord::decode(&one_field_more), Err(RecordError::Unreadable));
    }

    #[test]
    fn what_cannot_be_is_refused_in_words() {
        let check = |change: fn(&mut JobRecord), error| {
            let mut record = record();
            change(&mut record);
            assert_eq!(record.job(b"a", b""), Err(error));
        };
        check(|r| r.time = u64::MAX, RecordError::Time);
        check(|r| r.created = 1 << 48, RecordError::Time);
        check(|r| r.ttr = 0, RecordError::Span);
        check(|r| r.ttr = u64::MAX, RecordError::Span);
        check(|r| r.stage = 9, RecordError::Stage);
        check(|r| r.lease = 0, RecordError::Lease);
        check(|r| r.attempt = 0, RecordError::Lease);
        assert_eq!(record().job(b"", b""), Err(RecordError::Id));
        assert_eq!(record().job(&[1; 513], b""), Err(RecordError::Id));
    }

    #[test]
    fn a_list_that_promises_too_much_is_refused_without_reserving_it() {
        let four_billion_leases = [0xdd, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(Vec::<LeaseRecord>::decode(&four_billion_leases), Err(RecordError::Unreadable));
        let an_id_of_four_gigabytes = [0x91, 0x93, 0xc6, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Vec::<LeaseRecord>::decode(&an_id_of_four_gigabytes), Err(RecordError::Unreadable));
    }
}
