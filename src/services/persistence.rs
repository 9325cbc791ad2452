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

impl StoredValue for QueueValue {
    fn data_type() -> &'static DataType<QueueValue> {
        &QUEUE_TYPE
    }

    /// The number of jobs, the queue's record, then blocks of jobs in the order of [`Queue::jobs`].
    /// Behind them the records of groups, if there are any.
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

    /// Block by block, so that no copy of the queue is made.
    fn save(&self, output: &Output) {
        output.unsigned(self.queue.len() as u64);
        output.buffer(&self.queue.record().encode());
        let mut block = BlockWriter::default();
        for job in self.queue.jobs() {
            if block.add(&job) {
                output.buffer(block.bytes());
                block.clear();
            }
        }
        if !block.bytes().is_empty() {
            output.buffer(block.bytes());
        }
        for records in self.queue.group_records().chunks(GROUPS_AT_ONCE) {
            output.buffer(&records.to_vec().encode());
        }
    }

    /// One self-contained command a job, in order; at last the queue's own record, which also makes
    /// the key of a queue without jobs.
    fn rewrite(&self, aof: &Aof) {
        for job in self.queue.jobs() {
            aof.emit_three(APPLY, c"PUT", [job.id.bytes(), job.body, &job.record().encode()]);
        }
        for records in self.queue.group_records().chunks(GROUPS_AT_ONCE) {
            aof.emit(APPLY, c"GROUPS", &records.to_vec().encode());
        }
        aof.emit(APPLY, c"QUEUE", &self.queue.record().encode());
    }

    /// All that makes two queues behave the same, in one sequence, so that order counts. Left out:
    /// the totals, which tell what a server saw rather than what the queue is, and the check, which
    /// tells how it came to be so.
    fn digest(&self, digest: &Digest) {
        digest.add(&self.queue.record().without_history().encode());
        for job in self.queue.jobs() {
            digest.add(job.id.bytes());
            digest.add(job.body);
            digest.add(&job.record().encode());
        }
        for records in self.queue.group_records().chunks(GROUPS_AT_ONCE) {
            digest.add(&records.to_vec().encode());
        }
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
