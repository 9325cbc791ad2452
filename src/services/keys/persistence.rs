//! Files of queues: RDB values, rewritten AOFs, and the digest that compares queues. docs/format.md
//! describes them.

use super::value::QueueValue;
use super::{lazyfree, lifecycle};
use crate::queue::{
    read_block, BlockWriter, Defragmenter, EdgesRecord, GroupRecord, PendingRecord, Queue,
    QueueRecord, Record, RecordError, Walk,
};
use crate::server::context::{self, Database};
use crate::server::data_type::{DataType, StoredValue};
use crate::server::persist::{Aof, Digest, Input, LoadError, Output};
use crate::services::change::leases::is_forged;
use crate::services::change::log::APPLY;
use crate::services::live::{self, LIVE};

/// The reply of `TYPE key`.
const TYPE_NAME: &str = "delayq-dq";
/// The version that is written and read.
const ENCODING_VERSION: i32 = 2;

pub static QUEUE_TYPE: DataType<QueueValue> = DataType::new(TYPE_NAME, ENCODING_VERSION);

impl From<RecordError> for LoadError {
    fn from(error: RecordError) -> LoadError {
        LoadError::Content(error.to_string())
    }
}

fn load_block(queue: &mut Queue, input: &Input) -> Result<(), LoadError> {
    let block = input.buffer()?;
    if block.bytes().is_empty() {
        return Err(LoadError::Content("a block has no jobs".into()));
    }
    for job in read_block(block.bytes()) {
        let (id, body, record) = job?;
        queue.load(id, body, &record)?;
    }
    Ok(())
}

/// Each string of a file, and each entry of a rewritten AOF, has at most this many groups.
const GROUPS_AT_ONCE: usize = 512;
/// And no further record of edges once it has this many bytes.
const EDGE_BYTES_AT_ONCE: usize = 32 << 10;

/// Loads `groups` groups. A forged number does no harm, as a record is read for each.
fn load_groups(queue: &mut Queue, groups: u64, input: &Input) -> Result<(), LoadError> {
    let mut loaded = 0;
    while loaded < groups {
        let records = Vec::<GroupRecord>::decode(input.buffer()?.bytes())?;
        if records.is_empty() {
            return Err(LoadError::Content("a list of groups is empty".into()));
        }
        loaded += records.len() as u64;
        records.iter().try_for_each(|record| queue.load_group(record))?;
    }
    if loaded != groups {
        return Err(LoadError::Content("it has more groups than it says".into()));
    }
    Ok(())
}

/// Loads what `jobs` jobs wait for. Likewise.
fn load_edges(queue: &mut Queue, jobs: u64, input: &Input) -> Result<(), LoadError> {
    let mut loaded = 0;
    while loaded < jobs {
        let records = Vec::<EdgesRecord>::decode(input.buffer()?.bytes())?;
        if records.is_empty() {
            return Err(LoadError::Content("a list of edges is empty".into()));
        }
        loaded += records.iter().filter(|record| !record.continues()).count() as u64;
        queue.load_edges(&records)?;
    }
    if loaded != jobs {
        return Err(LoadError::Content("it has edges of more jobs than it says".into()));
    }
    Ok(())
}

/// Loads what is pending for jobs that wait for others: so many records.
fn load_pending(queue: &mut Queue, pending: u64, input: &Input) -> Result<(), LoadError> {
    let mut loaded = 0;
    while loaded < pending {
        let records = Vec::<PendingRecord>::decode(input.buffer()?.bytes())?;
        if records.is_empty() {
            return Err(LoadError::Content("a list of what is pending is empty".into()));
        }
        loaded += records.len() as u64;
        queue.load_pending(&records)?;
    }
    if loaded != pending {
        return Err(LoadError::Content("it has more pending than it says".into()));
    }
    Ok(())
}

/// Calls `write` with the records of what is pending, about so many bytes at once.
fn pending_of(queue: &Queue, write: impl FnMut(&[u8])) {
    in_chunks(queue.pending_records(), PendingRecord::size, write);
}

/// The same with the records of edges.
fn edges_of(queue: &Queue, write: impl FnMut(&[u8])) {
    in_chunks(queue.edge_records(), EdgesRecord::size, write);
}

fn in_chunks<R>(
    all: impl Iterator<Item = R>,
    size: impl Fn(&R) -> usize,
    mut write: impl FnMut(&[u8]),
) where
    Vec<R>: Record,
{
    let (mut records, mut bytes) = (Vec::new(), 0);
    for record in all {
        bytes += size(&record);
        records.push(record);
        if bytes > EDGE_BYTES_AT_ONCE {
            write(&std::mem::take(&mut records).encode());
            bytes = 0;
        }
    }
    if !records.is_empty() {
        write(&records.encode());
    }
}

/// Jobs in blocks, in the order of [`Queue::jobs`], so that no copy of the queue is made. Then the
/// records of groups, so many at once.
fn parts_of(queue: &Queue, mut jobs: impl FnMut(&[u8]), mut groups: impl FnMut(&[u8])) {
    let mut block = BlockWriter::default();
    for job in queue.jobs() {
        if block.add(&job) {
            jobs(block.bytes());
            block.clear();
        }
    }
    if !block.bytes().is_empty() {
        jobs(block.bytes());
    }
    for records in queue.group_records().chunks(GROUPS_AT_ONCE) {
        groups(&records.to_vec().encode());
    }
}

impl StoredValue for QueueValue {
    fn data_type() -> &'static DataType<QueueValue> {
        &QUEUE_TYPE
    }

    /// A file has the number of jobs, the queue's record, then blocks of jobs in the order of
    /// [`Queue::jobs`]. After them come the records of groups, of what is
    /// pending and of edges, if there are any.
    fn load(input: &Input, version: i32) -> Result<QueueValue, LoadError> {
        if version != ENCODING_VERSION {
            return Err(LoadError::Version(version, ENCODING_VERSION));
        }
        let jobs = input.unsigned()?;
        let record = QueueRecord::decode(input.buffer()?.bytes())?;
        let mut queue = Queue::new(context::hash_seed());
        queue.reserve(jobs);
        while (queue.len() as u64) < jobs {
            load_block(&mut queue, input)?;
        }
        if queue.len() as u64 != jobs {
            return Err(LoadError::Content("it has more jobs than it says".into()));
        }
        load_groups(&mut queue, record.groups_len(), input)?;
        load_pending(&mut queue, record.pending_len(), input)?;
        load_edges(&mut queue, record.edges_len(), input)?;
        queue.check_dependents(record.edges_len())?;
        queue.restore(&record)?;
        let value = lifecycle::read(LIVE, queue);
        // A file, a primary and a slot import have accepted it before.
        if live::is_steady_primary() && is_forged(value.last_lease(), context::wall_clock()) {
            return Err(LoadError::Content("it has leases from more than a year ahead".into()));
        }
        Ok(value)
    }

    fn save(&self, output: &Output) {
        output.unsigned(self.queue.len() as u64);
        output.buffer(&self.queue.record().encode());
        parts_of(&self.queue, |block| output.buffer(block), |groups| output.buffer(groups));
        pending_of(&self.queue, |pending| output.buffer(pending));
        edges_of(&self.queue, |edges| output.buffer(edges));
    }

    /// One self-contained command for each job, in order. Then the queue's own record, which also
    /// creates the key of a queue without jobs.
    fn rewrite(&self, aof: &Aof) {
        let emit = |word| move |part: &[u8]| aof.emit(APPLY, word, part);
        parts_of(&self.queue, emit(c"JOBS"), emit(c"GROUPS"));
        pending_of(&self.queue, emit(c"PENDING"));
        edges_of(&self.queue, emit(c"EDGES"));
        aof.emit(APPLY, c"QUEUE", &self.queue.record().encode());
    }

    /// Everything that makes two queues behave the same, in one sequence, so that order counts.
    /// Without the totals, which depend on the server, and the checksum, which depends on the
    /// history.
    fn digest(&self, digest: &Digest) {
        digest.add(&self.queue.record().without_history().encode());
        parts_of(&self.queue, |block| digest.add(block), |groups| digest.add(groups));
        pending_of(&self.queue, |pending| digest.add(pending));
        edges_of(&self.queue, |edges| digest.add(edges));
        digest.end_sequence();
    }

    fn memory(&self) -> usize {
        self.overhead() + self.queue.memory()
    }

    fn free_effort(&self) -> usize {
        self.queue.len().max(1)
    }

    fn free(self: Box<Self>) {
        lazyfree::free(self.into_queue());
    }

    fn copy(&self, database: Database, key: &[u8]) -> QueueValue {
        lifecycle::copy(LIVE, self, database, key)
    }

    fn loaded(&mut self, database: Database, key: &[u8]) {
        lifecycle::loaded(LIVE, self, database, key);
    }

    fn left_key(&mut self, database: Database, key: &[u8]) {
        lifecycle::left_key(LIVE, self, database, key);
    }

    fn defrag(&mut self, from: u64, defragmenter: &mut impl Defragmenter) -> Option<u64> {
        self.queue.defrag(Walk::from_number(from), defragmenter).map(Walk::number)
    }
}
