//! Taking jobs, and saying what came of them.

use redis::Value;

use crate::commands::{builder, options, NewJob};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::reading::{list, Wire};
use crate::replies::{Added, Delivery};
use crate::seam::Command;
use crate::words::{Lease, Millis, Text, Words};

builder! {
    /// DQ.POP: takes the next ready jobs, each under a lease.
    Pop -> Vec<Delivery>
}

impl Pop {
    pub(crate) fn new(queue: &Queue) -> Self {
        let (key, codec) = (queue.name.clone(), queue.codec);
        let read = move |reply| Delivery::read_all(reply, &key, codec);
        let command = Command::new(Words::of("DQ.POP", &queue.name), read);
        Self { queue: queue.clone(), command }
    }

    options! {
        /// How many at most; one by default.
        int count = "COUNT";
        /// Waits for a job; zero for ever. On a shared connection all other commands wait meanwhile.
        wait block = "BLOCK";
        /// How long the leases last.
        duration ttr = "TTR";
        /// Without a lease: the job is finished when it is taken.
        flag noack = "NOACK";
        /// Tells when each became due.
        flag withdue = "WITHDUE";
        /// This job, and others that are named so.
        text id = "ID";
    }
}

builder! {
    /// DQ.MPOP: takes the next ready jobs from the first of several queues that has any. `key` of a
    /// delivery says which one it was.
    Mpop -> Vec<Delivery>
}

impl Mpop {
    pub(crate) fn new(queue: &Queue, others: &[Text]) -> Self {
        let keys = std::iter::once(&queue.name).chain(others);
        let mut words = Words::default();
        words.token("DQ.MPOP").counted(keys);
        let codec = queue.codec;
        let read = move |reply| match reply {
            Value::Nil => Ok(Vec::new()),
            taken => {
                let mut parts = list(taken)?.into_iter();
                let key = Text::read(parts.next().unwrap_or_default())?;
                Delivery::read_all(parts.next().unwrap_or_default(), &key, codec)
            }
        };
        Self { queue: queue.clone(), command: Command::new(words, read) }
    }

    options! {
        /// How many at most; one by default.
        int count = "COUNT";
        /// Waits for a job; zero for ever. On a shared connection all other commands wait meanwhile.
        wait block = "BLOCK";
        /// How long the leases last.
        duration ttr = "TTR";
        /// Without a lease: the job is finished when it is taken.
        flag noack = "NOACK";
        /// Tells when each became due.
        flag withdue = "WITHDUE";
    }
}

builder! {
    /// DQ.FINISH: removes jobs whose work is done. The reply is how many leases were valid.
    Finish -> i64
}

impl Finish {
    pub(crate) fn new<I: AsRef<[u8]>>(
        queue: &Queue,
        jobs: impl IntoIterator<Item = (I, Lease)>,
    ) -> Self {
        let mut words = Words::of("DQ.FINISH", &queue.name);
        for (id, lease) in jobs {
            words.text(id).lease(lease);
        }
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }
}

builder! {
    /// DQ.DONE: finishes a job with a result, and adds the jobs that follow it, in one step. None when
    /// the lease isn't the job's: nothing has happened.
    Done -> Option<Vec<Added>>
}

impl Done {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>, lease: Lease) -> Self {
        let mut words = Words::of("DQ.DONE", &queue.name);
        words.text(id).lease(lease);
        Self { queue: queue.clone(), command: Command::new(words, done) }
    }

    /// Adds this job in the same step.
    #[allow(clippy::should_implement_trait)]
    pub fn add(mut self, job: &NewJob) -> Self {
        self.words().token("ADD");
        match job.told(&self.queue) {
            Ok(told) => self.words().0.extend(told),
            Err(error) => self.command.encoded(Err(error)),
        }
        self
    }

    options! {
        /// What came of it, for those who ask by `result`.
        result result = "RESULT";
        /// How long the job and its result are kept, in place of the job's own KEEP.
        duration keep = "KEEP";
    }
}

fn done(reply: Value) -> Result<Option<Vec<Added>>> {
    match reply {
        Value::Int(0) => Ok(None),
        Value::Int(_) => Ok(Some(Vec::new())),
        added => {
            let read = |each| match each {
                Value::Nil => Ok(Added::Taken(Text::default())),
                id => Wire::read(id).map(Added::Added),
            };
            list(added)?.into_iter().map(read).collect::<Result<_>>().map(Some)
        }
    }
}

builder! {
    /// DQ.RELEASE: gives a job back, to be tried again after its backoff or a delay. False when the
    /// lease isn't the job's.
    Release -> bool
}

impl Release {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>, lease: Lease) -> Self {
        let mut words = Words::of("DQ.RELEASE", &queue.name);
        words.text(id).lease(lease);
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }

    options! {
        /// After this time.
        duration delay = "DELAY";
        /// The attempt doesn't count.
        flag unbegun = "UNBEGUN";
        /// Its priority from now on.
        int priority = "PRIORITY";
        /// Why; 512 bytes at most.
        text reason = "REASON";
        /// Its body from now on.
        body body = "BODY";
        /// How far it is.
        text note = "NOTE";
    }
}

builder! {
    /// DQ.TOUCH: extends a lease. With `body` and `note`, a checkpoint of a long job. False when the
    /// lease isn't the job's.
    Touch -> bool
}

impl Touch {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>, lease: Lease) -> Self {
        let mut words = Words::of("DQ.TOUCH", &queue.name);
        words.text(id).lease(lease);
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }

    options! {
        /// How long the lease lasts from now on.
        duration ttr = "TTR";
        /// Its body from now on.
        body body = "BODY";
        /// How far it is.
        text note = "NOTE";
    }
}

builder! {
    /// DQ.RENEW: extends the leases of jobs in hand, and waits until one of them is void. The reply is
    /// the ids of those that are void.
    Renew -> Vec<Text>
}

impl Renew {
    pub(crate) fn new<I: AsRef<[u8]>>(
        queue: &Queue,
        ttr: impl Millis,
        block: impl Millis,
        jobs: impl IntoIterator<Item = (I, Lease)>,
    ) -> Self {
        let mut words = Words::of("DQ.RENEW", &queue.name);
        let block_ms = block.millis();
        words.duration(ttr).int(block_ms);
        let read = |reply| list(reply)?.into_iter().map(Wire::read).collect::<Result<_>>();
        let mut command = Command::new(words, read)
            .waiting_while(|reply| matches!(reply, Value::Array(void) if void.is_empty()));
        // Zero is no wait here.
        if block_ms > 0 {
            command.waits();
        }
        for (id, lease) in jobs {
            command.words.text(id).lease(lease);
        }
        Self { queue: queue.clone(), command }
    }
}

builder! {
    /// DQ.BURY: marks a job as dead: it is kept for an operator to look at. False when the lease isn't
    /// the job's.
    Bury -> bool
}

impl Bury {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>, lease: Lease) -> Self {
        let mut words = Words::of("DQ.BURY", &queue.name);
        words.text(id).lease(lease);
        Self { queue: queue.clone(), command: Command::new(words, Wire::read) }
    }

    options! {
        /// Why; 512 bytes at most.
        text reason = "REASON";
    }
}

impl From<&Delivery> for Lease {
    fn from(delivery: &Delivery) -> Self {
        delivery.lease.map_or(Self::Latest, Self::Number)
    }
}

impl Delivery {
    /// Its id and its lease, as `finish` takes them.
    pub fn held(&self) -> Result<(&Text, Lease)> {
        self.lease.map(|lease| (&self.id, Lease::Number(lease))).ok_or(Error::LeaseLost)
    }
}
