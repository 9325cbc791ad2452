//! A command being executed: its arguments, its replies, and what it tells replicas and the AOF.

use std::ffi::{c_char, c_int, c_long, CStr, CString};
use std::marker::PhantomData;

use redis_module::raw;

use super::data_type::APPLY_COMMAND;
use super::{leases, server};
use crate::queue::{Lease, Time};

/// One argument, as long as the command lasts.
#[derive(Clone, Copy)]
pub struct Arg<'c> {
    raw: *mut raw::RedisModuleString,
    life: PhantomData<&'c ()>,
}

impl<'c> Arg<'c> {
    pub fn bytes(self) -> &'c [u8] {
        // SAFETY: an argument is a valid string until the command ends, which 'c does not outlive.
        unsafe { string_bytes(self.raw) }
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleString {
        self.raw
    }
}

/// The bytes of a server's string.
///
/// # Safety
/// `string` is valid and unchanged during `'s`.
pub(super) unsafe fn string_bytes<'s>(string: *const raw::RedisModuleString) -> &'s [u8] {
    let mut len = 0;
    // SAFETY: the caller's promise.
    unsafe {
        let start = api!(RedisModule_StringPtrLen)(string, &mut len);
        std::slice::from_raw_parts(start.cast::<u8>(), len)
    }
}

/// The arguments of a command, its name being the first.
#[derive(Clone, Copy)]
pub struct Args<'c> {
    argv: *const *mut raw::RedisModuleString,
    len: usize,
    life: PhantomData<&'c ()>,
}

impl<'c> Args<'c> {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, at: usize) -> Option<Arg<'c>> {
        if at >= self.len {
            return None;
        }
        // SAFETY: the server gave `len` of them, and `at` is below that.
        let raw = unsafe { *self.argv.add(at) };
        Some(Arg { raw, life: PhantomData })
    }
}

pub struct Call<'c> {
    ctx: *mut raw::RedisModuleCtx,
    args: Args<'c>,
}

impl<'c> Call<'c> {
    /// # Safety
    /// The three are what the server calls a command with, and `'c` ends with that command.
    pub(super) unsafe fn new(
        ctx: *mut raw::RedisModuleCtx,
        argv: *mut *mut raw::RedisModuleString,
        argc: c_int,
    ) -> Call<'c> {
        let len = usize::try_from(argc).unwrap_or(0);
        Call { ctx, args: Args { argv, len, life: PhantomData } }
    }

    pub fn args(&self) -> Args<'c> {
        self.args
    }

    pub(super) fn ctx(&self) -> *mut raw::RedisModuleCtx {
        self.ctx
    }

    /// The time: to be asked for once a command.
    pub fn now(&self) -> Time {
        server::now()
    }

    /// The lowest number that a lease given now may have.
    pub fn lease_floor(&self, now: Time) -> Lease {
        leases::floor(now)
    }

    /// Remembers that a lease with this number exists.
    pub fn saw_lease(&self, lease: Lease, now: Time) {
        leases::saw(lease, now);
    }
}

/// What a field of a map can have for its value.
pub enum Value<'v> {
    Integer(u64),
    Bulk(&'v [u8]),
    Null,
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Integer(number)
    }
}

impl From<Option<u64>> for Value<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Value::Null, Value::Integer)
    }
}

impl<'v> From<&'v [u8]> for Value<'v> {
    fn from(bytes: &'v [u8]) -> Self {
        Value::Bulk(bytes)
    }
}

/// Replies.
impl Call<'_> {
    pub fn reply_integer(&self, number: u64) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        // SAFETY: the context is valid while the command lasts; so in every method here.
        unsafe { api!(RedisModule_ReplyWithLongLong)(self.ctx, number) };
    }

    pub fn reply_bulk(&self, bytes: &[u8]) {
        // SAFETY: the server copies `bytes`.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer)(self.ctx, bytes.as_ptr().cast::<c_char>(), bytes.len())
        };
    }

    pub fn reply_null(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull)(self.ctx) };
    }

    /// `len` more replies are its elements.
    pub fn reply_array(&self, len: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithArray)(self.ctx, len as c_long) };
    }

    /// `len` pairs of replies are its fields and values; a flat array in RESP2.
    pub fn reply_map(&self, len: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap)(self.ctx, len as c_long) };
    }

    /// One field of a map, and its value.
    pub fn reply_field<'v>(&self, name: &str, value: impl Into<Value<'v>>) {
        self.reply_bulk(name.as_bytes());
        match value.into() {
            Value::Integer(number) => self.reply_integer(number),
            Value::Bulk(bytes) => self.reply_bulk(bytes),
            Value::Null => self.reply_null(),
        }
    }

    pub fn reply_ok(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString)(self.ctx, c"OK".as_ptr()) };
    }

    /// An error line; its first word is the prefix that clients go by.
    pub fn reply_error(&self, message: &str) {
        let message = CString::new(message).unwrap_or_default();
        // SAFETY: as above; the server copies the line.
        unsafe { api!(RedisModule_ReplyWithError)(self.ctx, message.as_ptr()) };
    }
}

/// What replicas and the AOF get.
impl Call<'_> {
    /// The command as it is: for those whose effect doesn't depend on the time.
    pub fn replicate_verbatim(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.ctx) };
    }

    /// `DQ.APPLY key kind payload`.
    pub fn replicate_effect(&self, key: Arg, kind: &CStr, payload: &[u8]) {
        // SAFETY: the format names the types of the arguments, which the server copies or retains.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                APPLY_COMMAND.as_ptr(),
                c"scb".as_ptr(),
                key.raw,
                kind.as_ptr(),
                payload.as_ptr(),
                payload.len(),
            )
        };
    }

    /// `DQ.APPLY key kind id body record`. The body is not copied.
    pub fn replicate_job(&self, key: Arg, kind: &CStr, id: &[u8], body: Arg, record: &[u8]) {
        // SAFETY: the format names the types of the arguments, which the server copies or retains.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                APPLY_COMMAND.as_ptr(),
                c"scbsb".as_ptr(),
                key.raw,
                kind.as_ptr(),
                id.as_ptr(),
                id.len(),
                body.raw,
                record.as_ptr(),
                record.len(),
            )
        };
    }
}
