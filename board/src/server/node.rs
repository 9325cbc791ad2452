//! One server. It is connected when it is first asked, and again after a connection was lost.

use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Pipeline, RedisError, RedisResult, Value};
use tokio::sync::Mutex;

use super::{Result, Trouble};

const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// A page of large bodies takes its time; a server that answers nothing for so long is gone.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Who asks within so long after an attempt that failed gets the same answer: else readers would
/// wait for each other's attempts.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The reply to one command of a pipeline: an error reply is the command's own.
pub type Reply = RedisResult<Value>;

#[derive(Debug)]
pub struct Node {
    /// host:port, as people and MOVED replies call it.
    pub address: String,
    client: Client,
    link: Mutex<Link>,
}

#[derive(Debug)]
enum Link {
    None,
    Up(MultiplexedConnection),
    Failed(Instant, Trouble),
}

impl Node {
    pub fn new(address: String, client: Client) -> Node {
        Node { address, client, link: Mutex::new(Link::None) }
    }

    /// Sends commands in one go. A connection that fails is dropped: the next to ask makes another.
    pub async fn ask(&self, commands: &mut Pipeline) -> Result<Vec<Reply>> {
        let mut link = self.link().await?;
        let replies = commands.ignore_errors().query_async::<Vec<Reply>>(&mut link).await;
        if replies.is_err() {
            *self.link.lock().await = Link::None;
        }
        replies.map_err(|error| Trouble::Unanswered {
            address: self.address.clone(),
            why: error.to_string(),
        })
    }

    /// Sends one command, whose error reply is the outcome.
    pub async fn ask_one(&self, command: redis::Cmd) -> Result<Value> {
        let mut commands = Pipeline::new();
        commands.add_command(command);
        self.ask(&mut commands).await?.pop().ok_or(Trouble::Strange("no reply"))?.map_err(refused)
    }

    async fn link(&self) -> Result<MultiplexedConnection> {
        let mut link = self.link.lock().await;
        match &*link {
            Link::Up(link) => return Ok(link.clone()),
            Link::Failed(at, trouble) if at.elapsed() < TRY_AGAIN_AFTER => {
                return Err(trouble.clone())
            }
            Link::Failed(..) | Link::None => {}
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_WITHIN))
            .set_response_timeout(Some(ANSWER_WITHIN));
        let made = self.client.get_multiplexed_async_connection_with_config(&config).await;
        let made = made.map_err(|error| Trouble::Unreachable {
            address: self.address.clone(),
            why: error.to_string(),
        });
        *link = match &made {
            Ok(made) => Link::Up(made.clone()),
            Err(trouble) => Link::Failed(Instant::now(), trouble.clone()),
        };
        made
    }
}

/// An error reply in the server's words.
pub fn refused(error: RedisError) -> Trouble {
    Trouble::Refused(match (error.code(), error.detail()) {
        (Some(code), Some(detail)) if !detail.starts_with(code) => format!("{code} {detail}"),
        (_, Some(detail)) => detail.to_string(),
        _ => error.to_string(),
    })
}
