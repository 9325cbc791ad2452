//! The servers: connections, and what DQ's commands say.
//!
//! | file | what it is |
//! | --- | --- |
//! | `node.rs` | one server, connected when it is asked |
//! | `deployment.rs` | which servers there are: one, one that sentinels name, the primaries of a cluster |
//! | `replies.rs` | reading fields out of replies |
//! | `queue.rs` | what DQ.INFO says |
//! | `job.rs` | what DQ.GET and DQ.PEEK say |
//! | `jobs.rs` | pages of jobs, by DQ.PEEK and DQ.SCAN |
//! | `walk.rs`, `search.rs` | going through all jobs of a state; those of them that are sought |
//! | `deaths.rs` | why the dead jobs of a queue died |
//! | `groups.rs` | pages of groups, by DQ.GROUPS |
//! | `deps.rs`, `chains.rs` | what a job waits for, by DQ.DEPS; what it waits for in the end |
//! | `about.rs` | what a server says of itself, by INFO |
//! | `forecast.rs` | what DQ.FORECAST says |
//! | `health.rs` | what INFO says of a server that hands out or takes nothing |
//! | `why.rs` | why a queue hands out nothing, from all of these |
//! | `alter.rs` | what DQ.ALTER sets |
//! | `plan.rs`, `runs.rs` | jobs that come back: what DQ.ADD says of them, when they run |

pub mod about;
pub mod alter;
pub mod chains;
pub mod deaths;
pub mod deployment;
pub mod deps;
pub mod filter;
pub mod forecast;
pub mod groups;
pub mod health;
pub mod job;
pub mod jobs;
pub mod node;
pub mod plan;
pub mod queue;
pub mod replies;
pub mod runs;
pub mod search;
pub mod walk;
pub mod why;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A queue's key.
pub type Name = Arc<[u8]>;

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    /// Nothing was sent.
    #[error("{address} can't be reached: {why}")]
    Unreachable { address: String, why: String },
    /// It was sent, and may have been done or not.
    #[error("{address} gave no answer: {why}")]
    Unanswered { address: String, why: String },
    #[error("{0}")]
    Refused(String),
    /// It answers that there is no such thing.
    #[error("{0}")]
    NoSuch(&'static str),
    /// It doesn't know DQ's commands.
    #[error("{address} has no module DQ")]
    NoModule { address: String },
    #[error("the server's answer can't be understood: {0}")]
    Strange(&'static str),
}

impl Trouble {
    /// Whether it is an error reply with this code.
    pub fn is(&self, code: &str) -> bool {
        matches!(self, Trouble::Refused(words) if words.split(' ').next() == Some(code))
    }

    /// Whether the server doesn't know the command. It says so before it looks at rights.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Trouble::Refused(words) if words.contains("unknown command"))
    }
}

pub type Result<T> = std::result::Result<T, Trouble>;

pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
