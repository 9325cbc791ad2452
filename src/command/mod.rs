//! The commands, one file each: its grammar in the head, its description for the server, then
//! parse → apply → reply → effect. No command file uses another; what they share is here:
//!
//! | file | what it is |
//! | --- | --- |
//! | `words.rs` | reading arguments |
//! | `error.rs` | every error, with its wording |
//! | `consumer.rs`, `delivery.rs` | what DQ.POP and DQ.MPOP share; what DQ.RELEASE, DQ.TOUCH and DQ.BURY do |
//! | `job_reply.rs` | a job as it is shown |

mod add;
mod alter;
mod apply;
mod bury;
mod consumer;
mod del;
mod delivery;
mod error;
mod finish;
mod get;
mod info;
mod job_reply;
mod kick;
mod kickjob;
mod len;
mod mpop;
mod pause;
mod peek;
mod pop;
mod purge;
mod release;
mod resume;
mod scan;
mod touch;
mod words;

use redis_module::raw;

use crate::redis::command::register;

/// Registers all commands. False, with a word in the log, when the server won't have one.
pub fn register_all(ctx: *mut raw::RedisModuleCtx) -> bool {
    register::<add::Add>(ctx)
        && register::<pop::Pop>(ctx)
        && register::<mpop::MPop>(ctx)
        && register::<finish::Finish>(ctx)
        && register::<release::Release>(ctx)
        && register::<touch::Touch>(ctx)
        && register::<bury::Bury>(ctx)
        && register::<del::Del>(ctx)
        && register::<kick::Kick>(ctx)
        && register::<kickjob::KickJob>(ctx)
        && register::<pause::Pause>(ctx)
        && register::<resume::Resume>(ctx)
        && register::<purge::Purge>(ctx)
        && register::<alter::Alter>(ctx)
        && register::<get::Get>(ctx)
        && register::<peek::Peek>(ctx)
        && register::<scan::Scan>(ctx)
        && register::<len::Len>(ctx)
        && register::<info::Info>(ctx)
        && register::<apply::Apply>(ctx)
}

/// The version in which a command came.
const SINCE_0_1: &std::ffi::CStr = c"0.1.0";
