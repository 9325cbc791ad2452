//! apalis on Redis.
//!
//! apalis-bench-worker URL add COUNT | worker CONCURRENCY

use std::error::Error;

use apalis::layers::WorkerBuilderExt;
use apalis::prelude::*;
use apalis_redis::{Config, RedisStorage};
use serde::{Deserialize, Serialize};

// In one call, and as many as there are places: one fetch fills them.
const PER_CALL: usize = 1_000;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Nothing {}

async fn handle(_: Nothing) -> Result<(), BoxDynError> {
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, load, number] = words.as_slice() else {
        return Err("URL LOAD NUMBER".into());
    };
    let number: usize = number.parse()?;
    let connection = apalis_redis::connect(url.as_str()).await?;
    let config = Config::default().queue("bench");
    if load == "add" {
        let mut storage = RedisStorage::new(connection).with_config(config);
        for _ in 0..number / PER_CALL {
            storage.push_bulk(vec![Nothing {}; PER_CALL]).await?;
        }
        return Ok(());
    }
    let storage = RedisStorage::new(connection).with_config(config.batch_size(number));
    let worker = WorkerBuilder::new("bench-worker")
        .backend(storage)
        .concurrency(number)
        .parallelize(tokio::spawn)
        .build(handle);
    Ok(worker.run().await?)
}
