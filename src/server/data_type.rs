//! The module's data type: what the server calls for a value, and why each callback is as it is.
//!
//! | callback | when, and why it is as it is |
//! | --- | --- |
//! | `rdb_load`, `rdb_save` | files, full sync, DUMP/RESTORE, MIGRATE; saving runs in a forked child (`persist.rs`) |
//! | `aof_rewrite` | BGREWRITEAOF without the RDB preamble; the server calls it unchecked, so it must be there |
//! | `digest` | DEBUG DIGEST-VALUE: how a primary and its replicas are compared |
//! | `mem_usage` | MEMORY USAGE; doesn't walk over the jobs |
//! | `free` | may run on a background thread: uses only what is made for that |
//! | `free_effort2` | how much UNLINK and lazy freeing would have to free |
//! | `unlink2` | the key loses its value: it is deleted, or RENAME or MOVE takes it to another key |
//! | `copy2` | COPY: the copy gets a hint of its own |
//! | `defrag` | active defragmentation: each allocation may get another address, in slices (`defrag.rs`) |
//!
//! Absent on purpose: `aux_*` (everything to save is in the keys).

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use redis_module::native_types::RedisType;
use redis_module::raw;

use super::arg::name_bytes;
use super::context::Database;
use super::defrag::slice;
use super::logfile;
use super::persist::{Aof, Digest, Input, LoadError, Output};
use crate::queue::Defragmenter;

/// A value of the module's type, as a key holds it.
pub trait StoredValue: Sized + 'static {
    fn data_type() -> &'static DataType<Self>;

    /// Reads a value from a file, which was written with this encoding version.
    fn load(input: &Input, version: i32) -> Result<Self, LoadError>;
    /// Writes the value to a file. Runs in a forked child: it only reads the value.
    fn save(&self, output: &Output);
    /// Writes commands that create the same value. Runs in a forked child.
    fn rewrite(&self, aof: &Aof);
    fn digest(&self, digest: &Digest);
    fn memory(&self) -> usize;
    /// About how many allocations would be freed.
    fn free_effort(&self) -> usize;
    /// May run on any thread.
    fn free(self: Box<Self>);
    /// Creates a copy that will be at this key.
    fn copy(&self, database: Database, key: &[u8]) -> Self;
    /// The value was read from a file and will be at this key.
    fn loaded(&mut self, database: Database, key: &[u8]);
    /// The value is no longer at this key. It may live on at another.
    fn left_key(&mut self, database: Database, key: &[u8]);
    /// Hands its allocations from `from` on to a defragmenter. Returns where to continue when its
    /// time is over. 0 is the beginning.
    fn defrag(&mut self, from: u64, defragmenter: &mut impl Defragmenter) -> Option<u64>;
}

pub struct DataType<V> {
    raw: RedisType,
    value: PhantomData<fn() -> V>,
}

impl<V: StoredValue> DataType<V> {
    /// `name` is the reply of `TYPE key`: nine characters, as the server requires. The encoding
    /// version is the version of the files that are written.
    pub const fn new(name: &'static str, encoding_version: i32) -> DataType<V> {
        let methods = raw::RedisModuleTypeMethods {
            // The last version that Redis 7.0 knows. Later ones only add `aux_save2`.
            version: 4,
            rdb_load: Some(rdb_load::<V>),
            rdb_save: Some(rdb_save::<V>),
            aof_rewrite: Some(aof_rewrite::<V>),
            digest: Some(digest::<V>),
            mem_usage: Some(mem_usage::<V>),
            free: Some(free::<V>),
            free_effort2: Some(free_effort::<V>),
            unlink2: Some(unlink::<V>),
            copy2: Some(copy::<V>),
            mem_usage2: None,
            free_effort: None,
            unlink: None,
            copy: None,
            defrag: Some(defrag::<V>),
            aux_load: None,
            aux_save: None,
            aux_save2: None,
            aux_save_triggers: 0,
        };
        DataType { raw: RedisType::new(name, encoding_version, methods), value: PhantomData }
    }

    pub(super) fn raw(&self) -> *mut raw::RedisModuleType {
        *self.raw.raw_type.borrow()
    }

    /// For the crate's `redis_module!`.
    pub fn create_data_type(&self, ctx: *mut raw::RedisModuleCtx) -> Result<(), &str> {
        self.raw.create_data_type(ctx)
    }
}

/// The value of a pointer that we gave to the server.
///
/// # Safety
/// `value` is one of this type, and lives during `'v`.
unsafe fn value_ref<'v, V: StoredValue>(value: *const c_void) -> &'v V {
    // SAFETY: the caller's promise.
    unsafe { &*value.cast::<V>() }
}

unsafe extern "C" fn defrag<V: StoredValue>(
    ctx: *mut raw::RedisModuleDefragCtx,
    _key: *mut raw::RedisModuleString,
    value: *mut *mut c_void,
) -> c_int {
    // SAFETY: the server passes a value of this type that isn't open; only its key holds it.
    unsafe { slice::<V>(ctx, value, V::defrag) }
}

unsafe extern "C" fn rdb_load<V: StoredValue>(
    io: *mut raw::RedisModuleIO,
    version: c_int,
) -> *mut c_void {
    let mut value = match V::load(&Input::new(io), version) {
        Ok(value) => Box::new(value),
        Err(error) => {
            logfile::warning(&format!("a queue can't be loaded: {error}"));
            return std::ptr::null_mut();
        }
    };
    // SAFETY: `io` belongs to this callback; the name is valid while it runs.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetKeyNameFromIO)(io));
        (api!(RedisModule_GetDbIdFromIO)(io), name)
    };
    value.loaded(database, name);
    Box::into_raw(value).cast()
}

unsafe extern "C" fn rdb_save<V: StoredValue>(io: *mut raw::RedisModuleIO, value: *mut c_void) {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref::<V>(value) }.save(&Output::new(io));
}

unsafe extern "C" fn aof_rewrite<V: StoredValue>(
    aof: *mut raw::RedisModuleIO,
    key: *mut raw::RedisModuleString,
    value: *mut c_void,
) {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref::<V>(value) }.rewrite(&Aof::new(aof, key));
}

unsafe extern "C" fn digest<V: StoredValue>(
    digest: *mut raw::RedisModuleDigest,
    value: *mut c_void,
) {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref::<V>(value) }.digest(&Digest::new(digest));
}

unsafe extern "C" fn mem_usage<V: StoredValue>(value: *const c_void) -> usize {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref::<V>(value) }.memory()
}

unsafe extern "C" fn free<V: StoredValue>(value: *mut c_void) {
    // SAFETY: the server hands over the value for good.
    unsafe { Box::from_raw(value.cast::<V>()) }.free();
}

unsafe extern "C" fn free_effort<V: StoredValue>(
    _ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) -> usize {
    // SAFETY: the server passes a value of this type.
    unsafe { value_ref::<V>(value) }.free_effort()
}

unsafe extern "C" fn unlink<V: StoredValue>(
    ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) {
    // SAFETY: the server passes a value of this type that it still holds, on its main thread.
    let value = unsafe { &mut *value.cast_mut().cast::<V>() };
    // SAFETY: the context belongs to this callback; the name is valid while it runs.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetKeyNameFromOptCtx)(ctx));
        (api!(RedisModule_GetDbIdFromOptCtx)(ctx), name)
    };
    value.left_key(database, name);
}

unsafe extern "C" fn copy<V: StoredValue>(
    ctx: *mut raw::RedisModuleKeyOptCtx,
    value: *const c_void,
) -> *mut c_void {
    // SAFETY: the server passes a value of this type.
    let value = unsafe { value_ref::<V>(value) };
    // SAFETY: the context belongs to this callback; the name is valid while it runs.
    let (database, name) = unsafe {
        let name = name_bytes(api!(RedisModule_GetToKeyNameFromOptCtx)(ctx));
        (api!(RedisModule_GetToDbIdFromOptCtx)(ctx), name)
    };
    Box::into_raw(Box::new(value.copy(database, name))).cast()
}
