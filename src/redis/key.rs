//! A queue's key, open.

use std::ffi::c_int;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use redis_module::raw;

use super::call::{string_bytes, Arg, Call};
use super::data_type::{QueueValue, QUEUE_TYPE};
use super::effect::{publish, Effect};
use super::hints::Database;
use super::lateness::Lateness;
pub(super) use super::site::Site;
use super::take::{Taken, Terms};
use super::{pacemaker, waiting};
use crate::queue::Queue;
use crate::queue::Time;

/// The key holds something that is not a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// A key that holds a queue, until it is dropped.
pub struct OpenQueue<'k> {
    /// Closed when this is dropped; the value is valid until then.
    _key: OpenKey,
    value: NonNull<QueueValue>,
    call: &'k Call<'k>,
    name: Arg<'k>,
}

impl<'k> OpenQueue<'k> {
    /// The queue at this key; `None` when there is no such key.
    pub fn open(call: &'k Call<'k>, name: Arg<'k>, access: Access) -> Result<Option<Self>, WrongType> {
        let mode = match access {
            Access::Read => raw::REDISMODULE_READ,
            Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        // SAFETY: context and name are valid while the command lasts.
        let Some(key) = (unsafe { OpenKey::open(call.ctx(), name.raw(), mode as c_int) }) else {
            return Ok(None);
        };
        if key.is_empty() {
            return Ok(None);
        }
        let value = key.queue().ok_or(WrongType)?;
        Ok(Some(OpenQueue { _key: key, value, call, name }))
    }

    /// The queue at this key, made if there is no such key.
    pub fn open_or_create(call: &'k Call<'k>, name: Arg<'k>) -> Result<Self, WrongType> {
        if let Some(queue) = Self::open(call, name, Access::Write)? {
            return Ok(queue);
        }
        let mode = raw::REDISMODULE_READ | raw::REDISMODULE_WRITE;
        // SAFETY: context and name are valid while the command lasts.
        let key = unsafe { OpenKey::open(call.ctx(), name.raw(), mode as c_int) }.ok_or(WrongType)?;
        let value = key.set(QueueValue::new()).ok_or(WrongType)?;
        Ok(OpenQueue { _key: key, value, call, name })
    }

    /// After a change: makes it known, sees to it that the timer comes in time, and serves those who wait.
    pub fn publish(&mut self, effects: &[Effect]) {
        let site = self.call.site(self.name);
        publish(&site, &mut self.value_mut().queue, effects);
        self.serve();
    }

    /// Takes jobs for the client that called.
    pub fn take(&mut self, terms: &Terms, now: Time) -> Taken {
        let value = self.value_mut();
        let taken = Taken::from(&mut value.queue, terms, now);
        value.record_lateness(taken.handouts(), now);
        taken
    }

    /// Those who have been waiting for this queue come first.
    pub fn serve_those_who_wait(&mut self) {
        if waiting::consumers() > 0 {
            self.serve();
        }
    }

    fn serve(&mut self) {
        let site = self.call.site(self.name);
        waiting::serve_after_command(&site, self.value_mut());
        pacemaker::watch(self.value_mut(), || site.database(), || site.name());
    }

    /// How many consumers wait for this queue.
    pub fn consumers(&self) -> usize {
        waiting::consumers_at(&self.call.site(self.name))
    }

    pub fn lateness(&self) -> &Lateness {
        // SAFETY: as for `value_mut`.
        unsafe { &self.value.as_ref().lateness }
    }

    fn value_mut(&mut self) -> &mut QueueValue {
        // SAFETY: the value lives as long as its key, which is open and not deleted while `self` lives;
        // the server runs one command at a time, so that nobody else has it.
        unsafe { self.value.as_mut() }
    }
}

impl Deref for OpenQueue<'_> {
    type Target = Queue;

    fn deref(&self) -> &Queue {
        // SAFETY: as for `value_mut`.
        unsafe { &self.value.as_ref().queue }
    }
}

impl DerefMut for OpenQueue<'_> {
    fn deref_mut(&mut self) -> &mut Queue {
        &mut self.value_mut().queue
    }
}

/// Any key, open; closed when dropped.
pub(super) struct OpenKey(NonNull<raw::RedisModuleKey>);

impl OpenKey {
    /// `None` when there is nothing to be read there.
    ///
    /// # Safety
    /// `ctx` and `name` are valid, and stay so until the key is closed.
    pub unsafe fn open(
        ctx: *mut raw::RedisModuleCtx,
        name: *mut raw::RedisModuleString,
        mode: c_int,
    ) -> Option<OpenKey> {
        // SAFETY: the caller's promise.
        let key = unsafe { api!(RedisModule_OpenKey)(ctx, name, mode) };
        NonNull::new(key).map(OpenKey)
    }

    fn is_empty(&self) -> bool {
        // SAFETY: the key is open.
        let kind = unsafe { api!(RedisModule_KeyType)(self.0.as_ptr()) };
        kind == raw::REDISMODULE_KEYTYPE_EMPTY as c_int
    }

    /// The queue that the key holds; `None` when it holds something else, or nothing.
    pub fn queue(&self) -> Option<NonNull<QueueValue>> {
        // SAFETY: the key is open.
        unsafe { queue_of(self.0.as_ptr()) }
    }

    fn set(&self, value: QueueValue) -> Option<NonNull<QueueValue>> {
        let value = NonNull::from(Box::leak(Box::new(value)));
        // SAFETY: the key is open for writing; the server owns the value from here on, and frees it
        // through the type's `free`.
        let status = unsafe {
            api!(RedisModule_ModuleTypeSetValue)(self.0.as_ptr(), QUEUE_TYPE.raw(), value.as_ptr().cast())
        };
        (status == raw::REDISMODULE_OK as c_int).then_some(value)
    }
}

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the key is open, and not used again.
        unsafe { api!(RedisModule_CloseKey)(self.0.as_ptr()) };
    }
}

/// The queue that an open key holds.
///
/// # Safety
/// `key` is open.
pub(super) unsafe fn queue_of(key: *mut raw::RedisModuleKey) -> Option<NonNull<QueueValue>> {
    // SAFETY: the key is open; only a value of our own type is taken for one.
    unsafe {
        let is_queue = api!(RedisModule_KeyType)(key) == raw::REDISMODULE_KEYTYPE_MODULE as c_int
            && api!(RedisModule_ModuleTypeGetType)(key) == QUEUE_TYPE.raw();
        let value = is_queue.then(|| api!(RedisModule_ModuleTypeGetValue)(key));
        value.and_then(|value| NonNull::new(value.cast()))
    }
}

/// Looks at the queue at a key, outside a command: that doesn't count as a use of the key, nor expire it.
/// `None` when there is no queue.
pub(super) fn visit<R>(
    ctx: *mut raw::RedisModuleCtx,
    database: Database,
    name: &[u8],
    work: impl FnOnce(&Site, &mut QueueValue) -> R,
) -> Option<R> {
    open_for(ctx, database, name, raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOEXPIRE, work)
}

/// As [`visit`], for changes: a key that has expired is gone.
pub(super) fn serve_at<R>(
    ctx: *mut raw::RedisModuleCtx,
    database: Database,
    name: &[u8],
    work: impl FnOnce(&Site, &mut QueueValue) -> R,
) -> Option<R> {
    open_for(ctx, database, name, raw::REDISMODULE_READ | raw::REDISMODULE_WRITE, work)
}

fn open_for<R>(
    ctx: *mut raw::RedisModuleCtx,
    database: Database,
    name: &[u8],
    mode: u32,
    work: impl FnOnce(&Site, &mut QueueValue) -> R,
) -> Option<R> {
    let mode = mode
        | raw::REDISMODULE_OPEN_KEY_NOTOUCH
        | raw::REDISMODULE_OPEN_KEY_NONOTIFY
        | raw::REDISMODULE_OPEN_KEY_NOSTATS;
    // SAFETY: `ctx` is valid on the main thread; the name is freed after the key is closed; the value
    // lives as long as the key is open, and nobody else has it meanwhile.
    unsafe {
        if api!(RedisModule_SelectDb)(ctx, database) != raw::REDISMODULE_OK as c_int {
            return None;
        }
        let string = api!(RedisModule_CreateString)(std::ptr::null_mut(), name.as_ptr().cast(), name.len());
        let key = OpenKey::open(ctx, string, mode as c_int);
        let site = Site::new(ctx, string);
        let result = key.as_ref().and_then(OpenKey::queue).map(|mut value| work(&site, value.as_mut()));
        drop(key);
        api!(RedisModule_FreeString)(std::ptr::null_mut(), string);
        result
    }
}

/// The bytes of a key's name.
///
/// # Safety
/// `name` is null or valid during `'s`.
pub(super) unsafe fn name_bytes<'s>(name: *const raw::RedisModuleString) -> Option<&'s [u8]> {
    // SAFETY: the caller's promise.
    (!name.is_null()).then(|| unsafe { string_bytes(name) })
}
