//! A connection of a worker, which is made anew when the server is another one, and how a worker waits
//! while the server is away.

use std::future::IntoFuture;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::{Cmd, Pipeline, RedisResult, Value};

use crate::errors::{Error, Result};
use crate::seam::{Connection, Connector};

/// A connection that is made when it is needed first, and after each error that passes.
pub(super) struct Link {
    connector: Arc<dyn Connector>,
    current: Mutex<Option<Arc<dyn Connection>>>,
}

impl Link {
    pub(super) fn over(connector: &Arc<dyn Connector>) -> Arc<dyn Connection> {
        Arc::new(Self { connector: connector.clone(), current: Mutex::default() })
    }

    async fn connection(&self) -> RedisResult<Arc<dyn Connection>> {
        if let Some(current) = self.slot().clone() {
            return Ok(current);
        }
        let made = self.connector.connect().await?;
        Ok(self.slot().get_or_insert(made).clone())
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Arc<dyn Connection>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address may lead to another server by now. Connections of clusters see to it by themselves.
    fn leave_if_away<T>(
        &self,
        used: &Arc<dyn Connection>,
        reply: RedisResult<T>,
    ) -> RedisResult<T> {
        let is_away = matches!(&reply, Err(error) if Error::from(error.clone()).passes());
        if is_away && !self.connector.is_cluster() {
            let mut slot = self.slot();
            if slot.as_ref().is_some_and(|current| Arc::ptr_eq(current, used)) {
                *slot = None;
            }
        }
        reply
    }
}

impl Connection for Link {
    fn send(&self, command: Cmd) -> BoxFuture<'_, RedisResult<Value>> {
        Box::pin(async move {
            let connection = self.connection().await?;
            let reply = connection.send(command).await;
            self.leave_if_away(&connection, reply)
        })
    }

    fn send_all(&self, pipeline: Pipeline) -> BoxFuture<'_, RedisResult<Vec<Value>>> {
        Box::pin(async move {
            let connection = self.connection().await?;
            let replies = connection.send_all(pipeline).await;
            self.leave_if_away(&connection, replies)
        })
    }

    fn longest_wait(&self) -> Duration {
        Duration::from_secs(2)
    }
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// Twice as long each time, up to a limit, with jitter: a thousand workers don't come back in the same
/// moment.
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) fn new() -> Self {
        Self(FIRST)
    }

    pub(super) async fn pause(&mut self) {
        let share = 0.5 + fastrand::f64() / 2.0;
        tokio::time::sleep(self.0.mul_f64(share)).await;
        self.0 = (self.0 * 2).min(LONGEST);
    }
}

/// The reply, as soon as the server gives one. None when it is told to stop before that.
pub(super) async fn ask<T, C>(
    command: impl Fn() -> C,
    is_over: impl Fn() -> bool,
) -> Result<Option<T>>
where
    C: IntoFuture<Output = Result<T>>,
{
    let mut pauses = Pauses::new();
    loop {
        match command().await {
            Ok(reply) => return Ok(Some(reply)),
            Err(error) if !error.passes() => return Err(error),
            Err(error) => tracing::warn!("the server doesn't answer: {error}"),
        }
        if is_over() {
            return Ok(None);
        }
        pauses.pause().await;
    }
}
