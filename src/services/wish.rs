//! What clients wait for, and what each gets.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pending::Assigned;
use super::place::KeyRef;
use super::watchers::{Ended, Held, Told};
use crate::queue::{Id, Lease, Pop, Time};

/// So many ids of void leases take as long as another reply.
const IDS_IN_AN_ANSWER: usize = 100;

/// How the reply looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub around: Around,
    pub job: JobShape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// The jobs.
    Jobs,
    /// The key and the jobs.
    KeyAndJobs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobShape {
    Plain,
    /// With the due time as the last field.
    WithDue,
}

/// What a client waits for.
#[derive(Clone)]
pub enum Wish {
    Jobs(JobsWish),
    Outcome(OutcomeWish),
    Leases(LeasesWish),
}

/// Jobs of any of these keys.
#[derive(Clone)]
pub struct JobsWish {
    pub terms: Pop,
    pub shape: Shape,
    pub places: Vec<KeyRef>,
    /// The jobs that it is to get.
    pub assigned: Option<Arc<Assigned>>,
}

/// What becomes of a job.
#[derive(Clone)]
pub struct OutcomeWish {
    pub place: KeyRef,
    pub id: Box<[u8]>,
    /// When the job dies, if no command changes it before.
    pub dies_at: Option<Time>,
    pub told: Told,
}

/// That a lease is void.
#[derive(Clone)]
pub struct LeasesWish {
    pub place: KeyRef,
    pub held: Arc<[Held]>,
    /// When the life of each job is over. Empty once the client waits.
    pub expire_at: Vec<Option<Time>>,
    void: Void,
}

/// Which leases are void.
#[derive(Clone, Default)]
enum Void {
    #[default]
    None,
    /// Those at these places, in their order.
    Some(Vec<usize>),
    All,
}

impl OutcomeWish {
    /// Its wait has ended like this.
    pub fn ended(self, ended: Ended) -> OutcomeWish {
        OutcomeWish { told: Arc::new(ended.into()), ..self }
    }
}

impl LeasesWish {
    /// These leases are void. False if others were before, of which the client is told already.
    pub fn tell(&mut self, leases: &[Lease]) -> bool {
        let Void::None = self.void else {
            return false;
        };
        let leases: BTreeSet<Lease> = leases.iter().copied().collect();
        let is_void = |(_, (lease, _)): &(usize, &Held)| leases.contains(lease);
        let places = self.held.iter().enumerate().filter(is_void).map(|(place, _)| place);
        self.void = Void::Some(places.collect());
        true
    }

    /// The same of all leases.
    pub fn tell_all(&mut self) -> bool {
        let is_news = matches!(self.void, Void::None);
        if is_news {
            self.void = Void::All;
        }
        is_news
    }

    /// The ids of the jobs whose lease is void, in the order in which they were named.
    pub fn void_ids(&self) -> Vec<&[u8]> {
        match &self.void {
            Void::None => Vec::new(),
            Void::Some(places) => {
                let held = places.iter().filter_map(|place| self.held.get(*place));
                held.map(|(_, id)| &**id).collect()
            }
            Void::All => self.held.iter().map(|(_, id)| &**id).collect(),
        }
    }
}

impl Wish {
    /// What becomes of a job that dies then.
    pub fn job(place: KeyRef, id: Id, dies_at: Option<Time>) -> Wish {
        let (id, told) = (id.bytes().into(), Told::default());
        Wish::Outcome(OutcomeWish { place, id, dies_at, told })
    }

    /// That one of these leases is void. With the time at which the life of its job is over.
    pub fn leases(place: KeyRef, leases: Vec<(Lease, Box<[u8]>, Option<Time>)>) -> Wish {
        let expire_at = leases.iter().map(|(_, _, time)| *time).collect();
        let held = leases.into_iter().map(|(lease, id, _)| (lease, id)).collect();
        Wish::Leases(LeasesWish { place, held, expire_at, void: Void::None })
    }

    /// Whether it is known what the client gets: it is about to be unblocked.
    pub fn is_told(&self) -> bool {
        match self {
            Wish::Jobs(wish) => wish.assigned.is_some(),
            Wish::Outcome(wish) => wish.told.get().is_some(),
            Wish::Leases(wish) => !matches!(wish.void, Void::None),
        }
    }

    /// How many answers of usual size its reply takes.
    pub fn size(&self) -> usize {
        match self {
            Wish::Jobs(_) | Wish::Outcome(_) => 1,
            Wish::Leases(wish) => 1 + wish.held.len() / IDS_IN_AN_ANSWER,
        }
    }

    /// Jobs of these keys, on these terms.
    pub fn jobs(terms: Pop, shape: Shape, places: Vec<KeyRef>) -> Wish {
        Wish::Jobs(JobsWish { terms, shape, places, assigned: None })
    }
}
