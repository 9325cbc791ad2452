//! What happens around the queues: commands are logged and announced, waiting clients are served,
//! and the timer advances queues that no command uses. No `unsafe`.
//!
//! | room | what is in it |
//! | --- | --- |
//! | [`change`] | what happens with each change of a queue: the frame, the log, notifications |
//! | [`waiting`] | clients that wait for jobs, for what becomes of one, or for a lease |
//! | [`timer`] | what the timer does, and when it wakes |
//! | [`keys`] | queues at keys: opened, loaded, moved, freed |
//! | [`calendar`] | when CRON comes |
//!
//! Beside them, `host.rs` is what a server must be able to do, a trait that tests implement too, and
//! `state.rs` what the services remember. `live.rs` is the real server as a host, `config.rs` and
//! `info.rs` are its configs and INFO. Few files use the server itself: tests/architecture lists them.

#![forbid(unsafe_code)]

pub mod calendar;
pub mod change;
pub mod config;
mod host;
mod info;
mod key_ref;
pub mod keys;
pub mod live;
mod state;
mod timer;
pub mod waiting;

pub use keys::value::QueueValue;

#[cfg(test)]
mod tests;
