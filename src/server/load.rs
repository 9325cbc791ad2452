//! Loading the module: all that has to be registered, in order.

use redis_module::{raw, Context, RedisString};

use super::config::Config;
use super::hooks::{self, Hooks};
use super::{config, context, events, info, logfile, slots};

/// The crate's version, as MODULE LIST shows it: 10,203 is 1.2.3.
pub const VERSION: u32 = 10_000 * number(env!("CARGO_PKG_VERSION_MAJOR"))
    + 100 * number(env!("CARGO_PKG_VERSION_MINOR"))
    + number(env!("CARGO_PKG_VERSION_PATCH"));

const fn number(digits: &str) -> u32 {
    match u32::from_str_radix(digits, 10) {
        Ok(number) => number,
        // Cargo has checked them.
        Err(_) => 0,
    }
}

macro_rules! api_in_use {
    ($($name:ident,)*) => {
        /// The first function of the API that is used here and that this server lacks.
        fn missing_api() -> Option<&'static str> {
            // SAFETY: the pointers were written before OnLoad goes on, and are copied here.
            let present = unsafe { [$((stringify!($name), { raw::$name }.is_some())),*] };
            present.into_iter().find(|(_, is_there)| !is_there).map(|(name, _)| name)
        }

        #[cfg(test)]
        const API_IN_USE: &[&str] = &[$(stringify!($name)),*];
    };
}

api_in_use! {
    RedisModule_AvoidReplicaTraffic,
    RedisModule_BlockClientOnKeys,
    RedisModule_BlockedClientDisconnected,
    RedisModule_Call,
    RedisModule_CallReplyArrayElement,
    RedisModule_CallReplyStringPtr,
    RedisModule_CloseKey,
    RedisModule_CreateCommand,
    RedisModule_CreateString,
    RedisModule_CreateTimer,
    RedisModule_DefragAlloc,
    RedisModule_DefragCursorGet,
    RedisModule_DefragCursorSet,
    RedisModule_DefragShouldStop,
    RedisModule_DeleteKey,
    RedisModule_DigestAddStringBuffer,
    RedisModule_DigestEndSequence,
    RedisModule_EmitAOF,
    RedisModule_EventLoopAdd,
    RedisModule_Free,
    RedisModule_FreeCallReply,
    RedisModule_FreeString,
    RedisModule_GetBlockedClientPrivateData,
    RedisModule_GetBlockedClientReadyKey,
    RedisModule_GetCommand,
    RedisModule_GetContextFlags,
    RedisModule_GetDbIdFromIO,
    RedisModule_GetDbIdFromOptCtx,
    RedisModule_GetDetachedThreadSafeContext,
    RedisModule_GetKeyNameFromIO,
    RedisModule_GetKeyNameFromOptCtx,
    RedisModule_GetNotifyKeyspaceEvents,
    RedisModule_GetRandomBytes,
    RedisModule_GetSelectedDb,
    RedisModule_GetToDbIdFromOptCtx,
    RedisModule_GetToKeyNameFromOptCtx,
    RedisModule_InfoAddFieldCString,
    RedisModule_InfoAddFieldULongLong,
    RedisModule_InfoAddSection,
    RedisModule_IsIOError,
    RedisModule_IsKeysPositionRequest,
    RedisModule_KeyAtPos,
    RedisModule_KeyType,
    RedisModule_LatencyAddSample,
    RedisModule_LoadConfigs,
    RedisModule_LoadStringBuffer,
    RedisModule_LoadUnsigned,
    RedisModule_Log,
    RedisModule_Milliseconds,
    RedisModule_ModuleTypeGetType,
    RedisModule_ModuleTypeGetValue,
    RedisModule_ModuleTypeSetValue,
    RedisModule_NotifyKeyspaceEvent,
    RedisModule_OpenKey,
    RedisModule_RegisterInfoFunc,
    RedisModule_Replicate,
    RedisModule_ReplicateVerbatim,
    RedisModule_ReplyWithArray,
    RedisModule_ReplyWithError,
    RedisModule_ReplyWithLongLong,
    RedisModule_ReplyWithMap,
    RedisModule_ReplyWithNull,
    RedisModule_ReplyWithSimpleString,
    RedisModule_ReplyWithStringBuffer,
    RedisModule_SaveStringBuffer,
    RedisModule_SaveUnsigned,
    RedisModule_Scan,
    RedisModule_ScanCursorCreate,
    RedisModule_ScanCursorDestroy,
    RedisModule_ScanCursorRestart,
    RedisModule_SelectDb,
    RedisModule_SetCommandInfo,
    RedisModule_SetDisconnectCallback,
    RedisModule_SetModuleOptions,
    RedisModule_SignalModifiedKey,
    RedisModule_StopTimer,
    RedisModule_StringPtrLen,
    RedisModule_SubscribeToServerEvent,
    RedisModule_UnblockClient,
}

/// Everything but the type and the commands. False, with a word in the log, when it can't be.
pub fn prepare(
    ctx: &Context,
    configs: &'static [Config],
    args: &[RedisString],
    hooks: Hooks,
) -> bool {
    if let Some(name) = missing_api() {
        logfile::warning(&format!(
            "can't load: this server lacks {name}; Redis 7.0 and Valkey have it"
        ));
        return false;
    }
    logfile::log_panics();
    let raw_ctx = ctx.get_raw();
    context::keep(raw_ctx);
    hooks::set(hooks);
    let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED
        | slots::subscribe(raw_ctx);
    // SAFETY: `raw_ctx` is the one of OnLoad.
    unsafe { api!(RedisModule_SetModuleOptions)(raw_ctx, options as i32) };
    if !config::register(ctx, configs, args) || !events::subscribe(raw_ctx) {
        return false;
    }
    info::register(raw_ctx);
    if context::evicts_any_key() {
        logfile::warning(
            "maxmemory-policy is allkeys-*: the server may evict whole queues; noeviction is safe",
        );
    }
    true
}

/// Whether this server is a primary while the module is loaded.
pub fn is_primary(ctx: &Context) -> bool {
    // SAFETY: the context of OnLoad is valid while that lasts.
    unsafe { context::Context::new(ctx.get_raw()) }.is_primary()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is called must be checked at load, and nothing else.
    #[test]
    fn every_function_in_use_is_checked_at_load() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server");
        let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let sources: String = files.map(|path| std::fs::read_to_string(path).unwrap()).collect();
        let calls = sources.split("api!(").skip(1).filter_map(|rest| rest.split_once(')'));
        let mut names: Vec<_> =
            calls.map(|(name, _)| name).filter(|name| name.starts_with("RedisModule_")).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names, API_IN_USE);
    }
}
