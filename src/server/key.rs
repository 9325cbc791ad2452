//! A key: its name, for what is done to it, and its value while it is open.

use std::ffi::{c_int, c_longlong, CStr};
use std::marker::PhantomData;
use std::ptr::{null_mut, NonNull};

use redis_module::raw;

use super::arg::{new_string, string_bytes, Args};
use super::context::{Context, Database};
use super::data_type::StoredValue;
use super::{run, slots};

/// The key holds a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrongType;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Why a key can't be opened outside a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// There is no such key, or no value of this type at it.
    Missing,
    /// The key's slot belongs to another node: either the slot is about to become this node's, or
    /// the key is about to be removed.
    NotOwn,
}

/// What the services do with a key, a real one or a simulated one.
pub trait QueueKey: Copy {
    fn database(&self) -> Database;

    fn name(&self) -> &[u8];

    /// Whether this is part of a transaction or a script, whose commands are seen all at once.
    fn is_inside_another(&self) -> bool;

    /// Tells WATCH and client-side caches that the value has changed.
    fn signal_modified(&self);

    /// Whether anybody asked for keyspace notifications of the class of module types.
    fn is_notifying(&self) -> bool;

    /// Sends a keyspace notification of the class of module types.
    fn notify(&self, event: &CStr);

    /// Replicates the command that is being executed, as it was sent.
    fn replicate_as_sent(&self);

    /// Replicates `command key ms extra` and the arguments of the command that is being executed,
    /// without the key, which is its first argument.
    fn replicate_sent(&self, command: &CStr, unix_ms: u64, extra: &str);

    /// Replicates `command key args`.
    fn replicate_args(&self, command: &CStr, args: &[&[u8]]);

    /// Runs a command that writes to another key of this database, with the server's own checks,
    /// and replicates it. Where the server refuses it, nothing has changed: the error is the
    /// server's.
    fn run(&self, command: &CStr, args: &[&[u8]]) -> Result<(), String>;
}

/// A key's name in the selected database of the context; and the command that names it, if there is
/// one.
#[derive(Clone, Copy)]
pub struct Key<'c> {
    ctx: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    args: Option<Args<'c>>,
    life: PhantomData<&'c ()>,
}

impl<'c> Key<'c> {
    /// # Safety
    /// All are valid during `'c`, on the main thread.
    pub(super) unsafe fn new(
        ctx: *mut raw::RedisModuleCtx,
        name: *mut raw::RedisModuleString,
        args: Args<'c>,
    ) -> Key<'c> {
        Key { ctx, name, args: Some(args), life: PhantomData }
    }

    /// The value at this key; `None` when there is no such key.
    pub fn open<V: StoredValue>(
        &self,
        access: Access,
    ) -> Result<Option<OpenValue<'c, V>>, WrongType> {
        let mode = match access {
            Access::Read => raw::REDISMODULE_READ,
            Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
        };
        match self.open_raw(mode) {
            Some(open) if !open.is_empty() => open.into_value().map(Some).ok_or(WrongType),
            Some(_) | None => Ok(None),
        }
    }

    /// The value at this key, created if there is no such key. Also returns whether it was created.
    pub fn open_or_create<V: StoredValue>(
        &self,
        make: impl FnOnce() -> V,
    ) -> Result<(OpenValue<'c, V>, bool), WrongType> {
        let open =
            self.open_raw(raw::REDISMODULE_READ | raw::REDISMODULE_WRITE).ok_or(WrongType)?;
        let is_new = open.is_empty();
        if is_new && !open.set(make()) {
            return Err(WrongType);
        }
        open.into_value().map(|value| (value, is_new)).ok_or(WrongType)
    }

    fn open_raw(&self, mode: u32) -> Option<OpenKey> {
        // SAFETY: as above.
        let key = unsafe { api!(RedisModule_OpenKey)(self.ctx, self.name, mode as c_int) };
        NonNull::new(key).map(OpenKey)
    }
}

impl QueueKey for Key<'_> {
    fn name(&self) -> &[u8] {
        // SAFETY: the promise of `new`; so in every method here.
        unsafe { string_bytes(self.name) }
    }

    fn database(&self) -> Database {
        // SAFETY: as above.
        unsafe { api!(RedisModule_GetSelectedDb)(self.ctx) }
    }

    fn signal_modified(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_SignalModifiedKey)(self.ctx, self.name) };
    }

    fn is_notifying(&self) -> bool {
        // SAFETY: needs nothing.
        unsafe { api!(RedisModule_GetNotifyKeyspaceEvents)() & raw::REDISMODULE_NOTIFY_MODULE != 0 }
    }

    fn notify(&self, event: &CStr) {
        let class = raw::REDISMODULE_NOTIFY_MODULE;
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_NotifyKeyspaceEvent)(self.ctx, class, event.as_ptr(), self.name)
        };
    }

    fn is_inside_another(&self) -> bool {
        // SAFETY: as above.
        let flags = unsafe { api!(RedisModule_GetContextFlags)(self.ctx) } as u32;
        flags & (raw::REDISMODULE_CTX_FLAGS_MULTI | raw::REDISMODULE_CTX_FLAGS_LUA) != 0
    }

    fn replicate_as_sent(&self) {
        // SAFETY: as above.
        unsafe { api!(RedisModule_ReplicateVerbatim)(self.ctx) };
    }

    fn replicate_sent(&self, command: &CStr, unix_ms: u64, extra: &str) {
        let Some((args, name)) = self.args.and_then(|args| Some((args, args.get(0)?))) else {
            debug_assert!(false, "only a command has arguments");
            return;
        };
        let (rest, len) = args.raw_from(2);
        // SAFETY: as above; the format names the types of the arguments, which the server copies or
        // retains.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                command.as_ptr(),
                c"slbsv".as_ptr(),
                self.name,
                unix_ms as c_longlong,
                extra.as_ptr(),
                extra.len(),
                name.raw(),
                rest,
                len,
            )
        };
    }

    fn replicate_args(&self, command: &CStr, args: &[&[u8]]) {
        // An argument that is repeated between others, as ID is before each of many ids, becomes one
        // string.
        let is_again = |n: usize| {
            n.checked_sub(2)
                .filter(|before| args.get(*before).zip(args.get(n)).is_some_and(is_one_slice))
        };
        let mut strings = Vec::with_capacity(args.len());
        for (n, arg) in args.iter().enumerate() {
            let made = is_again(n).and_then(|before| strings.get(before).copied());
            // SAFETY: each new string is freed below; the server retains what it keeps.
            strings.push(made.unwrap_or_else(|| unsafe { new_string(arg) }));
        }
        // SAFETY: as above.
        unsafe {
            api!(RedisModule_Replicate)(
                self.ctx,
                command.as_ptr(),
                c"sv".as_ptr(),
                self.name,
                strings.as_ptr(),
                strings.len(),
            )
        };
        for (n, string) in strings.into_iter().enumerate() {
            if is_again(n).is_none() {
                // SAFETY: created above, not used again.
                unsafe { api!(RedisModule_FreeString)(null_mut(), string) };
            }
        }
    }

    fn run(&self, command: &CStr, args: &[&[u8]]) -> Result<(), String> {
        // SAFETY: as above.
        unsafe { run::run(self.ctx, command, args) }
    }
}

/// Whether both are the same bytes in memory, not only equal.
fn is_one_slice((one, other): (&&[u8], &&[u8])) -> bool {
    std::ptr::eq(*one, *other)
}

/// An open key of any type; closed when dropped.
struct OpenKey(NonNull<raw::RedisModuleKey>);

impl OpenKey {
    fn is_empty(&self) -> bool {
        // SAFETY: the key is open.
        let kind = unsafe { api!(RedisModule_KeyType)(self.0.as_ptr()) };
        kind == raw::REDISMODULE_KEYTYPE_EMPTY as c_int
    }

    /// `None` if the key is empty or holds another type.
    fn into_value<'c, V: StoredValue>(self) -> Option<OpenValue<'c, V>> {
        // SAFETY: the key is open.
        let value = unsafe { value_of(self.0.as_ptr()) }?;
        Some(OpenValue { key: self, value, life: PhantomData })
    }

    fn set<V: StoredValue>(&self, value: V) -> bool {
        let value = Box::into_raw(Box::new(value));
        // SAFETY: the key is open for writing; the server owns the value from here on, and frees it
        // through the type's `free`.
        let status = unsafe {
            api!(RedisModule_ModuleTypeSetValue)(
                self.0.as_ptr(),
                V::data_type().raw(),
                value.cast(),
            )
        };
        status == raw::REDISMODULE_OK as c_int
    }
}

impl Drop for OpenKey {
    fn drop(&mut self) {
        // SAFETY: the key is open, and not used again.
        unsafe { api!(RedisModule_CloseKey)(self.0.as_ptr()) };
    }
}

/// A key's value while the key is open.
pub struct OpenValue<'c, V> {
    /// Closed when this is dropped; the value is valid until then.
    key: OpenKey,
    value: NonNull<V>,
    life: PhantomData<&'c ()>,
}

impl<V> OpenValue<'_, V> {
    pub fn get(&mut self) -> &mut V {
        // SAFETY: the value lives as long as its key, which is open and not deleted while `self`
        // lives; the server runs one command at a time, so there is no other reference to it.
        unsafe { self.value.as_mut() }
    }

    /// Deletes the key, which must be open for writing.
    pub fn delete(self) {
        // SAFETY: the key is open; its value is not used again.
        unsafe { api!(RedisModule_DeleteKey)(self.key.0.as_ptr()) };
    }
}

/// The value that an open key holds.
///
/// # Safety
/// `key` is open.
unsafe fn value_of<V: StoredValue>(key: *mut raw::RedisModuleKey) -> Option<NonNull<V>> {
    // SAFETY: the key is open; a value of another type is never used as ours.
    unsafe {
        let is_ours = api!(RedisModule_KeyType)(key) == raw::REDISMODULE_KEYTYPE_MODULE as c_int
            && api!(RedisModule_ModuleTypeGetType)(key) == V::data_type().raw();
        let value = is_ours.then(|| api!(RedisModule_ModuleTypeGetValue)(key));
        value.and_then(|value| NonNull::new(value.cast()))
    }
}

/// Whether a key of this name belongs to this node. In a cluster: whether its slot does.
pub fn is_own(name: &[u8]) -> bool {
    // SAFETY: on the main thread; the string is created and freed here.
    unsafe {
        let string = new_string(name);
        let is_own = slots::is_own(string);
        api!(RedisModule_FreeString)(null_mut(), string);
        is_own
    }
}

impl Context<'_> {
    /// Opens the value at a key, outside a command. To read: that doesn't count as a use of the
    /// key, and doesn't expire it. To write: a key that has expired is missing.
    pub fn open<V: StoredValue, R>(
        self,
        (database, name): (Database, &[u8]),
        access: Access,
        work: impl FnOnce(Key, &mut V) -> R,
    ) -> Result<R, Closed> {
        let mode = |access| {
            raw::REDISMODULE_OPEN_KEY_NOTOUCH
                | raw::REDISMODULE_OPEN_KEY_NONOTIFY
                | raw::REDISMODULE_OPEN_KEY_NOSTATS
                | match access {
                    Access::Read => raw::REDISMODULE_READ | raw::REDISMODULE_OPEN_KEY_NOEXPIRE,
                    Access::Write => raw::REDISMODULE_READ | raw::REDISMODULE_WRITE,
                }
        };
        // SAFETY: the context is valid; the name is freed after the key is closed.
        unsafe {
            if api!(RedisModule_SelectDb)(self.raw(), database) != raw::REDISMODULE_OK as c_int {
                return Err(Closed::Missing);
            }
            let string = new_string(name);
            let key = Key { ctx: self.raw(), name: string, args: None, life: PhantomData };
            let is_own = slots::is_own(string);
            let mode = mode(if is_own { access } else { Access::Read });
            let result = match key.open_raw(mode).and_then(OpenKey::into_value::<V>) {
                None => Err(Closed::Missing),
                Some(_) if !is_own => Err(Closed::NotOwn),
                Some(mut open) => Ok(work(key, open.get())),
            };
            api!(RedisModule_FreeString)(null_mut(), string);
            result
        }
    }
}

/// How far a walk over all keys has got.
pub struct Cursor {
    database: Database,
    raw: *mut raw::RedisModuleScanCursor,
}

// SAFETY: only used on the main thread, like everything here.
unsafe impl Send for Cursor {}

impl Default for Cursor {
    fn default() -> Cursor {
        // SAFETY: needs nothing; destroyed when dropped.
        Cursor { database: 0, raw: unsafe { api!(RedisModule_ScanCursorCreate)() } }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        // SAFETY: the cursor is not used after this.
        unsafe { api!(RedisModule_ScanCursorDestroy)(self.raw) };
    }
}

impl Context<'_> {
    /// Visits a few more keys. `None` after the last key of the last database.
    pub fn walk<V: StoredValue>(
        self,
        mut cursor: Cursor,
        visit: fn(Database, &[u8], &mut V),
    ) -> Option<Cursor> {
        let data = visit as *mut std::ffi::c_void;
        // SAFETY: on the main thread with a valid context; the cursor is alive; `on_key` casts the
        // data back to the type of `visit`.
        unsafe {
            if api!(RedisModule_SelectDb)(self.raw(), cursor.database)
                != raw::REDISMODULE_OK as c_int
            {
                return None;
            }
            if api!(RedisModule_Scan)(self.raw(), cursor.raw, Some(on_key::<V>), data) == 0 {
                api!(RedisModule_ScanCursorRestart)(cursor.raw);
                cursor.database += 1;
            }
        }
        Some(cursor)
    }
}

unsafe extern "C" fn on_key<V: StoredValue>(
    ctx: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    key: *mut raw::RedisModuleKey,
    data: *mut std::ffi::c_void,
) {
    if key.is_null() {
        return;
    }
    // SAFETY: key, name and context are valid while the callback runs; there is no other reference
    // to the value; the data is the function that was passed to `walk`.
    unsafe {
        let visit = std::mem::transmute::<*mut std::ffi::c_void, fn(Database, &[u8], &mut V)>(data);
        if let Some(mut value) = value_of::<V>(key) {
            visit(api!(RedisModule_GetSelectedDb)(ctx), string_bytes(name), value.as_mut());
        }
    }
}
