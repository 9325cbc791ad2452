//! Queues at keys: how they come there, what a key holds, and how they leave.
//!
//! | file | what it is |
//! | --- | --- |
//! | `opened.rs` | a queue that a command has opened; how its client waits |
//! | `value.rs` | what a key holds: the queue, and what is remembered of it |
//! | `lateness.rs`, `sums.rs` | how late its jobs were delivered; its share of the sums in INFO |
//! | `lifecycle.rs` | queues that come to keys and leave them |
//! | `sweep.rs`, `pace.rs` | finding queues that were moved to an unknown key; how fast |
//! | `moved.rs` | keys whose cluster slot belongs to another node |
//! | `persistence.rs`, `async_load.rs` | files; a data set that is loaded while another is served |
//! | `lazyfree.rs` | freeing large values on another thread |

pub mod async_load;
pub mod lateness;
pub mod lazyfree;
pub mod lifecycle;
pub mod moved;
pub mod opened;
pub mod pace;
pub mod persistence;
pub mod sums;
pub mod sweep;
pub mod value;
