//! Clients that wait: for jobs, for what becomes of a job, or for a lease to become void.
//!
//! | file | what it is |
//! | --- | --- |
//! | `serving.rs` | waiting clients from the time they block until they are unblocked |
//! | `waiters.rs` | who they are, and in which order they came |
//! | `wish.rs` | what a client waits for, and gets |
//! | `delivery.rs`, `pending.rs` | delivering jobs to them; jobs on the way to a client |
//! | `reply.rs` | what a client gets, at once or after its wait |
//! | `watching.rs`, `watchers.rs` | what becomes of a job or a lease that clients watch; who watches what |
//! | `checks.rs` | the same, where another queue may be at the key |

pub mod checks;
pub mod delivery;
pub mod pending;
pub mod reply;
pub mod serving;
pub mod waiters;
pub mod watchers;
pub mod watching;
pub mod wish;
