//! Jobs in a file, in blocks: a job is an array of its id, its body and its record, and stands right behind the one
//! before. So many at once cost the server, which gives each string an allocation of its own, next to nothing.

use rmp::decode::{read_array_len, read_bin_len};
use serde::Serialize;
use serde_bytes::Bytes;

use super::job::JobView;
use super::job_record::JobRecord;
use super::record::RecordError;

/// No further job goes into a block of at least so many bytes.
const BLOCK_BYTES: usize = 32 << 10;

#[derive(Serialize)]
struct Written<'b>(&'b Bytes, &'b Bytes, &'b JobRecord);

const FIELDS: u32 = 3;

/// A block being written.
#[derive(Debug, Default)]
pub struct BlockWriter(Vec<u8>);

impl BlockWriter {
    /// Says whether the block is full.
    pub fn add(&mut self, job: &JobView) -> bool {
        let record = job.record();
        let written = Written(Bytes::new(job.id.bytes()), Bytes::new(job.body), &record);
        // Writing integers, bytes and flags to memory can't fail.
        let done = rmp_serde::encode::write(&mut self.0, &written);
        debug_assert!(done.is_ok(), "a job can be written");
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
type Read<'b> = (&'b [u8], &'b [u8], JobRecord);

/// The jobs of a block. Ends behind the first one that can't be read.
pub fn read_block(mut block: &[u8]) -> impl Iterator<Item = Result<Read<'_>, RecordError>> {
    std::iter::from_fn(move || {
        if block.is_empty() {
            return None;
        }
        let read = read_job(&mut block).ok_or(RecordError::Unreadable);
        if read.is_err() {
            block = &[];
        }
        Some(read)
    })
}

fn read_job<'b>(block: &mut &'b [u8]) -> Option<Read<'b>> {
    if read_array_len(block).ok()? != FIELDS {
        return None;
    }
    let (id, body) = (read_bytes(block)?, read_bytes(block)?);
    let record = rmp_serde::from_read(block).ok()?;
    Some((id, body, record))
}

fn read_bytes<'b>(block: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = read_bin_len(block).ok()?;
    let (bytes, rest) = block.split_at_checked(len as usize)?;
    *block = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;

    fn queue_of(jobs: usize) -> Queue {
        let mut queue = Queue::new((1, 2));
        for n in 0..jobs {
            let id = n.to_string();
            let add = Add::plain(Id::new(id.as_bytes()).unwrap(), &[7; 300]);
            queue.apply(&Circumstances::default(), &add);
        }
        queue
    }

    #[test]
    fn a_block_is_read_as_it_was_written_and_full_at_its_size() {
        let queue = queue_of(200);
        let (mut writer, mut written) = (BlockWriter::default(), 0);
        for job in queue.jobs() {
            written += 1;
            if writer.add(&job) {
                break;
            }
        }
        assert!(written > 90 && written < 110, "{written}");
        let read: Vec<_> = read_block(writer.bytes()).collect::<Result<_, _>>().unwrap();
        let jobs = queue.jobs().take(written);
        assert!(read.iter().map(|(id, body, record)| (*id, *body, record.clone())).eq(jobs.map(|job| (
            job.id.bytes(),
            job.body,
            job.record()
        ))));
    }

    #[test]
    fn a_block_that_is_cut_short_or_goes_on_is_refused() {
        let queue = queue_of(2);
        let mut writer = BlockWriter::default();
        queue.jobs().for_each(|job| {
            writer.add(&job);
        });
        let whole = writer.bytes();
        for cut in 1..whole.len() {
            let read: Result<Vec<_>, _> = read_block(&whole[..cut]).collect();
            let is_between_jobs = cut == whole.len() / 2;
            assert_eq!(read.is_err(), !is_between_jobs, "cut at {cut}");
        }
        let longer = [whole, &[0xc1]].concat();
        assert!(read_block(&longer).last().unwrap().is_err());
    }
}
