//! Files of queues: what an RDB value and a rewritten AOF hold, and the digest that compares.
//! docs/format.md has it in words.

use super::leases::is_forged;
use super::live::{self, Live};
use super::log::APPLY;
use super::value::QueueValue;
use super::{lazyfree, lifecycle};
use crate::queue::{
    read_block, BlockWriter, Defragmenter, GroupRecord, Queue, QueueRecord, Record, RecordError,
    Walk,
};
use crate::server::context::{self, Database};
use crate::server::data_type::{DataType, StoredValue};
use crate::server::persist::{Aof, Digest, Input, LoadError, Output};

/// `TYPE key` answers this.
const TYPE_NAME: &str = "delayq-dq";
/// The version of what is written, and read.
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

/// So many records of groups stand in a string of a file, or in an entry of a rewritten AOF.
const GROUPS_AT_ONCE: usize = 512;

/// Nobody has so many groups; each has a record.
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

    /// The number of jobs, the queue's record, then its parts.
    fn load(input: &Input, version: i32) -> Result<QueueValue, LoadError> {
        if version != ENCODING_VERSION {
            return Err(LoadError::Version(version, ENCODING_VERSION));
        }
        let jobs = input.unsigned()?;
        let record = QueueRecord::decode(input.buffer()?.bytes())?;
        let mut queue = Queue::new(context::hash_seed());
        queue.expect(jobs);
        while (queue.len() as u64) < jobs {
            load_block(&mut queue, input)?;
        }
        if queue.len() as u64 != jobs {
            return Err(LoadError::Content("it has more jobs than it says".into()));
        }
        load_groups(&mut queue, record.groups_len(), input)?;
        queue.restore(&record)?;
        let value = lifecycle::read(Live::WITHOUT_CONTEXT, queue);
        // What is in a file, or comes from a primary or with its slot, was accepted before.
        if live::is_settled_primary() && is_forged(value.last_lease(), context::wall_clock()) {
            return Err(LoadError::Content("it has leases from more than a year ahead".into()));
        }
        Ok(value)
    }

    fn save(&self, output: &Output) {
        output.unsigned(self.queue.len() as u64);
        output.buffer(&self.queue.record().encode());
        parts_of(&self.queue, |block| output.buffer(block), |groups| output.buffer(groups));
    }

    /// One self-contained command for each part, in order; at last the queue's own record, which
    /// also makes the key of a queue without jobs.
    fn rewrite(&self, aof: &Aof) {
        let emit = |word| move |part: &[u8]| aof.emit(APPLY, word, part);
        parts_of(&self.queue, emit(c"JOBS"), emit(c"GROUPS"));
        aof.emit(APPLY, c"QUEUE", &self.queue.record().encode());
    }

    /// All that makes two queues behave the same, in one sequence, so that order counts. Left out:
    /// the totals, which tell what a server saw rather than what the queue is, and the check, which
    /// tells how it came to be so.
    fn digest(&self, digest: &Digest) {
        digest.add(&self.queue.record().without_history().encode());
        parts_of(&self.queue, |block| digest.add(block), |groups| digest.add(groups));
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
        lifecycle::copy(Live::WITHOUT_CONTEXT, self, database, key)
    }

    fn loaded(&mut self, database: Database, key: &[u8]) {
        lifecycle::loaded(Live::WITHOUT_CONTEXT, self, database, key);
    }

    fn left_key(&mut self, database: Database, key: &[u8]) {
        lifecycle::left_key(Live::WITHOUT_CONTEXT, self, database, key);
    }

    fn defrag(&mut self, from: u64, defragmenter: &mut impl Defragmenter) -> Option<u64> {
        self.queue.defrag(Walk::from_number(from), defragmenter).map(Walk::number)
    }
}
