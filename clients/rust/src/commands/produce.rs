//! Adding jobs.

use redis::Value;

use crate::codec::Body;
use crate::commands::{builder, options};
use crate::errors::{Adds, Result};
use crate::queue::Queue;
use crate::reading::{list, Wire};
use crate::replies::Added;
use crate::seam::Command;
use crate::words::{Text, Words};

builder! {
    /// DQ.ADD: adds a job, to be delivered when it is due.
    Add -> Added
}

/// The options of DQ.ADD but those of schedules, and more.
macro_rules! job_options {
    ($($more:tt)*) => {
        options! {
            /// Due in this time.
            duration delay = "DELAY";
            /// Due at this time.
            time at = "AT";
            /// How long a lease of it lasts, unless a consumer says otherwise.
            duration ttr = "TTR";
            /// 0 to 255; 0 is first.
            int priority = "PRIORITY";
            /// How many attempts it has.
            int attempts = "ATTEMPTS";
            /// How long it waits after a failed attempt.
            backoff backoff = "BACKOFF";
            /// How long it lives after it is due.
            duration ttl = "TTL";
            /// How long it is kept, with its result, when it is done.
            duration keep = "KEEP";
            /// How late it may be.
            duration late = "LATE";
            /// The group in which it takes its turn.
            text group = "GROUP";
            /// It waits for these jobs.
            texts after = "AFTER";
            /// These jobs, which are held, wait for it as well.
            texts before = "BEFORE";
            /// What becomes of it when one that it waits for is dead.
            ondead ondead = "ONDEAD";
            /// It waits for `resume`.
            flag hold = "HOLD";
            /// Not when the id is taken.
            flag nx = "NX";
            /// In place of the job that has the id.
            flag replace = "REPLACE";
            $($more)*
        }
    };
}

/// The options of DQ.ADD, of a call and of a job that another command adds.
macro_rules! add_options {
    () => {
        job_options! {
            /// It comes back in this time, again and again.
            duration every = "EVERY";
            /// It comes back at these times.
            cron cron = "CRON";
            /// What becomes of missed runs.
            misfire misfire = "MISFIRE";
            /// Each run is late by up to this, at random.
            duration jitter = "JITTER";
            /// How many runs there are.
            int runs = "RUNS";
            /// No run after this.
            time until = "UNTIL";
            /// A schedule is to be there, as it is said here.
            flag ensure = "ENSURE";
        }
    };
}

impl Add {
    pub(crate) fn new(queue: &Queue, id: impl AsRef<[u8]>, body: &dyn Body) -> Self {
        let id = Text::from(id.as_ref().to_vec());
        let mut words = Words::of("DQ.ADD", &queue.name);
        words.text(&id);
        let adds = Adds { queue: queue.name.clone(), ids: vec![id.clone()] };
        let mut command = Command::new(words, move |reply| match reply {
            Value::Nil => Ok(Added::Taken(id)),
            added => Wire::read(added).map(Added::Added),
        });
        command.adds = adds;
        command.encoded(queue.payload(body));
        Self { queue: queue.clone(), command }
    }

    /// The same with options that a [`NewJob`] has.
    pub(crate) fn of(queue: &Queue, job: &NewJob) -> Self {
        let mut add = Self::new(queue, &job.id, &*job.body);
        add.words().0.extend(job.options.0.iter().cloned());
        add
    }

    add_options!();
}

builder! {
    /// DQ.MADD: adds many jobs, 10,000 at most, in one step, all of them or none. The reply has their
    /// ids; None where `nx` found one taken. Options are those of all jobs. An error of one of them
    /// says which, counted from 1: `job 3: id is taken in this queue`.
    AddMany -> Vec<Option<Text>>
}

impl AddMany {
    pub(crate) fn new<I: AsRef<[u8]>, B: Body>(
        queue: &Queue,
        jobs: impl IntoIterator<Item = (I, B)>,
    ) -> Self {
        let jobs: Vec<_> = jobs.into_iter().collect();
        let mut words = Words::of("DQ.MADD", &queue.name);
        words.int(i64::try_from(jobs.len()).unwrap_or(i64::MAX));
        let read = |reply| list(reply)?.into_iter().map(Wire::read).collect::<Result<_>>();
        let mut command = Command::new(words, read);
        command.adds.queue = queue.name.clone();
        for (id, body) in &jobs {
            command.words.text(id);
            command.encoded(queue.payload(body));
            command.adds.ids.push(id.as_ref().to_vec().into());
        }
        Self { queue: queue.clone(), command }
    }

    job_options! {
        /// A delay for each job.
        durations delays = "DELAYS";
        /// A due time for each job.
        times ats = "ATS";
        /// The jobs come due evenly over this time, from `delay`, `at` or now.
        duration spread = "SPREAD";
    }
}

/// A job that is to be added by another command: by `done`, as a step of a flow, as a schedule.
pub struct NewJob {
    pub(crate) id: Text,
    body: Box<dyn Body + Send + Sync>,
    options: Words,
}

impl NewJob {
    /// A job with this id; `*` lets the server make one.
    pub fn new(id: impl AsRef<[u8]>, body: impl Body + Send + Sync + 'static) -> Self {
        let id = id.as_ref().to_vec().into();
        Self { id, body: Box::new(body), options: Words::default() }
    }

    /// The id that it was given.
    pub fn id(&self) -> &Text {
        &self.id
    }

    fn words(&mut self) -> &mut Words {
        &mut self.options
    }

    /// Whether it has this option.
    pub(crate) fn has(&self, option: &str) -> bool {
        let words = &self.options.0;
        let mut at = 0;
        while let Some(name) = words.get(at) {
            if name == option.as_bytes() {
                return true;
            }
            at += match name.as_slice() {
                b"HOLD" | b"NX" | b"REPLACE" | b"ENSURE" => 1,
                b"BACKOFF" => 3,
                b"AFTER" | b"BEFORE" => 2 + counted(words.get(at + 1)),
                _ => 2,
            };
        }
        false
    }

    /// The words of DQ.ADD behind its key.
    pub(crate) fn told(&self, queue: &Queue) -> Result<Vec<Vec<u8>>> {
        let mut told = vec![self.id.as_bytes().to_vec(), queue.payload(&*self.body)?];
        told.extend(self.options.0.iter().cloned());
        Ok(told)
    }

    add_options!();
}

/// How many words a list has, by the number before it.
fn counted(number: Option<&Vec<u8>>) -> usize {
    let text = number.and_then(|word| std::str::from_utf8(word).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
