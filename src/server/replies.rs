//! Replies: to the client that called, or to one that waited.

use std::ffi::{c_char, c_long, CString};
use std::marker::PhantomData;

use redis_module::raw;

/// A value of a field of a map.
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

impl<'v> From<Option<&'v [u8]>> for Value<'v> {
    fn from(bytes: Option<&'v [u8]>) -> Self {
        bytes.map_or(Value::Null, Value::Bulk)
    }
}

/// The fields of a map, in their order.
#[derive(Default)]
pub struct Fields<'v>(Vec<(&'static str, Value<'v>)>);

impl<'v> Fields<'v> {
    pub fn add(&mut self, name: &'static str, value: impl Into<Value<'v>>) {
        self.0.push((name, value.into()));
    }
}

/// Writes replies while the command or the callback runs.
#[derive(Clone, Copy)]
pub struct Replies<'c> {
    ctx: *mut raw::RedisModuleCtx,
    life: PhantomData<&'c ()>,
}

impl Replies<'_> {
    /// # Safety
    /// `ctx` can be replied to during `'c`.
    pub(super) unsafe fn new(ctx: *mut raw::RedisModuleCtx) -> Self {
        Replies { ctx, life: PhantomData }
    }

    pub fn integer(&self, number: u64) {
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        // SAFETY: the promise of `new`; so in every method here.
        unsafe { api!(RedisModule_ReplyWithLongLong)(self.ctx, number) };
    }

    pub fn bulk(&self, bytes: &[u8]) {
        // SAFETY: the server copies `bytes`.
        unsafe {
            api!(RedisModule_ReplyWithStringBuffer)(
                self.ctx,
                bytes.as_ptr().cast::<c_char>(),
                bytes.len(),
            )
        };
    }

    pub fn null(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithNull)(self.ctx) };
    }

    /// Begins an array: the next `len` replies are its elements.
    pub fn array(&self, len: usize) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithArray)(self.ctx, len as c_long) };
    }

    /// An array of these.
    pub fn bulks<'b>(&self, all: impl ExactSizeIterator<Item = &'b [u8]>) {
        self.array(all.len());
        all.for_each(|bytes| self.bulk(bytes));
    }

    /// Begins a page: a cursor, 0 for the last page, and an array. The next `len` replies are its
    /// elements.
    pub fn page(&self, next: Option<u32>, len: usize) {
        self.array(2);
        self.bulk(next.unwrap_or(0).to_string().as_bytes());
        self.array(len);
    }

    /// A map; a flat array in RESP2.
    pub fn fields(&self, fields: &Fields) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithMap)(self.ctx, fields.0.len() as c_long) };
        for (name, value) in &fields.0 {
            self.bulk(name.as_bytes());
            match value {
                Value::Integer(number) => self.integer(*number),
                Value::Bulk(bytes) => self.bulk(bytes),
                Value::Null => self.null(),
            }
        }
    }

    pub fn ok(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplyWithSimpleString)(self.ctx, c"OK".as_ptr()) };
    }

    /// An error line; its first word is the error code for clients.
    pub fn error(&self, message: &str) {
        // C would end it at a NUL; what clients sent is escaped in it.
        let line = message.split('\0').next().unwrap_or_default();
        debug_assert_eq!(line, message, "an error has no NUL");
        let line = CString::new(line).unwrap_or_default();
        // SAFETY: as above; the server copies the line.
        unsafe { api!(RedisModule_ReplyWithError)(self.ctx, line.as_ptr()) };
    }
}
