//! Keys and their values.

use std::ffi::{c_int, c_void};

use redis_module::raw;

use super::calls::{place_of, string, Ctx, Str};
use super::world::{methods, with, Database, Value, World};

pub type Place = (Database, Vec<u8>);

/// At these keys there is always a string, for commands on a wrong type: no queue comes there.
pub const IS_A_STRING: &[u8] = b"string";

/// What the module sees as a `RedisModuleKey`.
pub struct OpenKey {
    place: Place,
}

/// What the callbacks that are about a key get.
pub struct OptCtx {
    from: Place,
    from_name: *mut Str,
    to: Place,
    to_name: *mut Str,
}

impl OptCtx {
    fn new(from: &Place, to: &Place) -> OptCtx {
        let (from_name, to_name) = (string(&from.1), string(&to.1));
        OptCtx { from: from.clone(), from_name, to: to.clone(), to_name }
    }

    fn as_raw(&mut self) -> *mut raw::RedisModuleKeyOptCtx {
        std::ptr::from_mut(self).cast()
    }
}

impl Drop for OptCtx {
    fn drop(&mut self) {
        // SAFETY: made in `new`, for this alone.
        unsafe {
            drop(Box::from_raw(self.from_name));
            drop(Box::from_raw(self.to_name));
        }
    }
}

pub fn value_at(place: &Place) -> Option<Value> {
    with(|world| world.keys.get(place).copied())
}

/// The value is at this key from here on, instead of another.
pub fn put(place: Place, value: Value) {
    delete(&place);
    with(|world| {
        world.ready.push(place.clone());
        world.keys.insert(place, value)
    });
}

pub fn delete(place: &Place) {
    if let Some(value) = leave(place) {
        free(value);
    }
}

/// The key is gone; its value may live on.
fn leave(place: &Place) -> Option<Value> {
    let value = value_at(place)?;
    let unlink = methods().unlink2.expect("the type has it");
    // SAFETY: a value of the type's, and a context as the server makes it.
    unsafe { unlink(OptCtx::new(place, place).as_raw(), value) };
    with(|world| world.keys.remove(place))
}

fn free(value: Value) {
    // SAFETY: the value is at no key any more.
    unsafe { methods().free.expect("the type has it")(value) };
}

pub fn rename(from: &Place, to: Place) {
    if *from == to || to.1 == IS_A_STRING || value_at(from).is_none() {
        return;
    }
    delete(&to);
    if let Some(value) = leave(from) {
        put(to, value);
    }
}

pub fn copy(from: &Place, to: Place) {
    let is_free = *from != to && to.1 != IS_A_STRING && value_at(&to).is_none();
    let Some(value) = value_at(from).filter(|_| is_free) else {
        return;
    };
    let copy = methods().copy2.expect("the type has it");
    // SAFETY: as in `leave`.
    let copied = unsafe { copy(OptCtx::new(from, &to).as_raw(), value) };
    put(to, copied);
}

pub fn flush() {
    super::api::tell_of_flush();
    let values = with(|world| std::mem::take(&mut world.keys));
    values.into_values().for_each(free);
}

// ---- what the module calls
// ---------------------------------------------------------------------------------------

pub unsafe extern "C" fn open_key(ctx: *mut Ctx, name: *const Str, mode: c_int) -> *mut OpenKey {
    let place = unsafe { place_of(ctx, name) };
    let is_there = place.1 == IS_A_STRING || value_at(&place).is_some();
    if !is_there && mode as u32 & raw::REDISMODULE_WRITE == 0 {
        return std::ptr::null_mut();
    }
    Box::into_raw(Box::new(OpenKey { place }))
}

pub unsafe extern "C" fn close_key(key: *mut OpenKey) {
    drop(unsafe { Box::from_raw(key) });
}

pub unsafe extern "C" fn delete_key(key: *mut OpenKey) -> c_int {
    delete(unsafe { &(*key).place });
    0
}

pub unsafe extern "C" fn key_type(key: *mut OpenKey) -> c_int {
    let place = unsafe { &(*key).place };
    let kind = match value_at(place) {
        _ if place.1 == IS_A_STRING => raw::REDISMODULE_KEYTYPE_STRING,
        Some(_) => raw::REDISMODULE_KEYTYPE_MODULE,
        None => raw::REDISMODULE_KEYTYPE_EMPTY,
    };
    kind as c_int
}

/// There is one type.
pub const THE_TYPE: *mut c_void = std::ptr::without_provenance_mut(8);

pub unsafe extern "C" fn type_of(_: *mut OpenKey) -> *mut c_void {
    THE_TYPE
}

pub unsafe extern "C" fn value_of(key: *mut OpenKey) -> Value {
    value_at(unsafe { &(*key).place }).unwrap_or(std::ptr::null_mut())
}

pub unsafe extern "C" fn set_value(key: *mut OpenKey, _type: *mut c_void, value: Value) -> c_int {
    let place = unsafe { (*key).place.clone() };
    put(place, value);
    0
}

pub unsafe extern "C" fn ok_for_key(_: *mut Ctx, _: *mut Str) -> c_int {
    0
}

pub unsafe extern "C" fn notify(_: *mut Ctx, _: c_int, _: *const i8, _: *mut Str) -> c_int {
    0
}

pub unsafe extern "C" fn notified() -> c_int {
    raw::REDISMODULE_NOTIFY_MODULE as c_int
}

fn opt<R>(ctx: *mut OptCtx, read: impl FnOnce(&OptCtx) -> R) -> R {
    // SAFETY: the one that the callback got.
    read(unsafe { &*ctx })
}

pub unsafe extern "C" fn key_name(ctx: *mut OptCtx) -> *mut Str {
    opt(ctx, |ctx| ctx.from_name)
}

pub unsafe extern "C" fn key_database(ctx: *mut OptCtx) -> c_int {
    opt(ctx, |ctx| ctx.from.0)
}

pub unsafe extern "C" fn to_key_name(ctx: *mut OptCtx) -> *mut Str {
    opt(ctx, |ctx| ctx.to_name)
}

pub unsafe extern "C" fn to_key_database(ctx: *mut OptCtx) -> c_int {
    opt(ctx, |ctx| ctx.to.0)
}

pub unsafe extern "C" fn cursor_create() -> *mut c_void {
    THE_TYPE
}

pub unsafe extern "C" fn cursor_ignore(_: *mut c_void) {}

type OnKey = unsafe extern "C" fn(*mut Ctx, *mut Str, *mut OpenKey, *mut c_void);

/// All keys of the database at once: the walk is over.
pub unsafe extern "C" fn scan(
    ctx: *mut Ctx,
    _: *mut c_void,
    on_key: OnKey,
    data: *mut c_void,
) -> c_int {
    let database = unsafe { (*ctx).database };
    let of_database = |world: &mut World| {
        world.keys.keys().filter(|place| place.0 == database).cloned().collect()
    };
    let places: Vec<Place> = with(of_database);
    for place in places {
        let name = string(&place.1);
        let mut key = OpenKey { place };
        unsafe {
            on_key(ctx, name, &mut key, data);
            drop(Box::from_raw(name));
        }
    }
    0
}
