//! Records: what jobs and queues look like in a file and in the replication stream. MessagePack
//! arrays, in the order of the fields. A field that comes later goes to the end and gets a default,
//! so that old records are read forever; a record that is longer than this version knows is
//! refused.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::Serialize;

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
    Impossible,
    Id,
    TakenId,
    TooMany,
    TooManyEdges,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RecordError::Unreadable => "a record is not what this version can read",
            RecordError::TrailingBytes => "a record has bytes after its end",
            RecordError::Impossible => "a record says what can't be",
            RecordError::Id => "an id is not 1 to 512 bytes long",
            RecordError::TakenId => "an id occurs twice",
            RecordError::TooMany => "there are more jobs than a queue can hold",
            RecordError::TooManyEdges => "a job has more than 10000 edges in one direction",
        })
    }
}

/// What is stored as something simpler is read where `$new` says that there is such a value: for
/// `#[serde(try_from)]`.
macro_rules! read_where_possible {
    ($value:ty, $stored:ty, $new:expr) => {
        impl TryFrom<$stored> for $value {
            type Error = $crate::queue::value::record::RecordError;

            fn try_from(stored: $stored) -> Result<$value, Self::Error> {
                ($new)(stored).ok_or(Self::Error::Impossible)
            }
        }
    };
}

pub(in crate::queue) use read_where_possible;
