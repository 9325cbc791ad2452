//! One topic in several queues, its shards, as docs/scaling.md has it. The id of a job says in which
//! of them it is, the same in all languages.

use std::sync::Arc;

use crate::codec::{Body, Codec};
use crate::commands::{Add, NewJob};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::{Added, Job, Outcome};
use crate::seam::Connection;
use crate::slots::{slot_of, SLOTS};
use crate::words::{Millis, State, Text};

/// A topic in several queues.
///
/// All programs must agree on its name and the number of its shards. To change that number, give the
/// topic a new name, and to [`Topic::before`] the topic as it was: ids are looked for in both, and
/// workers serve both, until the old one is empty.
#[derive(Clone)]
pub struct Topic {
    queues: Vec<Queue>,
    before: Option<Box<Topic>>,
}

/// Whether jobs of these options take the place of others, and what to do when the id is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfTaken {
    /// An [`Error::Exists`].
    #[default]
    Refuse,
    /// The other job stays: NX.
    Keep,
    /// The new job takes its place: REPLACE.
    Replace,
    /// The schedule is made sure of: ENSURE.
    Ensure,
}

impl Topic {
    /// The topic of this name, in as many queues: one at least.
    pub fn new(connection: impl Connection + 'static, name: impl AsRef<str>, shards: u64) -> Self {
        Self::shared(Arc::new(connection), name, shards)
    }

    /// The same over a connection that others have, too.
    pub fn shared(connection: Arc<dyn Connection>, name: impl AsRef<str>, shards: u64) -> Self {
        let queue = Queue::shared(connection, "");
        let name = name.as_ref();
        let key = |tag| Text::from(format!("{name}:{{{tag}}}").into_bytes());
        let queues = even_tags(shards.max(1)).map(|tag| queue.named(key(tag))).collect();
        Self { queues, before: None }
    }

    /// The same topic, of which there may be jobs in another one still.
    pub fn before(mut self, before: Topic) -> Self {
        self.before = Some(Box::new(before));
        self
    }

    /// The same topic, whose bodies and results are written by another codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        for queue in &mut self.queues {
            queue.codec = codec;
        }
        self
    }

    /// The same topic, with the context of a span in each job that is added.
    #[cfg(feature = "opentelemetry")]
    pub fn traced(mut self) -> Self {
        for queue in &mut self.queues {
            queue.is_traced = true;
        }
        self
    }

    /// For what is said to each queue: `pause`, `alter`, `purge`, `kick`, `info`.
    pub fn queues(&self) -> &[Queue] {
        &self.queues
    }

    /// With those of the topic before.
    pub fn all_queues(&self) -> Vec<Queue> {
        let earlier = self.before.iter().flat_map(|before| before.all_queues());
        self.queues.iter().cloned().chain(earlier).collect()
    }

    /// The queue of a job; or that of a customer, whose jobs keep their order in it. None never: a
    /// topic has one shard at least.
    pub fn queue_of(&self, id: impl AsRef<[u8]>) -> Option<&Queue> {
        let shards = u32::try_from(self.queues.len()).unwrap_or(u32::MAX).max(1);
        self.queues.get((crc32fast::hash(id.as_ref()) % shards) as usize)
    }

    /// Where a job of this id may be: here, or where the topic was before.
    fn places_of(&self, id: &[u8]) -> Vec<&Queue> {
        let earlier = self.before.iter().flat_map(|before| before.places_of(id));
        self.queue_of(id).into_iter().chain(earlier).collect()
    }

    /// Adds a job; `options` are those of DQ.ADD besides NX, REPLACE and ENSURE:
    /// `topic.add("a", "body", IfTaken::Keep, |add| add.delay(second))`.
    pub async fn add(
        &self,
        id: impl AsRef<[u8]>,
        body: impl Body,
        if_taken: IfTaken,
        options: impl FnOnce(Add) -> Add,
    ) -> Result<Added> {
        let here = self.here(id.as_ref())?;
        self.add_by(options(here.add(&id, body)), id.as_ref(), if_taken).await
    }

    /// The same for a [`NewJob`].
    pub async fn add_job(&self, job: &NewJob, if_taken: IfTaken) -> Result<Added> {
        let id = job.id.clone();
        self.add_by(Add::of(self.here(id.as_bytes())?, job), id.as_bytes(), if_taken).await
    }

    fn here(&self, id: &[u8]) -> Result<&Queue> {
        let chosen = self.queue_of(id).filter(|_| id != b"*");
        chosen.ok_or(Error::Misuse("in a topic the id chooses the queue: make one"))
    }

    async fn add_by(&self, add: Add, id: &[u8], if_taken: IfTaken) -> Result<Added> {
        let places = self.places_of(id);
        let earlier = places.get(1..).unwrap_or_default();
        let (add, replaces) = match if_taken {
            IfTaken::Refuse => (add, false),
            IfTaken::Keep => (add.nx(), false),
            IfTaken::Replace => (add.replace(), true),
            IfTaken::Ensure => (add.ensure(), true),
        };
        if !replaces {
            for queue in earlier {
                match (queue.get(id).await?, if_taken) {
                    (None, _) => {}
                    (Some(_), IfTaken::Keep) => return Ok(Added::Taken(id.to_vec().into())),
                    (Some(_), _) => return Err(Error::taken(id, queue.name())),
                }
            }
        }
        let added = add.await?;
        if replaces {
            // Only now, so that there is a job at any time.
            for queue in earlier {
                queue.del([id]).await?;
            }
        }
        Ok(added)
    }

    /// Removes a job. Whether there was one.
    pub async fn cancel(&self, id: impl AsRef<[u8]>) -> Result<bool> {
        for queue in self.places_of(id.as_ref()) {
            if queue.del([&id]).await? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// All that there is to a job.
    pub async fn get(&self, id: impl AsRef<[u8]>) -> Result<Option<Job>> {
        for queue in self.places_of(id.as_ref()) {
            if let Some(job) = queue.get(&id).await? {
                return Ok(Some(job));
            }
        }
        Ok(None)
    }

    /// What came of a job; with `block` it waits for that.
    pub async fn result(
        &self,
        id: impl AsRef<[u8]>,
        block: Option<impl Millis>,
    ) -> Result<Option<Outcome>> {
        let mut places = self.places_of(id.as_ref());
        // Where it was before, first: else a wait in the wrong queue would be in vain.
        places.reverse();
        for queue in places {
            if let Some(outcome) = queue.result(&id).await? {
                let Some(block) = block else { return Ok(Some(outcome)) };
                return queue.result(&id).block(block).await;
            }
        }
        Ok(None)
    }

    /// The jobs of all shards, or those in one state, without those of the topic before.
    pub async fn length(&self, state: Option<State>) -> Result<i64> {
        let mut total = 0;
        for queue in &self.queues {
            let len = queue.len();
            total += match state {
                Some(state) => len.state(state).await?,
                None => len.await?,
            };
        }
        Ok(total)
    }
}

/// The first number whose slot is in the first part of all slots, the next one in the second part, and
/// so on: such tags give each node of a cluster the same number of shards.
fn even_tags(shards: u64) -> impl Iterator<Item = u64> {
    (0..shards).scan(0, move |number, shard| {
        while slot_of(number.to_string().as_bytes()) * shards / SLOTS != shard {
            *number += 1;
        }
        *number += 1;
        Some(*number - 1)
    })
}
