//! Taking jobs from a queue for a consumer: at once, for a command, or later, for one that waits.

use super::effect::Effect;
use super::leases;
use super::replies::Replies;
use crate::queue::{
    Cause, Claim, Finished, Handout, Id, JobRecord, JobView, Leave, Millis, Naming, Queue, Slot, Stage, Time,
};

/// A call that hands out more would hold up the others.
pub const BATCH_JOBS_MAX: usize = 10_000;
/// No further job is taken once so many bytes of bodies are together.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// How a consumer wants its jobs.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// At most so many.
    pub count: usize,
    pub ttr: Option<Millis>,
    pub mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each job is leased until the consumer finishes it.
    Lease,
    /// Each job is finished by being handed out.
    NoAck,
}

/// Jobs taken from a queue for one consumer.
pub struct Taken {
    handouts: Vec<Handout>,
}

impl Taken {
    /// The first ready jobs.
    pub fn from(queue: &mut Queue, terms: &Terms, now: Time) -> Taken {
        let mut handouts = Vec::new();
        let mut bytes = 0;
        while handouts.len() < terms.count.min(BATCH_JOBS_MAX) && bytes < BATCH_BYTES_MAX {
            let Some(handout) = queue.pop(now, terms.ttr, leases::floor(now)) else {
                break;
            };
            leases::saw(handout.lease, now);
            bytes += queue.id_and_body(handout.slot).map_or(0, |(_, body)| body.len());
            handouts.push(handout);
        }
        Taken { handouts }
    }

    pub fn is_empty(&self) -> bool {
        self.handouts.is_empty()
    }

    pub fn handouts(&self) -> &[Handout] {
        &self.handouts
    }

    /// `[[id, body, lease, attempt] ...]`; without a lease when none was given.
    pub fn reply(&self, replies: Replies, queue: &Queue, mode: Mode) {
        replies.array(self.handouts.len());
        for handout in &self.handouts {
            let (id, body) =
                queue.id_and_body(handout.slot).map(|(id, body)| (id.bytes(), body)).unwrap_or_default();
            reply_job(replies, id, body, handout, mode);
        }
    }

    /// The same with bytes of its own, for a reply that is given later.
    pub fn parcel(&self, queue: &Queue, mode: Mode) -> Parcel {
        let item = |handout: &Handout| {
            let job = queue.view(handout.slot)?;
            let id = job.id.bytes().into();
            let body = job.body.into();
            Some(Item { id, body, handout: *handout, created: job.created, record: job.record() })
        };
        Parcel { items: self.handouts.iter().filter_map(item).collect(), mode }
    }

    /// That they were handed out. To be published before they are settled: so replicas know of the leases
    /// that were given, also of those that ended at once.
    pub fn effect(&self) -> Effect<'_> {
        Effect::Leased(&self.handouts)
    }

    /// Finishes what isn't to be acknowledged.
    pub fn settle(self, queue: &mut Queue, mode: Mode, now: Time) -> Settled {
        let mut settled = Settled { gone: Vec::new(), kept: Vec::new() };
        if mode == Mode::Lease {
            return settled;
        }
        for handout in &self.handouts {
            let Some(id) = queue.id_and_body(handout.slot).map(|(id, _)| id.bytes().to_vec()) else {
                continue;
            };
            match Id::new(&id).map(|id| queue.finish(now, id, Claim::Lease(handout.lease))) {
                Some(Finished::Gone) => settled.gone.push(id.into()),
                Some(Finished::Kept(slot)) => settled.kept.push(slot),
                Some(Finished::No) | None => (),
            }
        }
        settled
    }
}

/// What was finished of the jobs that were taken.
pub struct Settled {
    gone: Vec<Box<[u8]>>,
    kept: Vec<Slot>,
}

impl Settled {
    pub fn effects(&self) -> Vec<Effect<'_>> {
        let gone = (!self.gone.is_empty()).then_some(Effect::Left(Leave::Finished, &self.gone));
        let kept = (!self.kept.is_empty()).then_some(Effect::Moved(Cause::Finished, &self.kept));
        gone.into_iter().chain(kept).collect()
    }
}

/// Jobs on their way to a consumer that waits.
pub struct Parcel {
    items: Vec<Item>,
    mode: Mode,
}

struct Item {
    id: Box<[u8]>,
    body: Box<[u8]>,
    handout: Handout,
    created: Time,
    /// The job as it was handed out.
    record: JobRecord,
}

impl Parcel {
    #[cfg(test)]
    pub const EMPTY: Parcel = Parcel { items: Vec::new(), mode: Mode::Lease };

    pub fn reply(&self, replies: Replies) {
        replies.array(self.items.len());
        for item in &self.items {
            reply_job(replies, &item.id, &item.body, &item.handout, self.mode);
        }
    }

    /// Puts the jobs back that nobody has got, the last one first, so that they stand as they stood. Tells
    /// of each what that did.
    pub fn give_back(self, queue: &mut Queue, mut tell: impl FnMut(&mut Queue, &Effect)) {
        for item in self.items.iter().rev() {
            let Some(id) = Id::new(&item.id) else {
                continue;
            };
            if self.mode == Mode::NoAck {
                // First it is again as it was when it was handed out.
                let is_another = queue.get(id).is_some_and(|job| !item.is_done_as(&job));
                if is_another || queue.put(&item.id, &item.body, &item.record).is_err() {
                    continue;
                }
                tell(queue, &Effect::Put { id, body: super::effect::Body::Kept, naming: Naming::Given });
            }
            if let Some(slot) = queue.give_back(id, &item.handout) {
                tell(queue, &Effect::Moved(Cause::Returned, &[slot]));
            }
        }
    }
}

impl Item {
    /// Whether this is the job, kept since it was finished by being handed out.
    fn is_done_as(&self, job: &JobView) -> bool {
        job.progress.stage == Stage::Done
            && (job.created, job.progress.attempt) == (self.created, self.handout.attempt)
    }
}

fn reply_job(replies: Replies, id: &[u8], body: &[u8], handout: &Handout, mode: Mode) {
    replies.array(4);
    replies.bulk(id);
    replies.bulk(body);
    match mode {
        Mode::Lease => replies.integer(handout.lease.number()),
        Mode::NoAck => replies.null(),
    }
    replies.integer(handout.attempt.into());
}
