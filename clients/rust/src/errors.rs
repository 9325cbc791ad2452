//! What the server refuses, as types. Errors of the connection stay those of the redis crate.

use std::fmt;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::words::Text;

/// The result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. Where the server refused it, nothing has changed; the text is the server's,
/// without its first word.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The id is taken in this queue.
    #[error("EXISTS {0}")]
    Exists(Taken),
    /// The queue holds as many jobs as its MAXJOBS allows.
    #[error("FULL {0}")]
    Full(String),
    /// A job that another one is to wait for isn't in the queue.
    #[error("NOJOB {0}")]
    NoJob(String),
    /// A job that is to wait for another one isn't held any more.
    #[error("NOTHELD {0}")]
    NotHeld(String),
    /// The key holds something else than a queue.
    #[error("WRONGTYPE {0}")]
    WrongType(String),
    /// The command isn't well formed: a value out of its range, options that exclude each other.
    #[error("ERR {0}")]
    Invalid(String),
    /// The server has no module DQ, or an older one without this command.
    #[error("ERR the server has no module DQ, or an older one: {0}")]
    NoModule(String),
    /// A value that can't be written, or bytes that can't be read.
    #[error("{0}")]
    Codec(Box<dyn std::error::Error + Send + Sync>),
    /// A reply that isn't what the contract says.
    #[error("not a reply of DQ: {0}")]
    Reply(String),
    /// The job was deleted, replaced or finished by others, or another worker has it.
    #[error("the lease is lost")]
    LeaseLost,
    /// A program's own mistake, such as a worker without a queue.
    #[error("{0}")]
    Misuse(&'static str),
    /// Of the connection, or of the server as such: LOADING, READONLY, NOAUTH …
    #[error(transparent)]
    Redis(RedisError),
}

/// An id that is taken. Shown with its queue, where a call named both.
#[derive(Clone, Debug)]
pub struct Taken {
    message: String,
    /// The id and the queue. None for one of those that `done` adds.
    pub job: Option<(Text, Text)>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.job {
            Some((id, queue)) => write!(f, ": {id:?} in {queue:?}"),
            None => Ok(()),
        }
    }
}

/// The jobs that a command adds, for an error that says so.
#[derive(Default)]
pub(crate) struct Adds {
    pub(crate) queue: Text,
    pub(crate) ids: Vec<Text>,
}

impl Adds {
    /// The id and the queue of the job that an error is about. Of many jobs the server names its place,
    /// from 1: `job 3: id is taken in this queue`.
    fn refused(&self, message: &str) -> Option<(Text, Text)> {
        let place = message.strip_prefix("job ").and_then(|rest| rest.split_once(": "));
        let place = place.and_then(|(number, _)| number.parse::<usize>().ok()).unwrap_or(1);
        let id = self.ids.get(place.checked_sub(1)?)?;
        Some((id.clone(), self.queue.clone()))
    }
}

impl Error {
    pub(crate) fn codec(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Codec(Box::new(error))
    }

    pub(crate) fn reply(what: impl std::fmt::Debug) -> Self {
        Self::Reply(format!("{what:?}"))
    }

    /// In the words of the server.
    pub(crate) fn taken(id: &[u8], queue: &Text) -> Self {
        let job = Some((id.to_vec().into(), queue.clone()));
        Self::Exists(Taken { message: "id is taken in this queue".into(), job })
    }

    /// The same, with the job that the call was about.
    pub(crate) fn about(mut self, adds: &Adds) -> Self {
        if let Self::Exists(taken) = &mut self {
            taken.job = taken.job.take().or_else(|| adds.refused(&taken.message));
        }
        self
    }

    /// What the server said behind its [code](Self::code); None for what isn't the server's.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Exists(taken) => Some(&taken.message),
            Self::Full(text)
            | Self::NoJob(text)
            | Self::NotHeld(text)
            | Self::WrongType(text)
            | Self::Invalid(text)
            | Self::NoModule(text) => Some(text),
            Self::Redis(error) => error.code().map(|_| error.detail().unwrap_or_default()),
            Self::Codec(_) | Self::Reply(_) | Self::LeaseLost | Self::Misuse(_) => None,
        }
    }

    /// The first word of the server's error, such as EXISTS; None for what isn't the server's.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Exists(_) => Some("EXISTS"),
            Self::Full(_) => Some("FULL"),
            Self::NoJob(_) => Some("NOJOB"),
            Self::NotHeld(_) => Some("NOTHELD"),
            Self::WrongType(_) => Some("WRONGTYPE"),
            Self::Invalid(_) | Self::NoModule(_) => Some("ERR"),
            Self::Redis(error) => error.code(),
            Self::Codec(_) | Self::Reply(_) | Self::LeaseLost | Self::Misuse(_) => None,
        }
    }

    /// Whether the server may take the same command later: it is restarting, failing over, loading,
    /// out of memory, out of reach, or has as many clients as it takes.
    pub fn passes(&self) -> bool {
        if let Self::Invalid(text) = self {
            return text.starts_with("max number of clients");
        }
        let Self::Redis(error) = self else { return false };
        match error.kind() {
            ErrorKind::AuthenticationFailed
            | ErrorKind::InvalidClientConfig
            | ErrorKind::UnexpectedReturnType
            | ErrorKind::RESP3NotSupported => false,
            _ => !MISTAKES.contains(&error.code().unwrap_or_default()),
        }
    }
}

// What a person has to put right.
const MISTAKES: [&str; 5] = ["NOAUTH", "NOPERM", "WRONGPASS", "CROSSSLOT", "EXECABORT"];

impl From<RedisError> for Error {
    fn from(error: RedisError) -> Self {
        let error = first_of(error);
        let told = error.detail().unwrap_or_default().to_owned();
        match error.code() {
            Some("EXISTS") => Self::Exists(Taken { message: told, job: None }),
            Some("FULL") => Self::Full(told),
            Some("NOJOB") => Self::NoJob(told),
            Some("NOTHELD") => Self::NotHeld(told),
            Some("WRONGTYPE") => Self::WrongType(told),
            Some("ERR") if told.starts_with("unknown command") => Self::NoModule(told),
            Some("ERR") => Self::Invalid(told),
            _ => Self::Redis(error),
        }
    }
}

/// Of a transaction that was refused as a whole: the error of its first command that has one.
fn first_of(error: RedisError) -> RedisError {
    if error.kind() != ErrorKind::Server(ServerErrorKind::ExecAbort) {
        return error;
    }
    let errors = error.clone().into_server_errors();
    let of_commands = errors.iter().flat_map(|errors| errors.iter());
    let first = of_commands.map(|(_, each)| each).find(|each| each.code() != "EXECABORT");
    first.cloned().map_or(error, RedisError::from)
}
