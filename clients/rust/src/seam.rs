//! Between a command and the redis crate.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use redis::aio::ConnectionLike;
#[cfg(feature = "cluster")]
use redis::{
    cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr},
    Arg, RedisError,
};
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::errors::{Adds, Error, Result};
use crate::words::Words;

/// What sends commands. Every async connection of the redis crate that can be cloned is one:
/// `MultiplexedConnection`, `ConnectionManager`, `cluster_async::ClusterConnection`.
pub trait Connection: Send + Sync {
    /// The reply to a command.
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>>;

    /// The replies to a pipeline. An error of one of its commands is the reply of that one.
    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>>;

    /// For how long a command may block at most; it is sent again until its wait is over. By default
    /// connections of the redis crate give up on a reply after half a second.
    fn longest_wait(&self) -> Duration {
        Duration::from_millis(300)
    }
}

impl<C: ConnectionLike + Clone + Send + Sync> Connection for C {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        let mut connection = self.clone();
        Box::pin(async move { connection.req_packed_command(&command).await?.extract_error() })
    }

    fn send_all(&self, mut pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        let mut connection = self.clone();
        Box::pin(async move { pipeline.ignore_errors().query_async(&mut connection).await })
    }
}

/// What makes connections, for commands that block: on one that is shared, all others would wait
/// behind them. `redis::Client` and `redis::cluster::ClusterClient` are such. For Sentinel, implement
/// it: ask for the primary at each call.
pub trait Connector: Send + Sync + 'static {
    /// A new connection, that waits for a reply for [`REPLY_WITHIN`] at most.
    fn connect(&self) -> BoxFuture<'_, RedisResult<Arc<dyn Connection>>>;

    /// Whether queues in different slots may be on different nodes.
    fn is_cluster(&self) -> bool {
        false
    }

    /// Where the server is, for log lines: without a password.
    fn address(&self) -> String {
        String::new()
    }
}

/// How long a connection of a [`Connector`] waits for a reply: longer than a command blocks, and
/// not for ever when a server has vanished.
pub const REPLY_WITHIN: Duration = Duration::from_secs(5);
const WAIT_AT_MOST: Duration = Duration::from_secs(2);

/// A connection that is used by one task, and may block.
struct Own<C>(C);

impl<C: Connection> Connection for Own<C> {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        self.0.send(command)
    }

    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        self.0.send_all(pipeline)
    }

    fn longest_wait(&self) -> Duration {
        WAIT_AT_MOST
    }
}

impl Connector for redis::Client {
    fn connect(&self) -> BoxFuture<'_, RedisResult<Arc<dyn Connection>>> {
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(REPLY_WITHIN));
        Box::pin(async move {
            let made = self.get_multiplexed_async_connection_with_config(&config).await?;
            Ok(Arc::new(Own(made)) as Arc<dyn Connection>)
        })
    }

    fn address(&self) -> String {
        self.get_connection_info().addr().to_string()
    }
}

#[cfg(feature = "cluster")]
impl Connector for redis::cluster::ClusterClient {
    fn connect(&self) -> BoxFuture<'_, RedisResult<Arc<dyn Connection>>> {
        let config = redis::cluster::ClusterConfig::new().set_response_timeout(REPLY_WITHIN);
        Box::pin(async move {
            let made = self.get_async_connection_with_config(config).await?;
            Ok(Arc::new(OfCluster(made)) as Arc<dyn Connection>)
        })
    }

    fn is_cluster(&self) -> bool {
        true
    }

    fn address(&self) -> String {
        "the cluster".to_owned()
    }
}

/// The connection of a cluster tries again by itself, with pauses that grow to minutes: here the
/// caller learns in time that a node is away.
#[cfg(feature = "cluster")]
struct OfCluster(redis::cluster_async::ClusterConnection);

#[cfg(feature = "cluster")]
impl Connection for OfCluster {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        Box::pin(in_time(async move {
            match node_of(&command) {
                Some(node) => self.0.clone().route_command(command, node).await?.extract_error(),
                None => self.0.send(command).await,
            }
        }))
    }

    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        Box::pin(in_time(self.0.send_all(pipeline)))
    }

    fn longest_wait(&self) -> Duration {
        WAIT_AT_MOST
    }
}

/// The node of a command whose keys don't come first: else any node would be asked, also one that is
/// away.
#[cfg(feature = "cluster")]
fn node_of(command: &Cmd) -> Option<RoutingInfo> {
    let mut words = command.args_iter();
    match words.next() {
        Some(Arg::Simple(b"DQ.MPOP")) => {}
        _ => return None,
    }
    let Some(Arg::Simple(key)) = words.nth(1) else { return None };
    let slot = u16::try_from(crate::slots::slot_of(key)).ok()?;
    let node = SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
    Some(RoutingInfo::SingleNode(node))
}

#[cfg(feature = "cluster")]
async fn in_time<T>(reply: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(REPLY_WITHIN, reply).await.map_err(late)?
}

impl<T: Connector + ?Sized> Connector for Arc<T> {
    fn connect(&self) -> BoxFuture<'_, RedisResult<Arc<dyn Connection>>> {
        (**self).connect()
    }

    fn is_cluster(&self) -> bool {
        (**self).is_cluster()
    }

    fn address(&self) -> String {
        (**self).address()
    }
}

type Read<T> = Box<dyn FnOnce(Value) -> Result<T> + Send + Sync>;

/// A command: its words, and how its reply is read.
pub(crate) struct Command<T> {
    pub(crate) words: Words,
    read: Read<T>,
    /// Where among the words the milliseconds are for which the command waits.
    wait_at: Option<usize>,
    /// Whether a reply says that what was waited for hasn't come.
    is_waiting: fn(&Value) -> bool,
    /// Words that stand behind the others: a wait in pieces sends them with the first piece alone.
    once: Words,
    /// Puts the reply of a later piece into that of the first one.
    join: fn(&mut Value, Value),
    /// A value that could not be encoded.
    failed: Option<Error>,
    pub(crate) adds: Adds,
}

impl<T> Command<T> {
    pub(crate) fn new(
        words: Words,
        read: impl FnOnce(Value) -> Result<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            words,
            read: Box::new(read),
            wait_at: None,
            is_waiting: |reply| matches!(reply, Value::Nil),
            once: Words::default(),
            join: |reply, later| *reply = later,
            failed: None,
            adds: Adds::default(),
        }
    }

    /// With words that are sent once, and make another reply.
    pub(crate) fn once(mut self, words: Result<Words>, join: fn(&mut Value, Value)) -> Self {
        self.join = join;
        match words {
            Ok(words) => self.once = words,
            Err(error) => self.failed = Some(error),
        }
        self
    }

    /// The last word is for how long to wait.
    pub(crate) fn waits(&mut self) {
        self.wait_at = self.words.0.len().checked_sub(1);
    }

    pub(crate) fn waiting_while(mut self, is_waiting: fn(&Value) -> bool) -> Self {
        self.is_waiting = is_waiting;
        self
    }

    /// A word that may fail to be made.
    pub(crate) fn encoded(&mut self, word: Result<Vec<u8>>) {
        match word {
            Ok(word) => self.words.0.push(word),
            Err(error) => self.failed = self.failed.take().or(Some(error)),
        }
    }

    pub(crate) fn on(mut self, pipeline: &mut Pipeline) -> Result<Later<T>> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.words.0.append(&mut self.once.0);
        let place = pipeline.len();
        pipeline.add_command(cmd(&self.words));
        Ok(Later { place, read: self.read, adds: self.adds })
    }

    pub(crate) async fn send(self, connection: &dyn Connection) -> Result<T> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut wait = Wait::of(&self.words, self.wait_at, connection.longest_wait());
        let mut words = self.words;
        let length = words.0.len();
        words.0.extend(self.once.0);
        let mut reply = Value::Nil;
        while let Some(piece) = wait.next_piece() {
            if let (Some(at), Some(piece_ms)) = (self.wait_at, piece) {
                if let Some(word) = words.0.get_mut(at) {
                    *word = piece_ms.to_string().into_bytes();
                }
            }
            let sent = connection.send(cmd(&words)).await;
            let sent = sent.map_err(|error| Error::from(error).about(&self.adds))?;
            (self.join)(&mut reply, sent);
            if !(self.is_waiting)(&reply) {
                break;
            }
            words.0.truncate(length);
        }
        (self.read)(reply)
    }
}

/// A wait in pieces.
struct Wait {
    is_over: bool,
    /// None for a command that is sent once, as it is.
    left: Option<Left>,
}

struct Left {
    /// None for a wait without limit.
    until: Option<Instant>,
    at_most_ms: u64,
}

impl Wait {
    fn of(words: &Words, at: Option<usize>, at_most: Duration) -> Self {
        let told = at.and_then(|at| words.0.get(at));
        let wanted = told.and_then(|word| std::str::from_utf8(word).ok()?.parse::<u64>().ok());
        // Zero would be a wait without limit.
        let at_most_ms = u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX).max(1);
        let left = wanted.filter(|&ms| ms == 0 || ms > at_most_ms).map(|ms| Left {
            until: (ms > 0)
                .then(|| Instant::now().checked_add(Duration::from_millis(ms)))
                .flatten(),
            at_most_ms,
        });
        Self { is_over: false, left }
    }

    /// None when the wait is over; else how long the next piece is, if that is to be said.
    fn next_piece(&mut self) -> Option<Option<u64>> {
        let Some(left) = &self.left else {
            return (!std::mem::replace(&mut self.is_over, true)).then_some(None);
        };
        let Some(until) = left.until else { return Some(Some(left.at_most_ms)) };
        let left_ms = until.saturating_duration_since(Instant::now()).as_millis();
        let piece = u64::try_from(left_ms).unwrap_or(u64::MAX).min(left.at_most_ms);
        (piece > 0).then_some(Some(piece))
    }
}

pub(crate) fn cmd(words: &Words) -> Cmd {
    let mut command = Cmd::with_capacity(words.0.len(), words.0.iter().map(Vec::len).sum());
    for word in &words.0 {
        command.arg(word.as_slice());
    }
    command
}

/// The reply of a command on a pipeline, once that is executed.
pub struct Later<T> {
    place: usize,
    read: Read<T>,
    adds: Adds,
}

impl<T> Later<T> {
    /// The reply among those of the pipeline: `pipeline.ignore_errors().query_async::<Vec<Value>>(…)`
    /// has all of them. An error of this command is returned.
    pub fn of(self, replies: &[Value]) -> Result<T> {
        let reply = replies.get(self.place).ok_or_else(|| Error::reply(replies.len()))?;
        let reply = reply.clone().extract_error();
        (self.read)(reply.map_err(|error| Error::from(error).about(&self.adds))?)
    }
}

/// Waits for a future for a time at most: true when it came.
pub(crate) async fn within(limit: Duration, wanted: impl Future<Output = ()>) -> bool {
    tokio::time::timeout(limit, wanted).await.is_ok()
}

#[cfg(all(test, feature = "cluster"))]
mod tests {
    use super::*;

    #[test]
    fn the_node_of_an_mpop_is_that_of_its_keys() {
        let command = |words: &[&str]| redis::cmd(words[0]).arg(&words[1..]).to_owned();
        let slot = u16::try_from(crate::slots::slot_of(b"{user1000}.a")).unwrap();
        let node = SingleNodeRoutingInfo::SpecificNode(Route::new(slot, SlotAddr::Master));
        let node = RoutingInfo::SingleNode(node);
        let mpop = command(&["DQ.MPOP", "2", "{user1000}.a", "{user1000}.b", "BLOCK", "0"]);
        assert_eq!(node_of(&mpop), Some(node));
        assert_eq!(node_of(&command(&["DQ.POP", "q"])), None);
    }
}
