//! A connection of a worker, which is made again when the server is another one.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisResult, Value};

use crate::errors::{Error, Result};
use crate::seam::{Connection, Connector};
use crate::worker::outage::Patience;

/// A server that has as many clients as it takes refuses RESP2's AUTH as it does a wrong password.
const DENIED_AT_MOST: Duration = Duration::from_secs(60);

/// A connection that is made when it is needed first, and after each error that passes.
pub(super) struct Link {
    connector: Arc<dyn Connector>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<Arc<dyn Connection>>,
    /// The server has taken the password before.
    was_there: bool,
    denied_since: Option<Instant>,
}

impl Link {
    pub(super) fn over(connector: &Arc<dyn Connector>) -> Arc<Self> {
        Arc::new(Self { connector: connector.clone(), state: Mutex::default() })
    }

    /// Connects before there is something to send: a cluster whose first node is away can't be found
    /// later.
    pub(super) async fn connect(&self) {
        // What fails is tried again by the first command.
        let _ = self.connection().await;
    }

    async fn connection(&self) -> RedisResult<Arc<dyn Connection>> {
        if let Some(current) = self.state().current.clone() {
            return Ok(current);
        }
        let made = self.connector.connect().await.map_err(|error| self.denied(error))?;
        let mut state = self.state();
        state.was_there = true;
        state.denied_since = None;
        Ok(state.current.get_or_insert(made).clone())
    }

    /// A password that was right before may be so again: for a while the error passes.
    fn denied(&self, error: RedisError) -> RedisError {
        let mut state = self.state();
        if error.kind() != ErrorKind::AuthenticationFailed || !state.was_there {
            return error;
        }
        let since = *state.denied_since.get_or_insert_with(Instant::now);
        if since.elapsed() > DENIED_AT_MOST {
            return error;
        }
        RedisError::from((ErrorKind::Io, "the server refuses the password that it took before"))
    }

    /// The address may lead to another server by now. Connections of clusters see to it by themselves.
    fn leave(&self, used: &Arc<dyn Connection>) {
        if self.connector.is_cluster() {
            return;
        }
        let mut state = self.state();
        if state.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
            state.current = None;
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn passes(error: &RedisError) -> bool {
    Error::from(error.clone()).passes()
}

/// Such as READONLY: an error of one command of a pipeline.
fn is_away(reply: &Value) -> bool {
    matches!(reply, Value::ServerError(error) if passes(&error.clone().into()))
}

impl Connection for Link {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        Box::pin(async move {
            let connection = self.connection().await?;
            let reply = connection.send(command).await;
            if reply.as_ref().is_err_and(passes) {
                self.leave(&connection);
            }
            reply
        })
    }

    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        Box::pin(async move {
            let connection = self.connection().await?;
            let replies = connection.send_all(pipeline).await;
            let leaves = match &replies {
                Ok(replies) => replies.iter().any(is_away),
                Err(error) => passes(error),
            };
            if leaves {
                self.leave(&connection);
            }
            replies
        })
    }

    fn longest_wait(&self) -> Duration {
        Duration::from_secs(2)
    }
}

/// A reply, and when the command was sent that it answers: not the first try of it.
pub(super) struct Answer<T> {
    pub(super) reply: T,
    pub(super) sent: Instant,
}

/// The reply, as soon as the server gives one. None when it is told to stop before that.
pub(super) async fn ask<T, C>(
    patience: &mut Patience,
    command: impl Fn() -> C,
    is_over: impl Fn() -> bool,
) -> Result<Option<Answer<T>>>
where
    C: IntoFuture<Output = Result<T>>,
{
    loop {
        let sent = Instant::now();
        match command().await {
            Ok(reply) => {
                patience.answered();
                return Ok(Some(Answer { reply, sent }));
            }
            Err(error) if !error.passes() => return Err(error),
            Err(error) => patience.failed(&error),
        }
        if is_over() {
            return Ok(None);
        }
        patience.pause().await;
    }
}
