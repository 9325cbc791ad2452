//! Records: what jobs and queues look like in a file and in the replication stream. MessagePack
//! arrays, in the order of the fields. A field that comes later goes to the end and gets a default,
//! so that old records are read forever; a record that is longer than this version knows is
//! refused.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::Serialize;

use super::ids::Lease;
use super::time::{Millis, Time};

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

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordError {
    Unreadable,
    TrailingBytes,
    Time,
    Span,
    Stage,
    Lease,
    Schedule,
    Limit,
    Group,
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
            RecordError::Span => "a span is not between the shortest and the longest one",
            RecordError::Stage => "a job is in no known stage",
            RecordError::Lease => "a lease is not a possible one",
            RecordError::Schedule => "a schedule is not a possible one",
            RecordError::Limit => "a limit is not a possible one",
            RecordError::Group => "a group is not a possible one",
            RecordError::Id => "an id is not 1 to 512 bytes long",
            RecordError::TakenId => "an id occurs twice",
            RecordError::TooMany => "there are more jobs than a queue can hold",
        })
    }
}

pub(in crate::queue) fn time(unix_ms: u64) -> Result<Time, RecordError> {
    Time::new(unix_ms).ok_or(RecordError::Time)
}

pub(in crate::queue) fn span(ms: u64) -> Result<Millis, RecordError> {
    Millis::new(ms).ok_or(RecordError::Span)
}

/// A number that no queue can get to by itself would leave it without a next one.
pub(in crate::queue) fn lease(number: u64) -> Result<Lease, RecordError> {
    if number < Lease::MAX.number() {
        Ok(Lease::new(number))
    } else {
        Err(RecordError::Lease)
    }
}
