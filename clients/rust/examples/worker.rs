//! Sends the mail that is due, until it is told to stop by SIGTERM or Ctrl-C.

use std::error::Error;
use std::time::Duration;

use dq_client::worker::{Failure, RunningJob, Worker};
use dq_client::{NewJob, Queue};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Mail {
    to: String,
}

/// The work; here it is pretended. A job may run twice: make this idempotent.
async fn send(job: RunningJob) -> Result<String, Failure> {
    let Mail { to } = job.body()?;
    if !to.contains('@') {
        return Err(Failure::bury(format!("not an address: {to}")));
    }
    if to.ends_with("@down.example") && job.attempt() < 3 {
        let later = Duration::from_millis(100);
        return Err(Failure::retry("down.example doesn't answer").after(later));
    }
    println!("sent {} to {to}, attempt {}", job.id(), job.attempt());
    Ok(format!("accepted for {to}"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let url = std::env::var("REDIS_URL").unwrap_or("redis://127.0.0.1:6379".into());
    let client = redis::Client::open(url)?;
    let mail = Queue::new(client.get_multiplexed_async_connection().await?, "mail");
    let nightly = NewJob::new("nightly", json!({"to": "boss@example.com"}));
    let worker = Worker::new(client, send)
        .queue(&mail)
        .concurrency(10)
        .schedule(&mail, nightly.every(Duration::from_secs(24 * 3600)));
    Ok(worker.run().await?)
}
