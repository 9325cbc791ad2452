//! The timer, for queues that no command uses: what it does, and when it wakes.
//!
//! | file | what it is |
//! | --- | --- |
//! | `pacemaker.rs` | a run of the timer: what it does, in which order |
//! | `alarm.rs` | when it runs next, and how long it may take |
//! | `hints.rs`, `wakeup.rs` | when it must look at which queue; a queue gets its hint |
//! | `sink.rs`, `sink_trouble.rs` | jobs that leave for a stream; a stream that refuses them |

pub mod alarm;
pub mod hints;
pub mod pacemaker;
pub mod sink;
pub mod sink_trouble;
pub mod wakeup;
