//! DQ's Rust client.
//!
//! dq-bench-worker URL add COUNT | late COUNT | worker CONCURRENCY

use std::error::Error;
use std::fs::OpenOptions;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dq_client::worker::{Failure, RunningJob, Worker};
use dq_client::Queue;
use serde_json::{json, Value};

// As in told.py.
const DELAY: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(20);

fn now_ms() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1e3)
}

async fn handle(job: RunningJob) -> Result<(), Failure> {
    let body: Value = job.body()?;
    if let Some(due) = body["due"].as_f64() {
        let file = std::env::var("LATE_FILE")?;
        let open = OpenOptions::new().create(true).append(true).open(file);
        let line = format!("{:.3}\n", now_ms() - due);
        open.and_then(|mut file| file.write_all(line.as_bytes()))?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, load, number] = words.as_slice() else {
        return Err("URL LOAD NUMBER".into());
    };
    let number: usize = number.parse()?;
    let client = redis::Client::open(url.as_str())?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let queue = Queue::new(connection.clone(), "queue");
    match load.as_str() {
        "add" => {
            for first in (0..number).step_by(1_000) {
                let mut pipeline = redis::pipe();
                for number in first..first + 1_000 {
                    queue.add(format!("job:{number}"), json!({})).on(&mut pipeline)?;
                }
                pipeline.exec_async(&mut connection).await?;
            }
        }
        "late" => {
            for number in 0..number {
                let body = json!({"due": now_ms().floor() + DELAY.as_secs_f64() * 1e3});
                queue.add(format!("late:{number}"), body).delay(DELAY).await?;
                tokio::time::sleep(EVERY).await;
            }
        }
        _ => Worker::new(client, handle).queue(&queue).concurrency(number).run().await?,
    }
    Ok(())
}
