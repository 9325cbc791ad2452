//! Looking at a queue, which changes nothing.

use std::time::SystemTime;

use redis::Value;

use crate::commands::{builder, options};
use crate::errors::Result;
use crate::info::Info;
use crate::queue::Queue;
use crate::reading::{bytes, fields, list, next, Wire};
use crate::replies::{Dep, Deps, Group, Job, Outcome, Page};
use crate::seam::Command;
use crate::words::{Millis, Text, Words};

builder! {
    /// DQ.GET: all that there is to a job; None when it isn't there.
    Get -> Option<Job>
}

impl Get {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>) -> Self {
        let mut words = Words::of("DQ.GET", &queue.name);
        words.text(id);
        let codec = queue.codec;
        let read = move |reply| match reply {
            Value::Nil => Ok(None),
            told => Job::read(told, codec).map(Some),
        };
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }
}

builder! {
    /// DQ.RESULT: what came of a job, its result, or why it is dead. None when there is no such job.
    GetResult -> Option<Outcome>
}

impl GetResult {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>) -> Self {
        let mut words = Words::of("DQ.RESULT", &queue.name);
        words.text(id);
        let codec = queue.codec;
        let read = move |reply| match reply {
            Value::Nil => Ok(None),
            told => {
                let mut parts = list(told)?.into_iter();
                let (state, what) = (parts.next(), parts.next());
                Outcome::read(state.unwrap_or_default(), what.unwrap_or_default(), codec).map(Some)
            }
        };
        let command = Command::new(words, read).waiting_while(is_under_way);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// Waits until it is done or dead, and then tells how it stands; zero for ever. On a shared
        /// connection all other commands wait meanwhile.
        wait block = "BLOCK";
    }
}

fn is_under_way(reply: &Value) -> bool {
    let Value::Array(parts) = reply else { return false };
    let state = parts.first().cloned().map(bytes);
    !matches!(state, Some(Ok(state)) if state == b"done" || state == b"dead")
}

builder! {
    /// DQ.DEPS: what a job waits for, or has waited for, and what came of it, in the order in which it
    /// was named. None when there is no such job.
    Depends -> Option<Deps>
}

impl Depends {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>) -> Self {
        let mut words = Words::of("DQ.DEPS", &queue.name);
        words.text(id);
        let codec = queue.codec;
        let one = move |each| {
            let mut parts = list(each)?.into_iter();
            let id = next(&mut parts)?;
            let (state, what) = (parts.next(), parts.next());
            let outcome =
                Outcome::read(state.unwrap_or_default(), what.unwrap_or_default(), codec)?;
            Ok(Dep { id, outcome })
        };
        let read = move |reply| match reply {
            Value::Nil => Ok(None),
            told => {
                let mut parts = list(told)?.into_iter();
                let next = next(&mut parts)?;
                let shown = list(parts.next().unwrap_or_default())?;
                let items = shown.into_iter().map(one).collect::<Result<_>>()?;
                Ok(Some(Deps { next, items }))
            }
        };
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }

    options! {
        /// Goes on at this place.
        int from = "FROM";
        /// How many at most.
        int count = "COUNT";
    }
}

builder! {
    /// DQ.PEEK: the next jobs in a state, `ready` without one, without taking them.
    Peek -> Vec<Job>
}

impl Peek {
    pub(crate) fn new(queue: &Queue) -> Self {
        let codec = queue.codec;
        let read =
            move |reply| list(reply)?.into_iter().map(|each| Job::read(each, codec)).collect();
        let command = Command::new(Words::of("DQ.PEEK", &queue.name), read);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// In this state.
        state state = "STATE";
        /// Behind this job.
        text after = "AFTER";
        /// From this time on.
        time from = "FROM";
        /// How many at most; one by default.
        int count = "COUNT";
    }
}

builder! {
    /// DQ.SCAN: some ids of the queue's jobs, and where to go on.
    Scan -> Page<Text>
}

impl Scan {
    pub(crate) fn new(queue: &Queue, cursor: u64) -> Self {
        let mut words = Words::of("DQ.SCAN", &queue.name);
        words.token(&cursor.to_string());
        let command = Command::new(words, |reply| page(reply, Wire::read));
        Self { queue: queue.clone(), command }
    }

    options! {
        /// In this state.
        state state = "STATE";
        /// With an id like this pattern.
        text match_ = "MATCH";
        /// Those that come back.
        flag scheduled = "SCHEDULED";
        /// How many are looked at.
        int count = "COUNT";
    }
}

builder! {
    /// DQ.GROUPS: some groups of the queue, and where to go on.
    Groups -> Page<Group>
}

impl Groups {
    pub(crate) fn new(queue: &Queue, cursor: u64) -> Self {
        let mut words = Words::of("DQ.GROUPS", &queue.name);
        words.token(&cursor.to_string());
        let read = |reply| page(reply, |each| Group::read(&mut fields(each)?));
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }

    options! {
        /// How many are looked at.
        int count = "COUNT";
    }
}

fn page<T>(reply: Value, read: fn(Value) -> Result<T>) -> Result<Page<T>> {
    let mut parts = list(reply)?.into_iter();
    let cursor = Text::read(parts.next().unwrap_or_default())?.to_str().parse().unwrap_or(0);
    let items = list(parts.next().unwrap_or_default())?;
    Ok(Page { cursor, items: items.into_iter().map(read).collect::<Result<_>>()? })
}

builder! {
    /// DQ.LEN: how many jobs there are, or how many in one state.
    Len -> i64
}

impl Len {
    pub(crate) fn new(queue: &Queue) -> Self {
        let command = Command::new(Words::of("DQ.LEN", &queue.name), Wire::read);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// In this state.
        state state = "STATE";
    }
}

builder! {
    /// DQ.FORECAST: how many jobs come due in each of the next steps of time.
    Forecast -> Vec<i64>
}

impl Forecast {
    pub(crate) fn new(queue: &Queue, step: impl Millis, count: i64) -> Self {
        let mut words = Words::of("DQ.FORECAST", &queue.name);
        words.token("STEP").duration(step).token("COUNT").int(count);
        let read = |reply| list(reply)?.into_iter().map(Wire::read).collect();
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }

    options! {
        /// From this time on, in place of now.
        time from = "FROM";
    }
}

builder! {
    /// DQ.INFO: settings, counts, totals and lateness; None when there is no such queue.
    GetInfo -> Option<Info>
}

impl GetInfo {
    pub(crate) fn new(queue: &Queue) -> Self {
        let read = |reply| match reply {
            Value::Nil => Ok(None),
            told => Info::read(&mut fields(told)?).map(Some),
        };
        let command = Command::new(Words::of("DQ.INFO", &queue.name), read);
        Self { queue: queue.clone(), command }
    }
}

builder! {
    /// DQ.NEXT: when a cron expression comes next. It has nothing to do with the queue.
    Next -> Vec<SystemTime>
}

impl Next {
    pub(crate) fn new(queue: &Queue, expression: impl AsRef<[u8]>) -> Self {
        let mut words = Words::default();
        words.token("DQ.NEXT").text(expression);
        let read = |reply| list(reply)?.into_iter().map(Wire::read).collect();
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }

    options! {
        /// Its time zone.
        text tz = "TZ";
        /// After this time, in place of now.
        time from = "FROM";
        /// How many.
        int count = "COUNT";
    }
}
