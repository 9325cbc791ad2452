//! The data type: what the server may ask of a queue, and what each answer rests on.
//!
//! | callback | when, and why it is as it is |
//! | --- | --- |
//! | `rdb_load`, `rdb_save` | files, full sync, DUMP/RESTORE, MIGRATE; saving runs in a forked child (`persist.rs`) |
//! | `aof_rewrite` | BGREWRITEAOF without the RDB preamble; the server calls it unchecked, so it must be there |
//! | `digest` | DEBUG DIGEST-VALUE: how a primary and its replicas are compared |
//! | `mem_usage` | MEMORY USAGE; no walk over the jobs |
//! | `free` | may run on a background thread: touches nothing shared |
//! | `free_effort2` | tells UNLINK and lazy freeing how many jobs there are |
//! | `unlink2` | the key loses its value: because that goes, or because RENAME or MOVE takes it elsewhere |
//! | `copy2` | COPY: the copy waits for its own times |
//!
//! Not there on purpose: `defrag` (jobs are small blocks of the server's allocator, pages are large ones),
//! `aux_*` (all there is to save is inside the keys).

use std::ffi::{c_void, CStr};
use std::sync::{Arc, OnceLock, Weak};

use redis_module::native_types::RedisType;
use redis_module::raw;

use super::key::name_bytes;
use super::lateness::Lateness;
use super::sums::Share;
use super::{load, pacemaker, persist, reaper, sweep};
use crate::queue::{Handout, Queue, Time};

/// `TYPE key` answers this; nine characters, as the server wants it.
pub const TYPE_NAME: &str = "delayq-dq";
/// The version of what `rdb_save` writes. All up to this are read.
pub const ENCODING_VERSION: i32 = 1;
/// The command in which effects are replicated and rewritten.
pub const APPLY_COMMAND: &CStr = c"DQ.APPLY";

/// What a queue's key holds.
pub struct QueueValue {
    pub queue: Queue,
    /// The time of this queue's hint, if it has one.
    pub hint: Option<Time>,
    pub lateness: Lateness,
    pub share: Share,
    /// Ends with the value: for those who want to know, later, whether it still lives.
    life: Arc<()>,
}

impl QueueValue {
    pub fn new() -> QueueValue {
        QueueValue::with(Queue::new(hash_seed()))
    }

    fn with(queue: Queue) -> QueueValue {
        QueueValue {
            queue,
            hint: None,
            lateness: Lateness::default(),
            share: Share::new(),
            life: Arc::new(()),
        }
    }

    pub fn record_lateness(&mut self, handouts: &[Handout], now: Time) {
        if !handouts.is_empty() {
            self.lateness.record(handouts, now);
        }
    }

    pub fn life(&self) -> Weak<()> {
        Arc::downgrade(&self.life)
    }
}

/// The key of the id hash: random, so that nobody can choose ids that collide.
pub fn hash_seed() -> (u64, u64) {
    static SEED: OnceLock<(u64, u64)> = OnceLock::new();
    *SEED.get_or_init(|| (load::random(), load::random()))
}

pub struct QueueType(pub RedisType);

impl QueueType {
    pub fn raw(&self) -> *mut raw::RedisModuleType {
        *self.0.raw_type.borrow()
    }

    /// For the crate's `redis_module!`.
    pub fn create_data_type(&self, ctx: *mut raw::RedisModuleCtx) -> Result<(), &str> {
        self.0.create_data_type(ctx)
    }
}

pub static QUEUE_TYPE: QueueType = QueueType(RedisType::new(
    TYPE_NAME,
    ENCODING_VERSION,
    raw::RedisModuleTypeMethods {
        // The last version that Redis 7.0 knows; later ones only add `aux_save2`.
        version: 4,
        rdb_load: Some(persist::rdb_load),
        rdb_save: Some(persist::rdb_save),
        aof_rewrite: Some(persist::aof_rewrite),
        digest: Some(persist::digest),
        mem_usage: Some(mem_usage),
        free: Some(free),
        free_effort2: Some(free_effort),
        unlink2: Some(unlink),
        copy2: Some(copy),
        mem_usage2: None,
        free_effort: None,
        unlink: None,
        copy: None,
        defrag: None,
        aux_load: None,
        aux_save: None,
        aux_save2: None,
        aux_save_triggers: 0,
    },
));

/// The value behind a pointer that the server was given by us.
///
/// # Safety
/// `value` came from [`into_raw`] or from a key, and lives during `'v`.
pub unsafe fn value_ref<'v>(value: *const c_void) -> &'v QueueValue {
    // SAFETY: the caller's promise.
    unsafe { &*value.cast::<QueueValue>() }
}

/// Hands a value over to the server, which frees it with [`free`].
pub fn into_raw(queue: Queue) -> *mut QueueValue {
    Box::into_raw(Box::new(QueueValue::with(queue)))
}

unsafe extern "C" fn mem_usage(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type.
    let value = unsafe { value_ref(value) };
    size_of::<QueueValue>() - size_of::<Queue>() + value.queue.memory() + value.lateness.memory()
}

unsafe extern "C" fn free(value: *mut c_void) {
    // SAFETY: the server gives the value back for good.
    let QueueValue { queue, life, share, .. } = *unsafe { Box::from_raw(value.cast::<QueueValue>()) };
    drop((life, share));
    reaper::free(queue);
}

unsafe extern "C" fn free_effort(_ctx: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref(value) }.queue.len().max(1)
}

unsafe extern "C" fn unlink(ctx: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) {
    // SAFETY: the server passes a value of this type that it still holds, on its main thread.
    let value = unsafe { &mut *value.cast_mut().cast::<QueueValue>() };
    // SAFETY: the context is that of this callback; the name is valid while it lasts.
    let (name, database) = unsafe {
        let name = name_bytes(api!(RedisModule_GetKeyNameFromOptCtx)(ctx));
        (name, api!(RedisModule_GetDbIdFromOptCtx)(ctx))
    };
    if pacemaker::forget(value, database, name.unwrap_or_default()) {
        sweep::left_its_key(value);
    }
}

unsafe extern "C" fn copy(ctx: *mut raw::RedisModuleKeyOptCtx, value: *const c_void) -> *mut c_void {
    // SAFETY: the server passes a value of this type.
    let copied = into_raw(unsafe { value_ref(value) }.queue.clone());
    // SAFETY: the context is that of this callback; the name is valid while it lasts; nobody else has
    // the copy yet.
    unsafe {
        let database = || api!(RedisModule_GetToDbIdFromOptCtx)(ctx);
        let name = name_bytes(api!(RedisModule_GetToKeyNameFromOptCtx)(ctx));
        pacemaker::watch(&mut *copied, database, || name.unwrap_or_default());
    }
    copied.cast()
}
