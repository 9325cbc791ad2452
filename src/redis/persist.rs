//! Files: RDB, AOF rewrite, and the digest that compares.
//!
//! An RDB value is: the number of jobs, the queue's record, then id, body and record of each job, in the
//! order of [`Queue::jobs`]. Job by job, so that no copy of the queue is made. Saving runs in a forked
//! child: it reads, it moves nothing.

use std::ffi::{c_char, c_int, c_void};

use redis_module::raw;

use super::data_type::{hash_seed, into_raw, value_ref, APPLY_COMMAND, ENCODING_VERSION};
use super::key::name_bytes;
use super::{leases, log, pacemaker, server};
use crate::queue::{JobRecord, JobView, Queue, QueueRecord, Record, RecordError};

/// Why a value could not be loaded.
enum LoadError {
    /// The file ended, or could not be read.
    Input,
    Version(c_int),
    Record(RecordError),
}

impl From<RecordError> for LoadError {
    fn from(error: RecordError) -> Self {
        LoadError::Record(error)
    }
}

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LoadError::Input => f.write_str("it ends before its end"),
            LoadError::Version(version) => write!(
                f,
                "it has version {version}, this module reads up to {ENCODING_VERSION}: a newer dq wrote it"
            ),
            LoadError::Record(error) => error.fmt(f),
        }
    }
}

pub unsafe extern "C" fn rdb_save(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    let queue = unsafe { &value_ref(value).queue };
    // SAFETY: `io` is the one of this callback; the server copies the buffers.
    let save = |bytes: &[u8]| unsafe {
        api!(RedisModule_SaveStringBuffer)(io, bytes.as_ptr().cast::<c_char>(), bytes.len());
    };
    // SAFETY: as above.
    unsafe { api!(RedisModule_SaveUnsigned)(io, queue.len() as u64) };
    save(&queue.record().encode());
    for job in queue.jobs() {
        save(job.id.bytes());
        save(job.body);
        save(&job.record().encode());
    }
}

pub unsafe extern "C" fn rdb_load(io: *mut raw::RedisModuleIO, version: c_int) -> *mut c_void {
    match load(&Input(io), version) {
        Ok(queue) => {
            // On a replica that is promoted, a new queue under this key goes on behind these.
            queue.last_lease().into_iter().for_each(|lease| leases::saw(lease, server::now()));
            let value = into_raw(queue);
            // SAFETY: `io` is the one of this callback, the name valid while it lasts; nobody else has
            // the value yet.
            unsafe {
                let database = || api!(RedisModule_GetDbIdFromIO)(io);
                let name = name_bytes(api!(RedisModule_GetKeyNameFromIO)(io));
                pacemaker::watch(&mut *value, database, || name.unwrap_or_default());
            }
            value.cast()
        }
        Err(error) => {
            log::warning(&format!("a queue can't be loaded: {error}"));
            std::ptr::null_mut()
        }
    }
}

fn load(input: &Input, version: c_int) -> Result<Queue, LoadError> {
    if !(1..=ENCODING_VERSION).contains(&version) {
        return Err(LoadError::Version(version));
    }
    let jobs = input.unsigned()?;
    let record = QueueRecord::decode(input.buffer()?.bytes())?;
    let mut queue = Queue::new(hash_seed());
    for _ in 0..jobs {
        let (id, body, job) = (input.buffer()?, input.buffer()?, input.buffer()?);
        queue.load(id.bytes(), body.bytes(), &JobRecord::decode(job.bytes())?)?;
    }
    queue.restore(&record)?;
    Ok(queue)
}

/// An RDB being read. A read that fails is an error here, not the end of the server
/// (`HANDLE_IO_ERRORS`).
struct Input(*mut raw::RedisModuleIO);

impl Input {
    fn unsigned(&self) -> Result<u64, LoadError> {
        // SAFETY: the `io` of the callback that this lives in.
        let number = unsafe { api!(RedisModule_LoadUnsigned)(self.0) };
        self.check().map(|()| number)
    }

    fn buffer(&self) -> Result<ServerBuffer, LoadError> {
        let mut len = 0;
        // SAFETY: as above.
        let start = unsafe { api!(RedisModule_LoadStringBuffer)(self.0, &mut len) };
        self.check()?;
        if start.is_null() {
            return Err(LoadError::Input);
        }
        Ok(ServerBuffer { start, len })
    }

    fn check(&self) -> Result<(), LoadError> {
        // SAFETY: as above.
        match unsafe { api!(RedisModule_IsIOError)(self.0) } {
            0 => Ok(()),
            _ => Err(LoadError::Input),
        }
    }
}

/// Bytes that the server allocated for us; freed when dropped.
struct ServerBuffer {
    start: *mut c_char,
    len: usize,
}

impl ServerBuffer {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the server gave start and length of an allocation that is ours until dropped.
        unsafe { std::slice::from_raw_parts(self.start.cast::<u8>(), self.len) }
    }
}

impl Drop for ServerBuffer {
    fn drop(&mut self) {
        // SAFETY: as above; not used again.
        unsafe { api!(RedisModule_Free)(self.start.cast::<c_void>()) };
    }
}

/// One self-contained command a job, in order; at last the queue's own record, which also makes the key
/// of a queue without jobs.
pub unsafe extern "C" fn aof_rewrite(
    aof: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: the server passes a value of our type.
    let queue = unsafe { &value_ref(value).queue };
    for job in queue.jobs() {
        let (id, record) = (job.id.bytes(), job.record().encode());
        // SAFETY: `aof` and `key` are those of this callback; the format names the types of the rest.
        unsafe {
            api!(RedisModule_EmitAOF)(
                aof,
                APPLY_COMMAND.as_ptr(),
                c"scbbb".as_ptr(),
                key,
                c"PUT".as_ptr(),
                id.as_ptr(),
                id.len(),
                job.body.as_ptr(),
                job.body.len(),
                record.as_ptr(),
                record.len(),
            );
        }
    }
    let record = queue.record().encode();
    // SAFETY: as above.
    unsafe {
        api!(RedisModule_EmitAOF)(
            aof,
            APPLY_COMMAND.as_ptr(),
            c"scb".as_ptr(),
            key,
            c"QUEUE".as_ptr(),
            record.as_ptr(),
            record.len(),
        );
    }
}

/// All that makes two queues behave the same, in one sequence, so that order counts. Jobs that don't live for
/// ever come one by one instead, in no order: where they stand depends on who has buried them by now. Left
/// out: the totals, which tell what a server saw rather than what the queue is.
pub unsafe extern "C" fn digest(digest: *mut raw::RedisModuleDigest, value: *mut c_void) {
    // SAFETY: the server passes a value of our type.
    let queue = unsafe { &value_ref(value).queue };
    // SAFETY: `digest` is the one of this callback; the server reads the bytes at once.
    let add = |bytes: &[u8]| unsafe {
        api!(RedisModule_DigestAddStringBuffer)(digest, bytes.as_ptr().cast::<c_char>(), bytes.len());
    };
    // SAFETY: as above.
    let end_sequence = || unsafe { api!(RedisModule_DigestEndSequence)(digest) };
    let add_job = |job: &JobView| {
        add(job.id.bytes());
        add(job.body);
        add(&job.record().encode());
    };
    let lives_for_ever = |job: &JobView| job.progress.dies.is_none();
    add(&queue.record().without_totals().encode());
    queue.jobs().filter(lives_for_ever).for_each(|job| add_job(&job));
    end_sequence();
    for job in queue.jobs().filter(|job| !lives_for_ever(job)) {
        add_job(&job);
        end_sequence();
    }
}
