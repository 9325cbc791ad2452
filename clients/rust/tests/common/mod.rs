//! What the tests of workers share: a server, a worker that works until something holds, and
//! connections that fail as a network does.

#![allow(dead_code)]

use std::collections::HashMap;
use std::future::Future;
use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use dq_client::testing::Server;
use dq_client::worker::Worker;
use dq_client::{Connection, Connector, Error, Job, Queue};
use futures_util::future::BoxFuture;
use redis::{Arg, Cmd, Pipeline, RedisResult, Value};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub const WITHIN: Duration = Duration::from_secs(60);
pub const HOUR: Duration = Duration::from_secs(3600);

pub struct Place {
    pub server: Server,
    pub client: redis::Client,
    pub queue: Queue,
}

pub async fn place() -> Place {
    let server = Server::start().await.unwrap();
    let client = redis::Client::open(server.url()).unwrap();
    let queue = Queue::shared(client.connect().await.unwrap(), "q");
    Place { server, client, queue }
}

impl Place {
    pub async fn call(&self, words: &[&str]) -> RedisResult<Value> {
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        self.client.connect().await?.send(command).await
    }

    pub async fn job(&self, id: &str) -> Job {
        self.queue.get(id).await.unwrap().unwrap()
    }

    pub async fn state(&self, id: &str) -> Option<String> {
        let outcome = self.queue.result(id).await.unwrap();
        outcome.map(|outcome| outcome.state.to_string())
    }

    /// Waits until this many jobs are in a state.
    pub async fn counts(&self, state: dq_client::State, wanted: i64) {
        eventually(|| async { self.queue.len().state(state).await.unwrap() == wanted }).await;
    }
}

pub async fn eventually<F: Future<Output = bool>>(holds: impl Fn() -> F) {
    let deadline = Instant::now() + WITHIN;
    while !holds().await {
        assert!(Instant::now() < deadline, "it has not come to that");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub struct Working {
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

pub fn work(worker: Worker) -> Working {
    let stop = CancellationToken::new();
    Working { stop: stop.clone(), task: tokio::spawn(worker.serve(stop)) }
}

impl Working {
    pub fn is_up(&self) -> bool {
        !self.task.is_finished()
    }

    pub async fn end(self) {
        assert!(self.is_up(), "{:?}", self.task.await);
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

// ---- a network that fails --------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The command isn't sent, and an error comes at once.
    Cut,
    /// The command isn't sent, and nothing comes for five seconds.
    Silent,
    /// The command is sent this much later.
    Late(Duration),
}

/// Makes connections that fail for commands, or keys, for as long as a fault is set for them.
#[derive(Clone)]
pub struct Gate {
    client: Arc<Mutex<redis::Client>>,
    faults: Arc<Mutex<HashMap<Vec<u8>, Fault>>>,
    is_cluster: bool,
}

impl Gate {
    pub fn new(client: &redis::Client) -> Self {
        let client = Arc::new(Mutex::new(client.clone()));
        Self { client, faults: Arc::default(), is_cluster: false }
    }

    /// What is in different slots may be on different nodes.
    pub fn of_cluster(client: &redis::Client) -> Self {
        Self { is_cluster: true, ..Self::new(client) }
    }

    /// `what` is a command, a key, or "" for all.
    pub fn set(&self, what: &str, fault: Fault) {
        self.faults.lock().unwrap().insert(what.into(), fault);
    }

    pub fn open(&self) {
        self.faults.lock().unwrap().clear();
    }

    pub fn lead_to(&self, client: &redis::Client) {
        *self.client.lock().unwrap() = client.clone();
    }

    fn fault_of(&self, words: &[Vec<u8>]) -> Option<Fault> {
        let faults = self.faults.lock().unwrap();
        words.iter().find_map(|word| faults.get(word)).or(faults.get(&b""[..])).copied()
    }

    async fn pass(&self, words: Vec<Vec<u8>>) -> RedisResult<()> {
        let refused = || std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        match self.fault_of(&words) {
            None => return Ok(()),
            Some(Fault::Cut) => {}
            Some(Fault::Late(by)) => {
                tokio::time::sleep(by).await;
                return Ok(());
            }
            Some(Fault::Silent) => {
                let deadline = Instant::now() + dq_client::REPLY_WITHIN;
                while self.fault_of(&words).is_some() && Instant::now() < deadline {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        }
        Err(refused().into())
    }
}

impl Connector for Gate {
    fn connect(&self) -> BoxFuture<'_, RedisResult<Arc<dyn Connection>>> {
        Box::pin(async {
            self.pass(Vec::new()).await?;
            let client = self.client.lock().unwrap().clone();
            let made = Gated { gate: self.clone(), inner: client.connect().await? };
            Ok(Arc::new(made) as Arc<dyn Connection>)
        })
    }

    fn is_cluster(&self) -> bool {
        self.is_cluster
    }

    fn address(&self) -> String {
        "db.example:6379".to_owned()
    }
}

struct Gated {
    gate: Gate,
    inner: Arc<dyn Connection>,
}

/// The command, and the word behind it, which is the key of nearly all.
fn words_of<'a>(commands: impl Iterator<Item = &'a Cmd>) -> Vec<Vec<u8>> {
    let words = commands.flat_map(|command| command.args_iter().take(2));
    words
        .filter_map(|word| match word {
            Arg::Simple(word) => Some(word.to_vec()),
            _ => None,
        })
        .collect()
}

impl Connection for Gated {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        Box::pin(async move {
            self.gate.pass(words_of(std::iter::once(&command))).await?;
            self.inner.send(command).await
        })
    }

    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        Box::pin(async move {
            self.gate.pass(words_of(pipeline.cmd_iter())).await?;
            self.inner.send_all(pipeline).await
        })
    }
}

// ---- what is logged --------------------------------------------------------------------------------

/// The log lines of this thread, for as long as the guard lives. A test with it runs in one thread.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    pub fn listen(&self) -> tracing::subscriber::DefaultGuard {
        // With a second one, lines that other threads don't want are still asked for in this one.
        static OTHER: OnceLock<tracing::Dispatch> = OnceLock::new();
        OTHER.get_or_init(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new()));
        let lines = self.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || lines.clone())
            .with_ansi(false)
            .with_max_level(tracing::Level::INFO)
            .finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub fn with(&self, part: &str) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
