//! What happens with each change of a queue, in the order in which it happens.
//!
//! | file | what it is |
//! | --- | --- |
//! | `frame.rs` | the frame around a command: all that follows from a change |
//! | `commit.rs` | the change itself: applied, logged, announced; by the timer and for deliveries, too |
//! | `settle.rs` | deaths by time that others wait for: they are logged before the change |
//! | `log.rs` | what replicas and the AOF get |
//! | `notify.rs` | keyspace notifications, and the counters in INFO |
//! | `leases.rs` | lease numbers across queues |
//! | `divergence.rs` | a queue that is not what its log says |

pub mod commit;
pub mod divergence;
pub mod frame;
pub mod leases;
pub mod log;
pub mod notify;
pub mod settle;
