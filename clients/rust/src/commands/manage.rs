//! Changing what is in a queue, and its settings.

use redis::Value;

use crate::commands::{builder, options};
use crate::queue::Queue;
use crate::reading::Wire;
use crate::seam::Command;
use crate::words::{State, Words};

builder! {
    /// DQ.DEL: removes jobs, whatever their state. The reply is how many there were.
    Del -> i64
}

impl Del {
    pub(crate) fn new(queue: &Queue, ids: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let words = named("DQ.DEL", queue, ids);
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }
}

builder! {
    /// DQ.KICK: makes dead jobs ready again, oldest first. The reply is how many.
    Kick -> i64
}

impl Kick {
    pub(crate) fn new(queue: &Queue) -> Self {
        let command = Command::new(Words::of("DQ.KICK", &queue.name), Wire::read);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// How many at most; one by default.
        int count = "COUNT";
        /// They come due evenly over this time: `count` is 10,000 at most then.
        duration spread = "SPREAD";
    }
}

builder! {
    /// DQ.KICKJOB: makes dead or delayed jobs ready now. The reply is how many.
    KickJob -> i64
}

impl KickJob {
    pub(crate) fn new(queue: &Queue, ids: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        let words = named("DQ.KICKJOB", queue, ids);
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }
}

fn named(command: &str, queue: &Queue, ids: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Words {
    let mut words = Words::of(command, &queue.name);
    for id in ids {
        words.text(id);
    }
    words
}

builder! {
    /// DQ.PAUSE: stops the queue, or a group, from handing out jobs.
    Pause -> ()
}

impl Pause {
    pub(crate) fn new(queue: &Queue) -> Self {
        let command = Command::new(Words::of("DQ.PAUSE", &queue.name), |_| Ok(()));
        Self { queue: queue.clone(), command }
    }

    options! {
        /// This group alone.
        text group = "GROUP";
        /// For this time; until it is resumed without it.
        duration for_ = "FOR";
    }
}

builder! {
    /// DQ.RESUME: ends the pause of the queue, or of a group; with ids the hold of these jobs: the reply
    /// is how many were on hold.
    Resume -> Option<i64>
}

impl Resume {
    pub(crate) fn new(queue: &Queue) -> Self {
        let read = |reply| match reply {
            Value::Int(count) => Ok(Some(count)),
            _ => Ok(None),
        };
        let command = Command::new(Words::of("DQ.RESUME", &queue.name), read);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// This group alone.
        text group = "GROUP";
        /// The hold of this job, and of others that are named so.
        text id = "ID";
    }
}

builder! {
    /// DQ.PURGE: removes jobs by state and age, a batch at a time: call it until it replies 0.
    Purge -> i64
}

impl Purge {
    pub(crate) fn new(queue: &Queue, state: State) -> Self {
        let mut words = Words::of("DQ.PURGE", &queue.name);
        words.token("STATE").token(state.as_str());
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }

    options! {
        /// Older than this.
        duration older = "OLDER";
        /// How many at most.
        int count = "COUNT";
    }
}

builder! {
    /// DQ.ALTER: sets the queue's limits, and its defaults for jobs added later.
    Alter -> ()
}

impl Alter {
    pub(crate) fn new(queue: &Queue) -> Self {
        let command = Command::new(Words::of("DQ.ALTER", &queue.name), |_| Ok(()));
        Self { queue: queue.clone(), command }
    }

    options! {
        /// How long a lease lasts.
        duration ttr = "TTR";
        /// How many attempts a job has.
        int attempts = "ATTEMPTS";
        /// How long a job waits after a failed attempt.
        backoff backoff = "BACKOFF";
        /// How long a job is kept when it is done.
        duration keep = "KEEP";
        /// How late a job may be.
        duration late = "LATE";
        /// How many jobs the queue holds.
        int maxjobs = "MAXJOBS";
        /// How long dead jobs are kept.
        duration deadkeep = "DEADKEEP";
        /// How many jobs may be in work at the same time.
        int concurrency = "CONCURRENCY";
        /// How many jobs are handed out in a time.
        rate rate = "RATE";
        /// How many jobs of a group may be in work at the same time.
        int groupconcurrency = "GROUPCONCURRENCY";
        /// How many jobs of a group are handed out in a time.
        rate grouprate = "GROUPRATE";
        /// A stream to which due jobs are added.
        sink sink = "SINK";
        /// No stream any more.
        flag nosink = "NOSINK";
    }
}
