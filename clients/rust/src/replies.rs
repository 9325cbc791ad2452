//! What comes back: each reply as a type.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use redis::Value;
use serde::de::DeserializeOwned;

use crate::codec::Codec;
use crate::envelope::{unwrapped, Headers};
use crate::errors::Result;
use crate::reading::{bytes, fields, list, next, structure, Wire};
use crate::words::{State, Text};

/// What DQ.ADD replied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// The job is in the queue, with this id.
    Added(Text),
    /// With `nx`: the id is taken, and the job that has it stays as it is.
    Taken(Text),
    /// With `ensure`: the schedule has no run left.
    Over(Text),
}

impl Added {
    /// Whether the job is in the queue by this call.
    pub fn is_added(&self) -> bool {
        matches!(self, Self::Added(_))
    }

    /// The id that was given, or that the server made.
    pub fn id(&self) -> &Text {
        match self {
            Self::Added(id) | Self::Taken(id) | Self::Over(id) => id,
        }
    }
}

/// A job that was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// The queue that it came from.
    pub key: Text,
    /// Its id.
    pub id: Text,
    /// None with `noack`.
    pub lease: Option<i64>,
    /// The number of this attempt, from 1.
    pub attempt: i64,
    /// The bytes as they were added, without an envelope.
    pub payload: Vec<u8>,
    /// Of the envelope.
    pub headers: Headers,
    /// With `withdue`: when it became due.
    pub due: Option<SystemTime>,
    pub(crate) codec: Codec,
}

impl Delivery {
    /// The body by the codec of the queue.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T> {
        self.codec.decode(&self.payload)
    }

    pub(crate) fn read(reply: Value, key: &Text, codec: Codec) -> Result<Self> {
        let mut parts = list(reply)?.into_iter();
        let id = next(&mut parts)?;
        let (payload, headers) = unwrapped(bytes(parts.next().unwrap_or_default())?);
        let (lease, attempt) = (next(&mut parts)?, next(&mut parts)?);
        let due = next(&mut parts)?;
        Ok(Self { key: key.clone(), id, lease, attempt, payload, headers, due, codec })
    }

    pub(crate) fn read_all(reply: Value, key: &Text, codec: Codec) -> Result<Vec<Self>> {
        if matches!(reply, Value::Nil) {
            return Ok(Vec::new());
        }
        list(reply)?.into_iter().map(|each| Self::read(each, key, codec)).collect()
    }
}

/// The reply of a POP that finished jobs first.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedAndTaken {
    /// How many of the leases were valid.
    pub finished: i64,
    /// The jobs that it took.
    pub jobs: Vec<Delivery>,
}

/// What came of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// `done`, `dead`, or how the job stands; `gone` for a removed one that others waited for.
    pub state: Text,
    /// The result of a done job, the reason of a dead one.
    pub payload: Option<Vec<u8>>,
    codec: Codec,
}

impl Outcome {
    pub(crate) fn read(state: Value, what: Value, codec: Codec) -> Result<Self> {
        Ok(Self { state: Wire::read(state)?, payload: Wire::read(what)?, codec })
    }

    /// Whether it is finished.
    pub fn is_done(&self) -> bool {
        self.state == "done"
    }

    /// Whether it was given up.
    pub fn is_dead(&self) -> bool {
        self.state == "dead"
    }

    /// The result of a done job; None when it was finished without one.
    pub fn value<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        let result = self.payload.as_ref().filter(|_| self.is_done());
        result.map(|bytes| self.codec.decode(bytes)).transpose()
    }

    /// Why a dead job is dead.
    pub fn reason(&self) -> Option<Text> {
        self.payload.clone().filter(|_| self.is_dead()).map(Text::from)
    }
}

/// A job that another one waits for, or has waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Dep {
    /// Its id.
    pub id: Text,
    /// What came of it.
    pub outcome: Outcome,
}

/// Some of them, and where to go on: None when there are no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Deps {
    /// The place for `from`.
    pub next: Option<i64>,
    /// In the order in which they were named.
    pub items: Vec<Dep>,
}

/// A part of a scan. The scan goes on at the cursor, and is over when that is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// Where to go on.
    pub cursor: u64,
    /// May be empty before the end.
    pub items: Vec<T>,
}

structure! {
    /// Of a job that waits for others, or that others wait for.
    Edges {
        /// How many jobs it still waits for.
        pending: i64 = "pending",
        /// How many it was told to wait for.
        after: i64 = "after",
        /// How many wait for it.
        before: i64 = "before",
        /// Whether it waits for RESUME.
        on_hold: bool = "on-hold",
    }
}

structure! {
    /// Of a job that comes back.
    Schedule {
        /// The time between two runs.
        every: Option<Duration> = "every",
        /// The times of its runs.
        cron: Option<Text> = "cron",
        /// Their time zone.
        tz: Option<Text> = "tz",
        /// What becomes of missed runs: `ONE` or `ALL`.
        misfire: Text = "misfire",
        /// Each run is late by up to this.
        jitter: Duration = "jitter",
        /// How many runs there are; 0 for no limit.
        runs: i64 = "runs",
        /// No run after this.
        until: Option<SystemTime> = "until",
        /// The time of this run.
        occurrence: Option<SystemTime> = "occurrence",
        /// The time of the next one.
        next: Option<SystemTime> = "next",
        /// How many have begun.
        runs_begun: i64 = "runs-begun",
        /// How many were given up.
        failed_runs: i64 = "failed-runs",
        /// How many were missed.
        missed: i64 = "missed",
    }
}

structure! {
    /// All that there is to a job, of GET and PEEK. `docs/commands/get.md` says what the fields mean.
    JobFields {
        /// Its id.
        id: Text = "id",
        /// The bytes as they were added, with an envelope if there is one.
        payload: Vec<u8> = "body",
        /// Its state.
        state: Option<State> = "state",
        /// When it is due.
        due: Option<SystemTime> = "due",
        /// When its lease ends.
        deadline: Option<SystemTime> = "deadline",
        /// 0 is first.
        priority: i64 = "priority",
        /// How long a lease lasts.
        ttr: Duration = "ttr",
        /// How many attempts it has; 0 for no limit.
        attempts: i64 = "attempts",
        /// How many have begun.
        attempt: i64 = "attempt",
        /// How many are left.
        attempts_left: Option<i64> = "attempts-left",
        /// The latest lease.
        lease: Option<i64> = "lease",
        /// When it was added.
        created: Option<SystemTime> = "created",
        /// Since when it has been in its state.
        since: Option<SystemTime> = "since",
        /// After the first failed attempt.
        backoff_base: Duration = "backoff-base",
        /// At most.
        backoff_max: Duration = "backoff-max",
        /// How long it lives after it is due; 0 for no limit.
        ttl: Duration = "ttl",
        /// When it is removed.
        expires: Option<SystemTime> = "expires",
        /// How long it is kept when it is done.
        keep: Duration = "keep",
        /// How late it may be.
        late: Duration = "late",
        /// Until when it is kept.
        kept_until: Option<SystemTime> = "kept-until",
        /// Why it failed last.
        reason: Option<Text> = "reason",
        /// How often its lease ran out.
        timed_out: i64 = "timed-out",
        /// How often it was given back.
        released: i64 = "released",
        /// How often it was buried.
        buried: i64 = "buried",
        /// How often it was kicked.
        kicked: i64 = "kicked",
        /// Its group.
        group: Option<Text> = "group",
        /// How far it is.
        note: Option<Text> = "note",
        /// The bytes of its result.
        result_payload: Option<Vec<u8>> = "result",
    }
}

/// A job as GET and PEEK show it. Its [fields](JobFields) are there by `job.state`, `job.due` …
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    fields: JobFields,
    /// Of a job that waits for others, or that others wait for.
    pub edges: Option<Edges>,
    /// Of a job that comes back.
    pub schedule: Option<Schedule>,
    codec: Codec,
}

impl std::ops::Deref for Job {
    type Target = JobFields;

    fn deref(&self) -> &JobFields {
        &self.fields
    }
}

impl Job {
    pub(crate) fn read(reply: Value, codec: Codec) -> Result<Self> {
        let mut told = fields(reply)?;
        let part = |told: &HashMap<String, Value>, name| told.contains_key(name).then_some(());
        Ok(Self {
            edges: part(&told, "pending").map(|()| Edges::read(&mut told)).transpose()?,
            schedule: part(&told, "misfire").map(|()| Schedule::read(&mut told)).transpose()?,
            fields: JobFields::read(&mut told)?,
            codec,
        })
    }

    /// The body by the codec of the queue.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T> {
        self.codec.decode(&unwrapped(self.payload.clone()).0)
    }

    /// The result by the codec of the queue; None when it has none.
    pub fn result<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        self.result_payload.as_ref().map(|bytes| self.codec.decode(bytes)).transpose()
    }
}

structure! {
    /// A group of a queue.
    Group {
        /// Its name.
        group: Text = "group",
        /// How many of its jobs are ready.
        ready: i64 = "ready",
        /// In work.
        reserved: i64 = "reserved",
        /// Not due yet.
        delayed: i64 = "delayed",
        /// Whether it hands out no jobs.
        paused: bool = "paused",
        /// Until when.
        paused_until: Option<SystemTime> = "paused-until",
        /// Until when its rate lets no job through.
        blocked_until: Option<SystemTime> = "blocked-until",
    }
}
