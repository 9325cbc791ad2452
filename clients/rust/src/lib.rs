//! A client for DQ, the delay queue of Redis and Valkey: queues, topics, flows and workers, over the
//! async connections of the [redis] crate that a program has.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use dq_client::Queue;
//! use serde_json::json;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = redis::Client::open("redis://127.0.0.1/")?;
//! let mail = Queue::new(client.get_multiplexed_async_connection().await?, "mail");
//! let body = json!({"to": "ann@example.com"});
//! mail.add("welcome:ann", body).delay(Duration::from_secs(1800)).nx().await?;
//! # Ok(()) }
//! ```
//!
//! The [worker] takes the jobs. The package's README begins with both.

mod codec;
pub mod commands;
pub mod envelope;
mod errors;
mod flow;
mod info;
mod methods;
mod paging;
mod queue;
mod reading;
mod replies;
mod seam;
mod slots;
#[cfg(feature = "opentelemetry")]
mod spans;
#[cfg(feature = "testing")]
pub mod testing;
mod topic;
mod words;
pub mod worker;

pub use codec::{Body, Codec, Raw};
pub use commands::{Claim, NewJob};
pub use errors::{Error, Result, Taken};
pub use flow::{after, chain, group, Flow};
pub use info::Info;
pub use queue::Queue;
pub use reading::Shown;
pub use replies::{
    Added, Delivery, Dep, Deps, Edges, FinishedAndTaken, Group, Job, JobFields, Outcome, Page,
    Schedule,
};
pub use seam::{Connection, Connector, Later, REPLY_WITHIN};
pub use topic::{IfTaken, Topic};
pub use words::{
    Backoff, Cron, Lease, Millis, Misfire, OnDead, Rate, Sink, State, Text, UnixMillis,
};
