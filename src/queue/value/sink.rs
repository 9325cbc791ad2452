//! A sink: the stream to which jobs go when they are due.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::ids::Id;

/// As many entries as a server lets a stream have.
pub const MAX_LEN_MAX: u64 = i64::MAX as u64;

/// A stream, at a key of the same database.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sink {
    stream: ByteBuf,
    max_len: u64,
}

impl Sink {
    /// `max_len` is about how many entries the stream keeps, at most [`MAX_LEN_MAX`]; 0 is no limit.
    /// The name of a stream is as long as an id may be.
    pub fn new(stream: Id, max_len: u64) -> Sink {
        Sink { stream: ByteBuf::from(stream.bytes()), max_len }
    }

    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    /// About how many entries the stream keeps; `None` is all.
    pub fn max_len(&self) -> Option<u64> {
        (self.max_len > 0).then_some(self.max_len)
    }

    /// Whether a record can say so.
    pub(in crate::queue) fn is_possible(&self) -> bool {
        Id::new(&self.stream).is_some() && self.max_len <= MAX_LEN_MAX
    }

    pub(in crate::queue) fn memory(&self) -> usize {
        size_of::<Sink>() + self.stream.capacity()
    }
}
