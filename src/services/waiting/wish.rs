//! What clients wait for, and what each gets.

use std::sync::Arc;

use super::pending::DeliveredJobs;
use super::watchers::{JobOutcome, SharedOutcome, WatchedLease};
use crate::queue::{Batch, Id, Mode, Pop, Queue, Time};
use crate::services::key_ref::KeyRef;

/// The bytes of the replies that waiting clients get in one turn: no further client is unblocked
/// once so many are together. To copy and send them takes two to three milliseconds.
pub const REPLY_BYTES_IN_A_TURN: usize = 2 << 20;

/// What the shortest reply counts for. The server writes the replies at the end of the turn, which
/// takes several times as long as unblocking: about a millisecond for a hundred clients.
const REPLY_COST: usize = REPLY_BYTES_IN_A_TURN / 100;

/// What a job or a lease in a reply counts for, beside its bytes.
const PART_COST: usize = REPLY_COST / 100;

/// How the reply to a POP looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// The key comes before the jobs.
    pub with_key: bool,
    /// Each job has its due time as the last field.
    pub with_due: bool,
    /// So many jobs were finished before: this number and the rest are an array of two.
    pub finished: Option<usize>,
}

/// What a client waits for.
#[derive(Clone)]
pub enum Wish {
    Jobs(JobsWish),
    Outcome(OutcomeWish),
    Leases(LeasesWish),
}

/// What decides whether a client can be served while others can't: a POP with a lease needs a free
/// place under CONCURRENCY, a POP with NOACK needs none; and some wait until a delivery is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub mode: Mode,
    pub batch: Option<Batch>,
}

impl Class {
    /// Whether a delivery to such a client is worth it at `now`.
    pub fn is_worth(self, queue: &Queue, now: Time) -> bool {
        self.batch.is_none_or(|batch| queue.is_worth(now, self.mode, batch))
    }
}

/// Jobs of any of these keys.
#[derive(Clone)]
pub struct JobsWish {
    pub terms: Pop,
    /// It waits until a delivery is worth it.
    pub batch: Option<Batch>,
    pub shape: Shape,
    pub places: Vec<KeyRef>,
    /// The jobs that it is to get.
    pub delivered: Option<Arc<DeliveredJobs>>,
}

/// What becomes of a job.
#[derive(Clone)]
pub struct OutcomeWish {
    pub key_ref: KeyRef,
    pub id: Box<[u8]>,
    /// When the job dies, if no command changes it before.
    pub dies_at: Option<Time>,
    pub told: SharedOutcome,
}

/// That a lease is void.
#[derive(Clone)]
pub struct LeasesWish {
    pub key_ref: KeyRef,
    pub leases: Arc<[WatchedLease]>,
    /// When the life of each job is over. Empty once the client waits.
    pub expire_at: Vec<Option<Time>>,
    /// One was void, so the client is about to be unblocked.
    is_told: bool,
    /// The places of those that are void when the reply is made.
    void: Vec<usize>,
}

impl JobsWish {
    pub fn class(&self) -> Class {
        Class { mode: self.terms.mode, batch: self.batch }
    }
}

impl OutcomeWish {
    /// Its wait has ended like this.
    pub fn ended(self, ended: JobOutcome) -> OutcomeWish {
        OutcomeWish { told: Arc::new(ended.into()), ..self }
    }
}

impl LeasesWish {
    /// A lease is void. False if one was before.
    pub fn tell(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// Its wait has ended while the leases at these places are void.
    pub fn ended(self, void: Vec<usize>) -> LeasesWish {
        LeasesWish { void, ..self }
    }

    /// The ids of the jobs whose lease is void, in the order in which they were named.
    pub fn void_ids(&self) -> Vec<&[u8]> {
        let leases = self.void.iter().filter_map(|position| self.leases.get(*position));
        leases.map(|(_, id)| &**id).collect()
    }
}

impl Wish {
    /// What becomes of a job that dies then.
    pub fn job(key_ref: KeyRef, id: Id, dies_at: Option<Time>) -> Wish {
        let (id, told) = (id.bytes().into(), SharedOutcome::default());
        Wish::Outcome(OutcomeWish { key_ref, id, dies_at, told })
    }

    /// That one of these leases is void. With the time at which the life of its job is over.
    pub fn leases(key_ref: KeyRef, leases: Vec<(WatchedLease, Option<Time>)>) -> Wish {
        let (leases, expire_at): (Vec<WatchedLease>, _) = leases.into_iter().unzip();
        let leases = leases.into();
        Wish::Leases(LeasesWish { key_ref, leases, expire_at, is_told: false, void: Vec::new() })
    }

    /// Whether it is known what the client gets: it is about to be unblocked.
    pub fn is_told(&self) -> bool {
        match self {
            Wish::Jobs(wish) => wish.delivered.is_some(),
            Wish::Outcome(wish) => wish.told.get().is_some(),
            Wish::Leases(wish) => wish.is_told,
        }
    }

    /// What its reply counts for among [`REPLY_BYTES_IN_A_TURN`].
    pub fn cost(&self) -> usize {
        let beyond = match self {
            Wish::Jobs(wish) => wish
                .delivered
                .as_ref()
                .map_or(0, |delivered| delivered.bytes() + PART_COST * delivered.jobs.len()),
            Wish::Outcome(wish) => wish.told.get().map_or(0, JobOutcome::bytes),
            // Each of them is looked at for the reply.
            Wish::Leases(wish) => PART_COST * wish.leases.len(),
        };
        REPLY_COST + beyond
    }

    /// Jobs of these keys, on these terms; once a delivery is worth it.
    pub fn jobs(terms: Pop, batch: Option<Batch>, shape: Shape, places: Vec<KeyRef>) -> Wish {
        Wish::Jobs(JobsWish { terms, batch, shape, places, delivered: None })
    }
}
