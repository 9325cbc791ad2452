//! A worker whose handlers don't end: `stubborn URL HOW`. tests/stops.rs starts it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::time::Duration;

use dq_client::worker::{Failure, RunningJob, Worker};
use dq_client::{Connector, Queue};

const LONG: Duration = Duration::from_secs(3600);

async fn handle(job: RunningJob) -> Result<(), Failure> {
    println!("begun {}", job.id());
    match job.body::<String>()?.as_str() {
        "blocks" => std::thread::sleep(LONG),
        "blocking" => tokio::task::spawn_blocking(|| std::thread::sleep(LONG)).await?,
        // It doesn't look whether its job is lost.
        "deaf" => loop {
            tokio::time::sleep(Duration::from_millis(1)).await;
        },
        other => println!("{other}"),
    }
    Ok(())
}

async fn work(url: &str) {
    let client = redis::Client::open(url).unwrap();
    let queue = Queue::shared(client.connect().await.unwrap(), "q");
    let worker = Worker::new(client, handle).queue(&queue).concurrency(2);
    worker.grace(Duration::from_millis(200)).run().await.unwrap();
    println!("ended");
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (url, how) = (arguments.next().unwrap(), arguments.next().unwrap());
    let runtime = if how == "one" {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    } else {
        tokio::runtime::Runtime::new().unwrap()
    };
    runtime.block_on(work(&url));
}
