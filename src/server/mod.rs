//! The module API, and nothing else. The only `unsafe` of the project: each file wraps one part of
//! the API in functions that can't be misused. The floors above decide what to do with it.
//!
//! | file | what it wraps |
//! | --- | --- |
//! | `load.rs`, `hooks.rs` | loading the module; the functions that the server calls |
//! | `alloc.rs`, `logfile.rs`, `main_thread.rs` | the server's allocator; its log; state of its main thread |
//! | `call.rs`, `arg.rs`, `replies.rs`, `key.rs` | a command being executed: arguments, replies; keys and their values |
//! | `run.rs` | a command of the server that the module runs |
//! | `spec.rs`, `grammar.rs`, `command.rs` | what a command says of itself, with its arguments; how it is registered |
//! | `data_type.rs`, `persist.rs` | the type's callbacks, each with its reason; RDB, AOF and digest |
//! | `defrag.rs` | moving a value's allocations for active defragmentation |
//! | `blocking.rs`, `client.rs`, `timer.rs`, `events.rs` | waiting clients; timers; server events |
//! | `slots.rs` | cluster slots that move: which keys belong to this node |
//! | `context.rs`, `config.rs`, `info.rs`, `section.rs` | the time and the role; configs; the INFO section |
//!
//! Everything here runs on the server's main thread, under its lock, except for the type's `free`
//! callback and the allocator, which run on any thread, and saving, which runs in a forked child.

/// The function of the module API with this name, for use inside `unsafe`. The server writes the
/// pointer once, before OnLoad continues. All functions used are in Redis 7.0, and the module
/// refuses to load into an older server (`load.rs`), so the lookup can't fail later.
macro_rules! api {
    ($name:ident) => {
        match redis_module::raw::$name {
            Some(function) => function,
            None => $crate::server::logfile::abort(concat!(stringify!($name), " is missing")),
        }
    };
}

mod alloc;
pub mod arg;
pub mod blocking;
pub mod call;
pub mod client;
pub mod command;
pub mod config;
pub mod context;
pub mod data_type;
mod defrag;
mod events;
mod grammar;
pub mod hooks;
pub mod info;
pub mod key;
pub mod load;
pub mod logfile;
pub mod main_thread;
pub mod persist;
pub mod replies;
mod run;
pub mod section;
pub mod slots;
pub mod spec;
pub mod timer;

pub use alloc::ServerAlloc;
