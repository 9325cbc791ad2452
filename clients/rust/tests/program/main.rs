//! The test program of this client: it carries out what the contract's runner asks for.
//! clients/contract/README.md describes the conversation.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod calls;
mod scripts;
mod values;

use std::sync::Arc;
use std::time::Duration;

use dq_client::envelope::{unwrapped, wrapped};
use dq_client::worker::Worker;
use dq_client::{
    after, chain, group, Codec, Connection, Connector, Error, Flow, IfTaken, NewJob, Queue, Topic,
};
use redis::{Cmd, Pipeline, Value as Reply};
use serde_json::{json, Value};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio_util::sync::CancellationToken;

use crate::calls::{Called, Prepared};
use crate::scripts::Scripts;
use crate::values::*;

#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut program = Program { connection: None, connector: None, scripts: Scripts::default() };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let request: Value = serde_json::from_str(&line).unwrap();
        match program.answer(&request).await {
            Ok(reply) => tell(&json!({"reply": reply})),
            Err(error) => tell(&json!({"error": error_out(&error)})),
        }
    }
}

/// With a machine that has much else to do: by default it is half a second for a reply.
const PATIENCE: Duration = Duration::from_secs(10);

struct Program {
    connection: Option<Arc<dyn Connection>>,
    connector: Option<Arc<dyn Connector>>,
    scripts: Scripts,
}

type Answer = Result<Value, Error>;

impl Program {
    async fn answer(&mut self, request: &Value) -> Answer {
        match text(&request["do"]).as_str() {
            "connect" => self.connect(request).await,
            "call" => self.call(request).await,
            "raw" => {
                let reply = self.connection().send(command_of(&request["words"])).await?;
                Ok(plain_out(reply))
            }
            "batch" => self.batch(request).await,
            "topic" => Ok(self.topic(request)),
            "encode" => encode(request),
            "decode" => decode(request),
            "wrap" => {
                let headers: Vec<_> = request["headers"]
                    .as_object()
                    .unwrap()
                    .iter()
                    .map(|(name, value)| (name.clone(), text(value)))
                    .collect();
                Ok(bytes_out(&wrapped(bytes(&request["body"]), &headers)?))
            }
            "unwrap" => {
                let (body, headers) = unwrapped(bytes(&request["payload"]));
                let headers: serde_json::Map<_, _> =
                    headers.into_iter().map(|(name, value)| (name, value.into())).collect();
                Ok(json!({"body": bytes_out(&body), "headers": headers}))
            }
            "flow" => Ok(flow_out(&flow(&request["flow"]))),
            "on_topic" => self.on_topic(request).await,
            "work" => self.work(request),
            "go" => {
                self.scripts.go(&text(&request["name"]));
                Ok(true.into())
            }
            other => panic!("no such request: {other}"),
        }
    }

    fn connection(&self) -> Arc<dyn Connection> {
        self.connection.clone().expect("connect comes first")
    }

    fn queue(&self, key: &Value) -> Queue {
        Queue::shared(self.connection(), bytes(key))
    }

    async fn connect(&mut self, request: &Value) -> Answer {
        let url = format!("{}/?protocol=resp{}", text(&request["url"]), request["protocol"]);
        if request["cluster"] == true {
            let client = redis::cluster::ClusterClient::builder(vec![url])
                .connection_timeout(PATIENCE)
                .response_timeout(PATIENCE)
                .build()?;
            self.connection = Some(Arc::new(client.get_async_connection().await?));
            self.connector = Some(Arc::new(client));
        } else {
            let client = redis::Client::open(url)?;
            let config = redis::AsyncConnectionConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(PATIENCE));
            let made = client.get_multiplexed_async_connection_with_config(&config).await?;
            self.connection = Some(Arc::new(made));
            self.connector = Some(Arc::new(client));
        }
        Ok(true.into())
    }

    async fn call(&self, request: &Value) -> Answer {
        self.prepared(request).reply().await
    }

    fn prepared(&self, request: &Value) -> Box<dyn Prepared> {
        let (command, key) = (text(&request["command"]), &request["key"]);
        calls::prepared(&command, |key| self.queue(key), key, &request["arguments"])
    }

    /// Typed calls and raw words on one pipeline.
    async fn batch(&self, request: &Value) -> Answer {
        let mut pipeline = Pipeline::new();
        if request["transaction"] == true {
            pipeline.atomic();
        }
        let mut later: Vec<Option<Called>> = Vec::new();
        for call in request["calls"].as_array().unwrap() {
            if call["words"].is_array() {
                pipeline.add_command(command_of(&call["words"]));
                later.push(None);
            } else {
                later.push(Some(self.prepared(call).on(&mut pipeline)?));
            }
        }
        let replies = self.connection().send_all(pipeline).await?;
        let shown = later.into_iter().enumerate().map(|(place, each)| {
            let answer = match each {
                Some(read) => read(&replies),
                None => replies[place].clone().extract_error().map(plain_out).map_err(Error::from),
            };
            match answer {
                Ok(reply) => json!({"reply": reply}),
                Err(error) => json!({"error": error_out(&error)}),
            }
        });
        Ok(shown.collect())
    }

    // ---- topics ----------------------------------------------------------------------------------

    fn topic(&self, request: &Value) -> Value {
        let client = redis::Client::open("redis://127.0.0.1/").unwrap();
        let connection = self.connection.clone().unwrap_or_else(|| Arc::new(Nowhere(client)));
        let topic = topic_of(&connection, request);
        let ids = request["ids"].as_array().unwrap().iter().map(text);
        let of: serde_json::Map<_, _> = ids
            .map(|id| (id.clone(), topic.queue_of(&id).unwrap().name().to_str().into()))
            .collect();
        let queues: Vec<_> = topic.queues().iter().map(|queue| queue.name().to_string()).collect();
        json!({"queues": queues, "queue_of": of})
    }

    async fn on_topic(&self, request: &Value) -> Answer {
        let topic = topic_of(&self.connection(), &request["topic"]);
        let told = &request["arguments"];
        let id = text(&told["id"]);
        match text(&request["command"]).as_str() {
            "add" => {
                let flags = ["nx", "replace", "ensure"].map(|flag| told[flag] == true);
                let if_taken = match flags {
                    [true, _, _] => IfTaken::Keep,
                    [_, true, _] => IfTaken::Replace,
                    [_, _, true] => IfTaken::Ensure,
                    _ => IfTaken::Refuse,
                };
                let job = NewJob::new(&id, told["body"].clone());
                let job = calls::new_job_options(job, told);
                Ok(added_out(&topic.add_job(&job, if_taken).await?))
            }
            "cancel" => Ok(topic.cancel(&id).await?.into()),
            "get" => Ok(topic.get(&id).await?.map_or(Value::Null, |job| job_out(&job))),
            "result" => {
                let Some(outcome) = topic.result(&id, None::<Duration>).await? else {
                    return Ok(Value::Null);
                };
                let what: Option<Value> = outcome.value()?;
                Ok(json!({"state": outcome.state.to_str(), "what": what}))
            }
            "length" => Ok(topic.length(None).await?.into()),
            other => panic!("no such command of a topic: {other}"),
        }
    }

    // ---- a worker --------------------------------------------------------------------------------

    fn work(&self, told: &Value) -> Answer {
        let scripts = self.scripts.clone();
        let connector = self.connector.clone().expect("connect comes first");
        let ms =
            |name: &str, default| Duration::from_millis(told[name].as_u64().unwrap_or(default));
        let mut worker = Worker::new(connector, move |job| scripts.clone().play(job))
            .concurrency(told["concurrency"].as_u64().unwrap_or(10) as usize)
            .ttr(ms("ttr", 60_000))
            .grace(ms("grace", 30_000));
        let mut first = None;
        if told["topic"].is_object() {
            worker = worker.topic(&topic_of(&self.connection(), &told["topic"]));
        } else {
            for (name, weight) in told["queues"].as_object().unwrap() {
                let queue = self.queue(&name.as_str().into());
                worker = worker.weighted(&queue, weight.as_u64().unwrap() as u32);
                first = first.or(Some(queue));
            }
        }
        for declared in told["schedules"].as_array().into_iter().flatten() {
            let job = NewJob::new(text(&declared["id"]), declared["body"].clone());
            let job = calls::new_job_options(job, declared);
            worker = worker.schedule(first.as_ref().unwrap(), job);
        }
        if told["hooks"] == true {
            worker = worker
                .before(|job| {
                    tell(&json!({"event": "before", "id": job.id().to_str()}));
                    Ok(())
                })
                .after(|job, failed| {
                    let failed = failed.is_some();
                    tell(&json!({"event": "after", "id": job.id().to_str(), "failed": failed}));
                });
        }
        tokio::spawn(serve(worker));
        Ok(true.into())
    }
}

async fn serve(worker: Worker) {
    let stop = CancellationToken::new();
    let mut terminate =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
    let told = stop.clone();
    tokio::spawn(async move {
        terminate.recv().await;
        tell(&json!({"event": "stopping"}));
        told.cancel();
    });
    if let Err(error) = worker.serve(stop).await {
        let mut failed = error_out(&error);
        failed["event"] = "failed".into();
        tell(&json!({"event": "stopping"}));
        tell(&failed);
        std::process::exit(1);
    }
    std::process::exit(0);
}

/// Tables need no server.
struct Nowhere(redis::Client);

impl Connection for Nowhere {
    fn send(&self, _: Cmd) -> futures_util::future::BoxFuture<'_, redis::RedisResult<Reply>> {
        Box::pin(async { Err(self.0.get_connection().err().unwrap()) })
    }

    fn send_all(
        &self,
        _: Pipeline,
    ) -> futures_util::future::BoxFuture<'_, redis::RedisResult<Vec<Reply>>> {
        Box::pin(async { Err(self.0.get_connection().err().unwrap()) })
    }
}

fn topic_of(connection: &Arc<dyn Connection>, told: &Value) -> Topic {
    let shards = told["shards"].as_u64().unwrap();
    let topic = Topic::shared(connection.clone(), text(&told["name"]), shards);
    if told["before"].is_object() {
        topic.before(topic_of(connection, &told["before"]))
    } else {
        topic
    }
}

fn codec(request: &Value) -> Codec {
    if request["codec"] == "msgpack" {
        Codec::Msgpack
    } else {
        Codec::Json
    }
}

fn encode(request: &Value) -> Answer {
    use dq_client::{Body, Raw};
    let value = &request["value"];
    let encoded = match text(&request["codec"]).as_str() {
        "raw" => Raw(bytes(value)).encode(Codec::Json)?,
        _ => value.encode(codec(request))?,
    };
    Ok(bytes_out(&encoded))
}

fn decode(request: &Value) -> Answer {
    let data = bytes(&request["bytes"]);
    match text(&request["codec"]).as_str() {
        "raw" => Ok(bytes_out(&data)),
        _ => codec(request).decode(&data),
    }
}

fn flow(told: &Value) -> Flow {
    if told["step"].is_string() {
        return NewJob::new(text(&told["step"]), ()).into();
    }
    let parts =
        |name: &str| told[name].as_array().map(|parts| parts.iter().map(flow).collect::<Vec<_>>());
    if let Some(parts) = parts("chain") {
        return chain(parts);
    }
    if let Some(parts) = parts("group") {
        return group(parts);
    }
    after(told["after"].as_array().unwrap().iter().map(text), flow(&told["of"]))
}

fn flow_out(flow: &Flow) -> Value {
    let texts =
        |ids: &[dq_client::Text]| -> Value { ids.iter().map(|id| id.to_string()).collect() };
    let adds: Value =
        flow.steps().map(|(id, before)| json!([id.to_string(), texts(before)])).collect();
    json!({"adds": adds, "last": texts(flow.last())})
}
