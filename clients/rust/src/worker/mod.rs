//! A worker takes jobs, runs a handler for each, and says what came of it.
//!
//! ```no_run
//! use dq_client::worker::{Failure, RunningJob, Worker};
//! use dq_client::Queue;
//!
//! async fn send(job: RunningJob) -> Result<String, Failure> {
//!     let to: String = job.body()?;
//!     if !to.contains('@') {
//!         return Err(Failure::bury("not an address"));
//!     }
//!     Ok(format!("accepted for {to}"))
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = redis::Client::open("redis://127.0.0.1/")?;
//! let mail = Queue::new(client.get_multiplexed_async_connection().await?, "mail");
//! Worker::new(client, send).queue(&mail).concurrency(10).run().await?;
//! # Ok(()) }
//! ```

mod builder;
mod fetching;
mod handling;
mod hands;
mod link;
mod outage;
mod outcomes;
mod renewing;
mod running;
mod serving;
mod settlement;
mod settling;
mod signals;
mod starting;

pub use builder::Worker;
pub use outcomes::{Done, Failure, Returned};
pub use running::RunningJob;
