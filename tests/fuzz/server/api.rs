//! The functions of the module API by their names; loading the module, configs, time, events, INFO.

use std::ffi::{c_char, c_int, c_longlong, c_void, CStr};
use std::ptr::{null_mut, without_provenance_mut};

use redis_module::raw;

use super::calls::{Ctx, Str};
use super::world::{with, Callback, Command, OnEvent, Role};
use super::{calls, defrag, files, keys, streams, waiting};

/// Loads the module, as a server does with its `.so`.
pub fn load_module() {
    let mut ctx = Ctx::default();
    let hook = std::panic::take_hook();
    // SAFETY: what a server calls it with.
    let status =
        unsafe { dq::RedisModule_OnLoad(std::ptr::from_mut(&mut ctx).cast(), null_mut(), 0) };
    assert_eq!(status, 0, "the module can't be loaded");
    // The module's own tells the server's log.
    std::panic::set_hook(hook);
}

pub fn tell_of_role() {
    tell(raw::REDISMODULE_EVENT_REPLICATION_ROLE_CHANGED, 0, null_mut());
}

pub fn tell_of_loading(is_loading: bool) {
    let subevent = match is_loading {
        true => raw::REDISMODULE_SUBEVENT_LOADING_RDB_START,
        false => raw::REDISMODULE_SUBEVENT_LOADING_ENDED,
    };
    tell(raw::REDISMODULE_EVENT_LOADING, subevent, null_mut());
}

pub fn tell_of_flush() {
    let mut info = raw::RedisModuleFlushInfoV1 { version: 1, sync: 1, dbnum: -1 };
    let data = std::ptr::from_mut(&mut info).cast();
    tell(raw::REDISMODULE_EVENT_FLUSHDB, raw::REDISMODULE_SUBEVENT_FLUSHDB_START, data);
}

fn tell(id: u64, subevent: u64, data: *mut c_void) {
    let callback = with(|world| world.on_event.get(&id).copied());
    if let Some(callback) = callback {
        let event = raw::RedisModuleEvent { id, dataver: 1 };
        // SAFETY: what a server calls it with.
        unsafe { callback(&mut Ctx::default(), event, subevent, data) };
    }
}

pub fn info() -> Vec<(String, String)> {
    let show = with(|world| {
        world.info.clear();
        world.on_info
    });
    // SAFETY: as above; the context isn't looked at.
    unsafe { show.expect("the module has registered it")(keys::THE_TYPE, 0) };
    with(|world| world.info.clone())
}

macro_rules! functions {
    ($($name:literal => $function:path,)*) => {
        fn address(name: &[u8]) -> Option<*const c_void> {
            $(if name == concat!("RedisModule_", $name).as_bytes() {
                return Some($function as *const c_void);
            })*
            None
        }
    };
}

functions! {
    "Alloc" => libc::malloc,
    "Calloc" => libc::calloc,
    "Realloc" => libc::realloc,
    "Free" => libc::free,
    "SetModuleAttribs" => set_attributes,
    "SetModuleOptions" => ignore,
    "CreateDataType" => files::create_type,
    "CreateCommand" => create_command,
    "GetCommand" => get_command,
    "SetCommandInfo" => set_command_info,
    "RegisterNumericConfig" => register_config,
    // Its default is what the module has by itself.
    "RegisterStringConfig" => ignore,
    "LoadConfigs" => ignore,
    "RegisterInfoFunc" => register_info,
    "InfoAddSection" => ignore,
    "InfoAddFieldULongLong" => info_number,
    "InfoAddFieldCString" => info_text,
    "SubscribeToServerEvent" => subscribe,
    "GetDetachedThreadSafeContext" => own_context,
    "GetContextFlags" => flags,
    "Milliseconds" => milliseconds,
    "GetRandomBytes" => random_bytes,
    "AvoidReplicaTraffic" => ignore,
    "LatencyAddSample" => ignore,
    "Log" => log,
    "Call" => streams::call,
    "CallReplyType" => streams::reply_type,
    "CallReplyStringPtr" => streams::reply_text,
    "FreeCallReply" => ignore,
    "GetUsedMemoryRatio" => streams::used_memory,
    "GetServerInfo" => no_answer,
    "ServerInfoGetFieldC" => no_answer,
    "FreeServerInfo" => ignore,
    // Not here: the module goes by its timers then.
    "EventLoopAdd" => refuse,
    "CreateTimer" => waiting::create_timer,
    "StopTimer" => waiting::stop_timer,
    "StringPtrLen" => calls::string_ptr_len,
    "CreateString" => calls::create_string,
    "FreeString" => calls::free_string,
    "ReplyWithLongLong" => calls::reply_long_long,
    "ReplyWithStringBuffer" => calls::reply_string_buffer,
    "ReplyWithSimpleString" => calls::reply_simple_string,
    "ReplyWithError" => calls::reply_error,
    "ReplyWithNull" => calls::reply_null,
    "ReplyWithArray" => calls::reply_array,
    "ReplyWithMap" => calls::reply_map,
    "ReplicateVerbatim" => calls::replicate_verbatim,
    "Replicate" => calls::tell::<calls::Ctx>,
    "IsKeysPositionRequest" => calls::asks_for_keys,
    "KeyAtPos" => calls::key_at,
    "GetSelectedDb" => calls::selected_database,
    "SelectDb" => calls::select_database,
    "BlockClientOnKeys" => calls::block_on_keys,
    "UnblockClient" => waiting::unblock,
    "SetDisconnectCallback" => waiting::on_disconnect,
    "BlockedClientDisconnected" => waiting::has_gone,
    // By this the module knows that it isn't on Redis 7.0.
    "AddPostNotificationJob" => refuse,
    "GetBlockedClientPrivateData" => waiting::private_of,
    "GetBlockedClientReadyKey" => waiting::ready_key_of,
    "OpenKey" => keys::open_key,
    "CloseKey" => keys::close_key,
    "DeleteKey" => keys::delete_key,
    "KeyType" => keys::key_type,
    "ModuleTypeGetType" => keys::type_of,
    "ModuleTypeGetValue" => keys::value_of,
    "ModuleTypeSetValue" => keys::set_value,
    "SignalModifiedKey" => keys::ok_for_key,
    "NotifyKeyspaceEvent" => keys::notify,
    "GetNotifyKeyspaceEvents" => keys::notified,
    "GetKeyNameFromOptCtx" => keys::key_name,
    "GetDbIdFromOptCtx" => keys::key_database,
    "GetToKeyNameFromOptCtx" => keys::to_key_name,
    "GetToDbIdFromOptCtx" => keys::to_key_database,
    "DefragAlloc" => defrag::alloc,
    "DefragShouldStop" => defrag::should_stop,
    "DefragCursorGet" => defrag::cursor_get,
    "DefragCursorSet" => defrag::cursor_set,
    "Scan" => keys::scan,
    "ScanCursorCreate" => keys::cursor_create,
    "ScanCursorRestart" => keys::cursor_ignore,
    "ScanCursorDestroy" => keys::cursor_ignore,
    "LoadUnsigned" => files::load_unsigned,
    "LoadStringBuffer" => files::load_string_buffer,
    "IsIOError" => files::is_io_error,
    "SaveUnsigned" => files::save_unsigned,
    "SaveStringBuffer" => files::save_string_buffer,
    "GetKeyNameFromIO" => files::name_of_io,
    "GetDbIdFromIO" => files::database_of_io,
    "EmitAOF" => calls::tell::<files::Io>,
    "DigestAddStringBuffer" => files::digest_add,
    "DigestEndSequence" => files::digest_end,
}

pub unsafe extern "C" fn get_api(name: *const c_char, place: *mut *const c_void) -> c_int {
    // SAFETY: the module asks for a function by its name.
    unsafe {
        match address(CStr::from_ptr(name).to_bytes()) {
            Some(function) => {
                *place = function;
                0
            }
            None => 1,
        }
    }
}

// ---- what the module calls: pointers are those that it was given, or its own
// ------------------------------------------

unsafe extern "C" fn ignore() -> c_int {
    0
}

unsafe extern "C" fn refuse() -> c_int {
    1
}

unsafe extern "C" fn no_answer() -> *mut c_void {
    null_mut()
}

unsafe extern "C" fn set_attributes(_: *mut Ctx, _: *const c_char, _: c_int, _: c_int) {}

unsafe extern "C" fn create_command(
    _: *mut Ctx,
    name: *const c_char,
    run: Callback,
    _flags: *const c_char,
    _first: c_int,
    _last: c_int,
    _step: c_int,
) -> c_int {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    with(|world| world.commands.push(Command { name, run, arity: -1 }));
    0
}

/// A command's place among all, from 1.
unsafe extern "C" fn get_command(_: *mut Ctx, name: *const c_char) -> *mut c_void {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let place = with(|world| world.commands.iter().position(|command| command.name == name));
    place.map_or(null_mut(), |place| without_provenance_mut(place + 1))
}

unsafe extern "C" fn set_command_info(
    command: *mut c_void,
    info: *const raw::RedisModuleCommandInfo,
) -> c_int {
    let arity = unsafe { (*info).arity }.into();
    with(|world| world.commands[command.addr() - 1].arity = arity);
    0
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn register_config(
    _: *mut Ctx,
    name: *const c_char,
    default: c_longlong,
    _flags: u32,
    _min: c_longlong,
    _max: c_longlong,
    _get: *const c_void,
    set: unsafe extern "C" fn(*const c_char, c_longlong, *mut c_void, *mut *mut Str) -> c_int,
    _apply: *const c_void,
    private: *mut c_void,
) -> c_int {
    unsafe { set(name, default, private, &mut null_mut()) }
}

unsafe extern "C" fn register_info(
    _: *mut Ctx,
    show: unsafe extern "C" fn(*mut c_void, c_int),
) -> c_int {
    with(|world| world.on_info = Some(show));
    0
}

unsafe extern "C" fn info_number(_: *mut c_void, name: *const c_char, value: u64) -> c_int {
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
    with(|world| world.info.push((name, value.to_string())));
    0
}

unsafe extern "C" fn info_text(_: *mut c_void, name: *const c_char, value: *const c_char) -> c_int {
    let [name, value] =
        [name, value].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned());
    with(|world| world.info.push((name, value)));
    0
}

unsafe extern "C" fn subscribe(
    _: *mut Ctx,
    event: raw::RedisModuleEvent,
    callback: OnEvent,
) -> c_int {
    with(|world| world.on_event.insert(event.id, callback));
    0
}

unsafe extern "C" fn own_context(_: *mut Ctx) -> *mut Ctx {
    Box::into_raw(Box::default())
}

unsafe extern "C" fn flags(_: *mut Ctx) -> c_int {
    let flags = match with(|world| world.role) {
        Role::Primary => raw::REDISMODULE_CTX_FLAGS_MASTER,
        Role::Replica => raw::REDISMODULE_CTX_FLAGS_SLAVE | raw::REDISMODULE_CTX_FLAGS_REPLICATED,
    };
    flags as c_int
}

unsafe extern "C" fn milliseconds() -> c_longlong {
    with(|world| world.clock_ms) as c_longlong
}

/// The same in each process: it shows in nothing, and what was found is found again.
unsafe extern "C" fn random_bytes(start: *mut u8, len: usize) {
    unsafe { std::slice::from_raw_parts_mut(start, len) }.fill(0x5a);
}

/// The module says what went wrong, which is the point of many a test; but never that it is wrong
/// itself.
unsafe extern "C" fn log(
    _: *mut Ctx,
    _level: *const c_char,
    format: *const c_char,
    message: *const c_char,
) {
    if unsafe { CStr::from_ptr(format) } != c"%s" {
        return;
    }
    let message = unsafe { CStr::from_ptr(message) }.to_string_lossy();
    assert!(!message.contains("bug in dq"), "{message}");
    if std::env::var_os("DQ_FUZZ_LOG").is_some() {
        eprintln!("{message}");
    }
}
