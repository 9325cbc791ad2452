//! The server's side: the only `unsafe` of the project. Each file wraps one part of the module API in
//! functions that can't be misused from outside.
//!
//! | file | what it wraps |
//! | --- | --- |
//! | `alloc.rs`, `log.rs` | the server's allocator; its log, and where a panic is written |
//! | `call.rs`, `replies.rs`, `key.rs`, `site.rs` | a command being executed: arguments, replies; its key |
//! | `effect.rs`, `notify.rs` | what was done, made known to replicas, to the AOF; to watchers |
//! | `take.rs`, `waiting.rs`, `waiters.rs` | handing out; consumers that wait, and their order |
//! | `spec.rs`, `command.rs` | what a command says of itself; how it is registered |
//! | `data_type.rs`, `persist.rs` | the type's callbacks, each with its reason; RDB, AOF and digest |
//! | `pacemaker.rs`, `hints.rs`, `sweep.rs` | the one timer; which queue waits until when; finding moved ones |
//! | `events.rs`, `config.rs`, `info.rs` | server events; configs; the INFO section |
//! | `sums.rs`, `lateness.rs` | sums over all queues; how late jobs were handed out |
//! | `server.rs`, `leases.rs`, `reaper.rs` | the time and the role; lease numbers; freeing what is large |
//!
//! Everything here runs on the server's main thread, under its lock, but for the `free` callback, which
//! touches nothing shared, and the reaper's own thread.

/// The function of the module API with this name, for use inside `unsafe`: the pointer is written once, by
/// the server, before OnLoad goes on. Those used are all in Redis 7.0, and loading is refused where one is
/// missing (`load.rs`), so that the lookup can't fail later.
macro_rules! api {
    ($name:ident) => {
        match redis_module::raw::$name {
            Some(function) => function,
            None => $crate::redis::log::abort(concat!(stringify!($name), " is missing")),
        }
    };
}

mod alloc;
pub mod call;
pub mod command;
pub mod config;
mod data_type;
pub mod effect;
mod events;
mod hints;
pub mod info;
pub mod key;
pub mod lateness;
mod leases;
pub mod load;
mod log;
mod main_thread;
mod notify;
mod pacemaker;
mod persist;
mod reaper;
pub mod replies;
mod server;
mod site;
pub mod spec;
mod sums;
mod sweep;
pub mod take;
mod waiters;
pub mod waiting;

pub use alloc::ServerAlloc;
pub use data_type::QUEUE_TYPE;
