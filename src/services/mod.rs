//! What happens around the queues: commands are logged and announced, waiting clients are served,
//! and the timer advances queues that no command uses. No `unsafe`. Only the files of the last two
//! rows use the server; the others use the trait [`host::Host`], which tests implement.
//!
//! | file | what it is |
//! | --- | --- |
//! | `frame.rs`, `commit.rs` | the frame around every command: all that follows from a change; the change itself |
//! | `log.rs`, `notify.rs` | what replicas and the AOF get; keyspace notifications and INFO's counters |
//! | `waiting.rs`, `waiters.rs`, `wish.rs` | waiting clients, their order, and what each waits for |
//! | `watching.rs`, `watchers.rs` | clients that wait for what becomes of a job or a lease; what they watch |
//! | `delivery.rs`, `pending.rs` | delivering to them; jobs assigned to a client that it hasn't got yet |
//! | `pacemaker.rs`, `alarm.rs` | what the timer does; when it wakes |
//! | `sink.rs`, `sink_trouble.rs` | jobs that leave for a stream; one that refuses them |
//! | `hints.rs`, `wakeup.rs` | when the timer must look at which queue |
//! | `lifecycle.rs`, `moved.rs` | queues that come to keys and leave them; cluster slots that move |
//! | `sweep.rs`, `pace.rs` | finding queues that have moved; how fast |
//! | `async_load.rs` | a data set that is loaded while another is served |
//! | `leases.rs` | lease numbers across queues |
//! | `calendar.rs`, `cron.rs`, `cron_words.rs`, `recording_calendar.rs` | when CRON comes; parsing its expressions, and what of them is refused; the calendar for one operation |
//! | `lateness.rs`, `sums.rs` | how late jobs were handed out; sums over all queues |
//! | `value.rs`, `state.rs`, `place.rs` | what a key holds; what the services remember besides; where a queue is |
//! | `host.rs` | what a server must be able to do |
//! | `live.rs`, `opened.rs`, `divergence.rs` | the real server as a host; a queue that a command has opened; one that differs from its log |
//! | `persistence.rs`, `config.rs`, `info.rs`, `lazyfree.rs` | files, configs, INFO; freeing large values |

#![forbid(unsafe_code)]

mod alarm;
mod async_load;
pub mod calendar;
mod commit;
pub mod config;
mod cron;
mod cron_words;
mod delivery;
pub mod divergence;
pub mod frame;
mod hints;
mod host;
mod info;
pub mod lateness;
mod lazyfree;
pub mod leases;
mod lifecycle;
pub mod live;
pub mod log;
mod moved;
mod notify;
pub mod opened;
mod pace;
mod pacemaker;
mod pending;
pub mod persistence;
mod place;
mod recording_calendar;
mod settle;
mod sink;
mod sink_trouble;
mod state;
mod sums;
mod sweep;
mod value;
mod waiters;
mod waiting;
mod wakeup;
mod watchers;
mod watching;
mod wish;

pub use notify::Announced;
pub use value::QueueValue;
pub use wish::{Around, JobShape, Shape};

#[cfg(test)]
mod tests;
