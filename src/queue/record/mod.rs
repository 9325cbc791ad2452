//! What is in files and in the log, besides commands.

pub mod block;
pub mod edges;
pub mod job;
pub mod queue;
pub mod replay;
