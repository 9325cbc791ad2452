//! The edges that an ADD names, and whether they can be.

use crate::queue::edges::edge::{OnDead, EDGES_MAX};
use crate::queue::value::ids::Id;

/// What a new job waits for, and which held jobs wait for it. It waits for others, or others wait
/// for it, but not both: so there are no cycles.
#[derive(Clone, Debug, Default)]
pub struct NewEdges<'a> {
    /// At most [`EDGES_MAX`], none of them twice.
    pub after: Vec<Id<'a>>,
    /// Likewise.
    pub before: Vec<Id<'a>>,
    pub on_dead: OnDead,
    /// It also waits for DQ.RESUME.
    pub is_on_hold: bool,
}

/// Why an ADD with edges is an error. Each names the job that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeFault {
    /// AFTER: there is no such job.
    NoJob(Box<[u8]>),
    /// BEFORE: there is no such job that is held.
    NotHeld(Box<[u8]>),
    /// AFTER: it comes back when it is finished, so it is never done.
    HasSchedule(Box<[u8]>),
    /// As many jobs wait for it as may.
    TooManyDependents(Box<[u8]>),
    /// It waits for as many jobs as it may.
    TooManyPredecessors(Box<[u8]>),
    /// Jobs wait for the one that would be replaced by a job with AFTER or with a schedule.
    HasDependents(Box<[u8]>),
}

/// Another job, as an ADD with edges sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Other {
    pub kind: OtherKind,
    /// How many jobs wait for it, and for how many it waits or has waited.
    pub dependents: usize,
    pub predecessors: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherKind {
    Scheduled,
    Held,
    Dead,
    Done,
    /// Delayed, ready or reserved.
    Alive,
}

impl<'a> NewEdges<'a> {
    /// Whether an edge from such a job is open. If not, it is settled at once.
    pub(super) fn waits_for(&self, kind: OtherKind) -> bool {
        match kind {
            OtherKind::Done | OtherKind::Scheduled => false,
            OtherKind::Dead => self.on_dead == OnDead::Hold,
            OtherKind::Held | OtherKind::Alive => true,
        }
    }

    /// Whether the job will be held, if it has this id. `other` looks up the jobs that are named.
    pub(super) fn check(
        &self,
        id: Option<Id>,
        other: impl Fn(Id<'a>) -> Option<Other>,
    ) -> Result<bool, EdgeFault> {
        let other = |named: Id<'a>| other(named).filter(|_| Some(named) != id);
        let mut is_held = self.is_on_hold;
        for named in &self.after {
            let name = || named.bytes().into();
            let found = other(*named).ok_or_else(|| EdgeFault::NoJob(name()))?;
            if found.kind == OtherKind::Scheduled {
                return Err(EdgeFault::HasSchedule(name()));
            }
            let is_open = self.waits_for(found.kind);
            if is_open && found.dependents >= EDGES_MAX {
                return Err(EdgeFault::TooManyDependents(name()));
            }
            is_held |= is_open;
        }
        for named in &self.before {
            let name = || named.bytes().into();
            let held = other(*named).filter(|other| other.kind == OtherKind::Held);
            let found = held.ok_or_else(|| EdgeFault::NotHeld(name()))?;
            if found.predecessors >= EDGES_MAX {
                return Err(EdgeFault::TooManyPredecessors(name()));
            }
        }
        Ok(is_held)
    }
}
