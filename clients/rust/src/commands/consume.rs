//! Taking jobs, and saying what came of them.

use redis::Value;

use crate::commands::{builder, options, NewJob};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::reading::{list, next, Wire};
use crate::replies::{Added, Delivery, FinishedAndTaken};
use crate::seam::Command;
use crate::words::{Lease, Millis, Text, Words};

/// The options of DQ.MPOP, and more.
macro_rules! pop_options {
    ($($more:tt)*) => {
        options! {
            /// How many at most; one by default.
            int count = "COUNT";
            /// Delivers nothing until so many jobs may go, or the first of them has been ready for
            /// `linger`.
            int min = "MIN";
            /// For how long the first job waits for `min`, from when it became ready.
            duration linger = "LINGER";
            /// Waits for a job; zero for ever. On a shared connection all other commands wait
            /// meanwhile.
            wait block = "BLOCK";
            /// How long the leases last.
            duration ttr = "TTR";
            /// Without a lease: the job is finished when it is taken.
            flag noack = "NOACK";
            /// Tells when each became due.
            flag withdue = "WITHDUE";
            $($more)*
        }
    };
}

builder! {
    /// DQ.POP: takes the next ready jobs, each under a lease.
    Pop -> Vec<Delivery>
}

impl Pop {
    pub(crate) fn new(queue: &Queue) -> Self {
        let command = Command::new(Words::of("DQ.POP", &queue.name), taken(queue));
        Self { queue: queue.clone(), command }
    }

    pop_options! {
        /// This job, and others that are named so.
        text id = "ID";
    }
}

fn taken(queue: &Queue) -> impl FnOnce(Value) -> Result<Vec<Delivery>> + Send + Sync + 'static {
    let (key, codec) = (queue.name.clone(), queue.codec);
    move |reply| Delivery::read_all(reply, &key, codec)
}

builder! {
    /// DQ.MPOP: takes the next ready jobs from the first of several queues that has any. `key` of a
    /// delivery says which one it was.
    Mpop -> Vec<Delivery>
}

impl Mpop {
    pub(crate) fn new(queue: &Queue, others: &[Text]) -> Self {
        let command = Command::new(mpop_words(queue, others), taken_from_one_of_several(queue));
        Self { queue: queue.clone(), command }
    }

    pop_options!();
}

fn mpop_words(queue: &Queue, others: &[Text]) -> Words {
    let mut words = Words::default();
    words.token("DQ.MPOP").counted(std::iter::once(&queue.name).chain(others));
    words
}

fn taken_from_one_of_several(
    queue: &Queue,
) -> impl FnOnce(Value) -> Result<Vec<Delivery>> + Send + Sync + 'static {
    let codec = queue.codec;
    move |reply| {
        if matches!(reply, Value::Nil) {
            return Ok(Vec::new());
        }
        let mut parts = list(reply)?.into_iter();
        let key = next(&mut parts)?;
        Delivery::read_all(parts.next().unwrap_or_default(), &key, codec)
    }
}

builder! {
    /// DQ.POP with FINISH: finishes jobs, 1 to 10,000, and then takes others, in one step. The finish
    /// stands also when there is no other job, and happens before a wait.
    FinishAndPop -> FinishedAndTaken
}

impl FinishAndPop {
    pub(crate) fn new(queue: &Queue, jobs: impl IntoIterator<Item = impl Claim>) -> Self {
        let claims = Claims::of(queue, jobs).and_then(|claims| {
            let is_here = claims.queue == queue.name;
            is_here
                .then_some(claims)
                .ok_or(Error::Misuse("jobs of another queue can't be finished"))
        });
        let finish = claims.map(|claims| claims.words(false));
        let words = Words::of("DQ.POP", &queue.name);
        Self { queue: queue.clone(), command: finishing(words, finish, taken(queue)) }
    }

    pop_options!();
}

builder! {
    /// DQ.MPOP with FINISH: finishes jobs of one of several queues, and then takes others from the first
    /// one that has any.
    FinishAndMpop -> FinishedAndTaken
}

impl FinishAndMpop {
    pub(crate) fn new(
        queue: &Queue,
        jobs: impl IntoIterator<Item = impl Claim>,
        others: &[Text],
    ) -> Self {
        let finish = Claims::of(queue, jobs).map(|claims| claims.words(true));
        let (words, read) = (mpop_words(queue, others), taken_from_one_of_several(queue));
        Self { queue: queue.clone(), command: finishing(words, finish, read) }
    }

    pop_options!();
}

/// A wait in pieces says FINISH once: so it stands behind the options.
fn finishing(
    words: Words,
    finish: Result<Words>,
    taken: impl FnOnce(Value) -> Result<Vec<Delivery>> + Send + Sync + 'static,
) -> Command<FinishedAndTaken> {
    let read = |reply| {
        let mut both = list(reply)?.into_iter();
        let finished = next(&mut both)?;
        Ok(FinishedAndTaken { finished, jobs: taken(both.next().unwrap_or_default())? })
    };
    let is_waiting =
        |reply: &Value| matches!(reply, Value::Array(both) if both.get(1) == Some(&Value::Nil));
    Command::new(words, read).waiting_while(is_waiting).once(finish, |reply, later| match reply {
        Value::Array(both) => {
            both.truncate(1);
            both.push(later);
        }
        first => *first = later,
    })
}

/// A job that is finished: a delivery, an id with its lease, or both of another queue that is named.
pub trait Claim {
    /// The queue, where it is named, the id and the lease.
    fn claim(&self) -> (Option<&[u8]>, &[u8], Lease);
}

impl Claim for Delivery {
    fn claim(&self) -> (Option<&[u8]>, &[u8], Lease) {
        (Some(self.key.as_ref()), self.id.as_ref(), self.into())
    }
}

impl<I: AsRef<[u8]>> Claim for (I, Lease) {
    fn claim(&self) -> (Option<&[u8]>, &[u8], Lease) {
        (None, self.0.as_ref(), self.1)
    }
}

impl<Q: AsRef<[u8]>, I: AsRef<[u8]>> Claim for (Q, I, Lease) {
    fn claim(&self) -> (Option<&[u8]>, &[u8], Lease) {
        (Some(self.0.as_ref()), self.1.as_ref(), self.2)
    }
}

impl<C: Claim + ?Sized> Claim for &C {
    fn claim(&self) -> (Option<&[u8]>, &[u8], Lease) {
        (**self).claim()
    }
}

/// The jobs of one queue.
struct Claims {
    queue: Text,
    count: i64,
    pairs: Words,
}

impl Claims {
    fn of(queue: &Queue, jobs: impl IntoIterator<Item = impl Claim>) -> Result<Self> {
        let mut claims = Self { queue: queue.name.clone(), count: 0, pairs: Words::default() };
        for job in jobs {
            let (of, id, lease) = job.claim();
            let of = of.unwrap_or(queue.name.as_ref());
            if claims.count == 0 {
                claims.queue = of.to_vec().into();
            } else if claims.queue.as_ref() != of {
                return Err(Error::Misuse("jobs of several queues can't be finished at once"));
            }
            claims.count += 1;
            claims.pairs.text(id).lease(lease);
        }
        Ok(claims)
    }

    fn words(self, with_queue: bool) -> Words {
        let mut words = Words::default();
        words.token("FINISH");
        if with_queue {
            words.text(&self.queue);
        }
        words.int(self.count);
        words.0.extend(self.pairs.0);
        words
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
