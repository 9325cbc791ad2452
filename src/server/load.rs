//! Loading the module: all that has to be registered, in order.

use redis_module::{raw, Context, RedisString};

use super::config::Configs;
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

/// Everything but the type and the commands. False, with a word in the log, when it can't be.
pub fn prepare(ctx: &Context, configs: &Configs, args: &[RedisString], hooks: Hooks) -> bool {
    // SAFETY: the pointer was written before OnLoad goes on. The function came with Redis 7.0, as the
    // last of those that are used here did.
    if unsafe { raw::RedisModule_LoadConfigs }.is_none() {
        logfile::warning("can't load: this server is older than Redis 7.0");
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
