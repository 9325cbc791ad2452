//! Rust's values as words of a command.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// An id, a name or a note: bytes that are text nearly always. Shown as text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text, with U+FFFD for what isn't UTF-8.
    pub fn to_str(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Text {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str())
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_str(), f)
    }
}

/// A duration: `std::time::Duration`, or that of another library by an implementation of this.
pub trait Millis {
    /// In whole milliseconds, rounded up: a job is never early.
    fn millis(&self) -> i64;
}

impl Millis for Duration {
    fn millis(&self) -> i64 {
        i64::try_from(self.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
    }
}

/// A time: `std::time::SystemTime`, or that of another library by an implementation of this.
pub trait UnixMillis {
    /// In whole milliseconds since 1970 in UTC, rounded up: a job is never early.
    fn unix_millis(&self) -> i64;
}

impl UnixMillis for SystemTime {
    fn unix_millis(&self) -> i64 {
        match self.duration_since(UNIX_EPOCH) {
            Ok(since) => since.millis(),
            Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
        }
    }
}

/// How long a job waits after a failed attempt: `base`, doubled each time, up to `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff<D = Duration> {
    /// After the first failed attempt.
    pub base: D,
    /// At most.
    pub max: D,
}

/// At most `n` jobs in `per`, up to `burst` of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate<D = Duration> {
    /// How many jobs.
    pub n: i64,
    /// In which time.
    pub per: D,
    /// How many at once; None for the server's choice.
    pub burst: Option<i64>,
}

/// The times of a cron expression, in a time zone: UTC without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    /// Such as `30 2 * * *`.
    pub expression: Text,
    /// Such as `Europe/Berlin`.
    pub tz: Option<Text>,
}

impl From<&str> for Cron {
    fn from(expression: &str) -> Self {
        Self { expression: expression.into(), tz: None }
    }
}

/// A stream to which jobs are added when they are due, trimmed to about `maxlen` entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sink {
    /// The key of the stream.
    pub stream: Text,
    /// None for a stream that isn't trimmed.
    pub maxlen: Option<i64>,
}

impl From<&str> for Sink {
    fn from(stream: &str) -> Self {
        Self { stream: stream.into(), maxlen: None }
    }
}

/// The right of a client to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// That of a delivery.
    Number(i64),
    /// The latest one of the job, `*`.
    Latest,
}

impl From<i64> for Lease {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

/// An enumeration of the grammar.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident = $word:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$each])* $variant),* }

        impl $name {
            /// The word of the grammar.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = crate::errors::Error;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(crate::errors::Error::reply(word)),
                }
            }
        }
    };
}

choice! {
    /// The state of a job.
    State {
        /// It isn't due yet.
        Delayed = "delayed",
        /// It may be taken.
        Ready = "ready",
        /// A client works on it.
        Reserved = "reserved",
        /// Its attempts are used up, or it was buried.
        Dead = "dead",
        /// It is finished, and kept for its result.
        Done = "done",
        /// It waits for other jobs, or for RESUME.
        Held = "held",
    }
}

choice! {
    /// What becomes of a job when one that it waits for is dead.
    OnDead {
        /// It goes on waiting.
        Hold = "HOLD",
        /// It runs.
        Run = "RUN",
    }
}

choice! {
    /// What becomes of runs of a schedule that were missed.
    Misfire {
        /// One for all of them.
        One = "ONE",
        /// Each.
        All = "ALL",
    }
}

/// The words of a command, made from left to right.
#[derive(Clone, Debug, Default)]
pub struct Words(pub(crate) Vec<Vec<u8>>);

impl Words {
    pub(crate) fn of(command: &str, key: &Text) -> Self {
        let mut words = Self(vec![command.into()]);
        words.text(key);
        words
    }

    pub(crate) fn token(&mut self, token: &str) -> &mut Self {
        self.0.push(token.into());
        self
    }

    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.0.push(text.as_ref().to_vec());
        self
    }

    pub(crate) fn int(&mut self, number: i64) -> &mut Self {
        self.0.push(number.to_string().into_bytes());
        self
    }

    pub(crate) fn duration(&mut self, duration: impl Millis) -> &mut Self {
        self.int(duration.millis())
    }

    pub(crate) fn time(&mut self, time: impl UnixMillis) -> &mut Self {
        self.int(time.unix_millis())
    }

    pub(crate) fn lease(&mut self, lease: Lease) -> &mut Self {
        match lease {
            Lease::Number(number) => self.int(number),
            Lease::Latest => self.token("*"),
        }
    }

    pub(crate) fn backoff(&mut self, backoff: Backoff<impl Millis>) -> &mut Self {
        self.duration(backoff.base).duration(backoff.max)
    }

    pub(crate) fn rate(&mut self, rate: Rate<impl Millis>) -> &mut Self {
        self.int(rate.n).duration(rate.per);
        if let Some(burst) = rate.burst {
            self.token("BURST").int(burst);
        }
        self
    }

    pub(crate) fn cron(&mut self, cron: impl Into<Cron>) -> &mut Self {
        let cron = cron.into();
        self.text(cron.expression);
        if let Some(tz) = cron.tz {
            self.token("TZ").text(tz);
        }
        self
    }

    pub(crate) fn sink(&mut self, sink: impl Into<Sink>) -> &mut Self {
        let sink = sink.into();
        self.text(sink.stream);
        if let Some(maxlen) = sink.maxlen {
            self.token("MAXLEN").int(maxlen);
        }
        self
    }

    /// A list with its length before it.
    pub(crate) fn counted(
        &mut self,
        items: impl IntoIterator<Item = impl AsRef<[u8]>>,
    ) -> &mut Self {
        let items: Vec<_> = items.into_iter().collect();
        self.int(i64::try_from(items.len()).unwrap_or(i64::MAX));
        self.0.extend(items.iter().map(|each| each.as_ref().to_vec()));
        self
    }
}
