//! How fast a worker with an empty handler is, beside the raw commands of the redis crate.
//!
//! DQ_SERVER=… DQ_MODULE=… cargo run --release --example measure --features testing [JOBS]
//!
//! Each line: jobs a second, processor time for a job in this program and in the server. `raw` takes
//! a job with DQ.POP and finishes it with DQ.FINISH, one after the other.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dq_client::testing::Server;
use dq_client::worker::{Failure, Worker};
use dq_client::{Queue, Raw};
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() {
    let jobs = std::env::args().nth(1).map_or(50_000, |told| told.parse().unwrap());
    let server = Server::start().await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    for _ in 0..2 {
        measure("raw", &server, &client, jobs, raw(client.clone())).await;
        for places in [1, 10, 100] {
            let name = format!("worker, {places}");
            measure(&name, &server, &client, jobs, worker(client.clone(), jobs, places)).await;
        }
    }
}

async fn measure(
    name: &str,
    server: &Server,
    client: &redis::Client,
    jobs: usize,
    work: impl Future<Output = Duration>,
) {
    server.flush().await.unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let queue = Queue::new(connection.clone(), "q");
    for part in 0..jobs.div_ceil(1_000) {
        let mut pipeline = redis::pipe();
        for number in part * 1_000..jobs.min((part + 1) * 1_000) {
            queue.add(format!("job:{number}"), Raw("{\"n\":1}")).on(&mut pipeline).unwrap();
        }
        pipeline.exec_async(&mut connection).await.unwrap();
    }
    let (here, there) = (time_of("self"), time_of(&server.pid().to_string()));
    let took = work.await;
    let per_job = |before: f64, after: f64| (after - before) / jobs as f64 * 1e6;
    println!(
        "{name:12} {:7.0} a second, {:4.1} µs here, {:4.1} µs there",
        jobs as f64 / took.as_secs_f64(),
        per_job(here, time_of("self")),
        per_job(there, time_of(&server.pid().to_string())),
    );
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// Processor time in seconds, of a system with 100 ticks a second.
fn time_of(process: &str) -> f64 {
    let told = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = told.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap() / 100.0).sum()
}

async fn raw(client: redis::Client) -> Duration {
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let begun = Instant::now();
    type Popped = Option<Vec<(Vec<u8>, Vec<u8>, i64, i64)>>;
    while let Some(popped) =
        redis::cmd("DQ.POP").arg("q").query_async::<Popped>(&mut connection).await.unwrap()
    {
        let (id, _, lease, _) = &popped[0];
        let mut finish = redis::cmd("DQ.FINISH");
        finish.arg("q").arg(id).arg(lease).exec_async(&mut connection).await.unwrap();
    }
    begun.elapsed()
}

async fn worker(client: redis::Client, jobs: usize, places: usize) -> Duration {
    let queue = Queue::new(client.get_multiplexed_async_connection().await.unwrap(), "q");
    let left = Arc::new(AtomicUsize::new(jobs));
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let handler = move |_| {
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            stopping.cancel();
        }
        async { Ok::<(), Failure>(()) }
    };
    let begun = Instant::now();
    let ended = stop.clone();
    let working = Worker::new(client, handler).queue(&queue).concurrency(places).serve(stop);
    let clock = async {
        ended.cancelled().await;
        begun.elapsed()
    };
    let (took, worked) = tokio::join!(clock, working);
    worked.unwrap();
    took
}
