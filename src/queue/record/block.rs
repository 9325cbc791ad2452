//! Jobs in a file, in blocks: a job is an array of its id, its body and its record, and stands
//! right behind the one before. So many at once cost the server, which gives each string an
//! allocation of its own, next to nothing.

use crate::queue::memory::impossible::impossible;
use rmp::decode::{read_array_len, read_bin_len, read_int};
use rmp_serde::decode::ReadReader;
use serde::{Deserialize, Serialize};
use serde_bytes::Bytes;

use super::job::JobRecord;
use crate::queue::kernel::job::JobView;
use crate::queue::value::ids::Lease;
use crate::queue::value::policy::Attempts;
use crate::queue::value::record::RecordError;
use crate::queue::value::state::Stage;
use crate::queue::value::time::{Millis, Time};

/// No further job goes into a block of at least so many bytes.
const BLOCK_BYTES: usize = 32 << 10;

#[derive(Serialize)]
struct Written<'b>(&'b Bytes, &'b Bytes, &'b JobRecord);

const FIELDS: u32 = 3;
/// Those that every record of a job has.
const PLAIN_FIELDS: u32 = 8;

/// A block being written.
#[derive(Debug, Default)]
pub struct BlockWriter(Vec<u8>);

impl BlockWriter {
    /// Says whether the block is full.
    pub fn add(&mut self, job: &JobView) -> bool {
        let record = JobRecord::of(job);
        let written = Written(Bytes::new(job.id.bytes()), Bytes::new(job.body), &record);
        // Writing integers, bytes and flags to memory can't fail.
        let done = rmp_serde::encode::write(&mut self.0, &written);
        if done.is_err() {
            impossible("a job can be written");
        }
        self.0.len() >= BLOCK_BYTES
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }
}

/// A job that was read: its id, its body and its record.
pub type ReadJob<'b> = (&'b [u8], &'b [u8], JobRecord);

/// The jobs of a block. Ends behind the first one that can't be read.
pub fn read_block(block: &[u8]) -> impl Iterator<Item = Result<ReadJob<'_>, RecordError>> {
    // One for the whole block: each has a buffer of its own.
    let mut reader = rmp_serde::Deserializer::new(block);
    std::iter::from_fn(move || {
        if reader.get_ref().is_empty() {
            return None;
        }
        let read = read_job(&mut reader).ok_or(RecordError::Unreadable);
        if read.is_err() {
            *reader.get_mut() = &[];
        }
        Some(read)
    })
}

type Reader<'b> = rmp_serde::Deserializer<ReadReader<&'b [u8]>>;

fn read_job<'b>(reader: &mut Reader<'b>) -> Option<ReadJob<'b>> {
    let block = reader.get_mut();
    if read_array_len(block).ok()? != FIELDS {
        return None;
    }
    let (id, body) = (read_bytes(block)?, read_bytes(block)?);
    let record = read_record(reader)?;
    Some((id, body, record))
}

/// As [`JobRecord`] is deserialized, but for arrays only, and in a third of the time.
fn read_record(reader: &mut Reader) -> Option<JobRecord> {
    let block = reader.get_mut();
    let more = read_array_len(block).ok()?.checked_sub(PLAIN_FIELDS)?;
    let plain = JobRecord {
        time: Time::new(read_int(block).ok()?)?,
        created: Time::new(read_int(block).ok()?)?,
        ttr: Millis::new(read_int(block).ok()?)?,
        attempts: Attempts::new(read_int(block).ok()?),
        priority: read_int(block).ok()?,
        attempt: read_int(block).ok()?,
        lease: Lease::try_from(read_int::<u64, _>(block).ok()?).ok()?,
        stage: Stage::of(read_int(block).ok()?)?,
        extra: None,
    };
    match more {
        0 => Some(plain),
        1 => Some(JobRecord { extra: Option::deserialize(reader).ok()?, ..plain }),
        _ => None,
    }
}

fn read_bytes<'b>(block: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = read_bin_len(block).ok()?;
    let (bytes, rest) = block.split_at_checked(len as usize)?;
    *block = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests;
