//! What is in files and in the log, besides commands.

pub mod block;
pub mod job;
pub mod queue;
pub mod replay;
