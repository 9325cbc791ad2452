//! The commands, one file each: its grammar in the head, its description for the server, then
//! parse → apply → reply → effect. No command file uses another; what they share is here:
//!
//! | file | what it is |
//! | --- | --- |
//! | `words.rs` | reading arguments |
//! | `error.rs` | every error, with its wording |
//! | `effect.rs` | what a command did, made known: to replicas and the AOF, to watchers, to the timer |

mod add;
mod apply;
mod del;
mod effect;
mod error;
mod finish;
mod get;
mod info;
mod len;
mod pop;
mod words;

use redis_module::raw;

use crate::redis::command::register;

/// Registers all commands. False, with a word in the log, when the server won't have one.
pub fn register_all(ctx: *mut raw::RedisModuleCtx) -> bool {
    register::<add::Add>(ctx)
        && register::<pop::Pop>(ctx)
        && register::<finish::Finish>(ctx)
        && register::<del::Del>(ctx)
        && register::<get::Get>(ctx)
        && register::<len::Len>(ctx)
        && register::<info::Info>(ctx)
        && register::<apply::Apply>(ctx)
}

/// The version in which a command came.
const SINCE_0_1: &std::ffi::CStr = c"0.1.0";
