//! The server's side: the module API, and nothing else. The only `unsafe` of the project; each file
//! wraps one part of the API in functions that can't be misused from outside. What is to be done
//! with it, the floors above say.
//!
//! | file | what it wraps |
//! | --- | --- |
//! | `load.rs`, `hooks.rs` | loading the module; what the server calls, by name |
//! | `alloc.rs`, `logfile.rs`, `main_thread.rs` | the server's allocator; its log; state of its main thread |
//! | `call.rs`, `arg.rs`, `replies.rs`, `key.rs` | a command being executed: arguments, replies; keys and their values |
//! | `spec.rs`, `grammar.rs`, `command.rs` | what a command says of itself, with its arguments; how it is registered |
//! | `data_type.rs`, `persist.rs` | the type's callbacks, each with its reason; RDB, AOF and digest |
//! | `defrag.rs` | a value's allocations, put elsewhere for active defragmentation |
//! | `blocking.rs`, `client.rs`, `timer.rs`, `events.rs` | clients that wait; timers; server events |
//! | `slots.rs` | slots of a cluster that move: which keys are this node's own |
//! | `context.rs`, `config.rs`, `info.rs`, `section.rs` | the time and the role; configs; the INFO section |
//!
//! Everything here runs on the server's main thread, under its lock, but for the type's `free`
//! callback and the allocator; and for saving, which runs in a forked child.

/// The function of the module API with this name, for use inside `unsafe`: the pointer is written
/// once, by the server, before OnLoad goes on. Those used are all in Redis 7.0, and a server that is
/// older is refused (`load.rs`), so that the lookup can't fail later.
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
pub mod section;
pub mod slots;
pub mod spec;
pub mod timer;

pub use alloc::ServerAlloc;
