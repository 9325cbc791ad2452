//! What a queue consists of, how a job gets its place, and the one way to change a queue.

pub mod attached;
pub mod batch;
pub mod change;
pub mod defrag;
pub mod delivery;
pub mod dependencies;
pub mod details;
pub mod grouped;
pub mod job;
pub mod journal;
pub mod ledger;
pub mod limited;
pub mod limits;
pub mod log_state;
pub mod operation;
pub mod plain_lease;
pub mod pool;
pub mod queue;
pub mod recurring;
pub mod removed;
pub mod store;
pub mod terms;
pub mod totals;
pub mod transition;
pub mod view;
pub mod watch;
