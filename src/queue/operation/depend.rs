//! What producers and operators do with jobs that wait for others: ADD with edges, RESUME, and the
//! deaths that time brings.

use super::new_edges::{EdgeFault, NewEdges, Other, OtherKind};
use super::produce::{Add, Added};
use crate::queue::edges::edge::{
    EndKind, NewDependent, NewEdge, OnDead, PredecessorEnd, EDGES_MAX,
};
use crate::queue::kernel::change::Cause;
use crate::queue::kernel::job::JobView;
use crate::queue::kernel::operation::{Affected, CarriesOut, Operation};
use crate::queue::kernel::pool::Lookup;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Id, Ids};
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::Time;

/// These jobs, which others wait for, have died by now; and a slice of what follows from the ends
/// of jobs is carried out. O(log n) for each job, and for each that is released or dies.
#[derive(Clone, Debug)]
pub struct Settle<'a> {
    pub ids: Ids<'a>,
}

impl Operation for Settle<'_> {
    type Outcome = Affected;

    const CARRIES_OUT: CarriesOut = CarriesOut::OneSlice;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        let dead = |id: &&Id| queue.store.find(**id).filter(|slot| queue.is_dead_at(*slot, now));
        let slots: Vec<Slot> = self.ids.iter().filter_map(|id| dead(&id)).collect();
        slots.iter().for_each(|slot| queue.record_life(now, *slot));
        let affected = slots.len().max(usize::from(queue.has_pending()));
        if affected > 0 {
            queue.ledger.checksum_mut().edges(affected, 4);
        }
        Affected(affected)
    }
}

impl Add<'_> {
    /// Whether the job that this one replaces may be replaced by it: `dependents` wait for that, and
    /// for this one then.
    pub(super) fn check_replaced(&self, id: Id, dependents: usize) -> Result<(), EdgeFault> {
        let waits = self.schedule.is_some()
            || self.edges.as_ref().is_some_and(|edges| !edges.after.is_empty());
        if waits && dependents > 0 {
            return Err(EdgeFault::HasDependents(id.bytes().into()));
        }
        let before = self.edges.as_ref().map_or(0, |edges| edges.before.len());
        if dependents + before > EDGES_MAX {
            return Err(EdgeFault::TooManyDependents(id.bytes().into()));
        }
        Ok(())
    }

    /// Adds a job with edges, which may have this id.
    #[inline(never)]
    pub(super) fn add_with_edges(
        &self,
        queue: &mut Queue,
        now: Time,
        (id, found): (Id, Lookup),
        new: &NewEdges,
    ) -> Added {
        let is_there = found.slot.filter(|slot| !queue.store.was_kept_until(*slot, now));
        let dependents = is_there.map_or(0, |slot| queue.waiting_for(slot));
        let checked = self
            .check_replaced(id, dependents)
            .and_then(|()| new.check(Some(id), |named| queue.other(named, now)));
        let is_held = match checked {
            Ok(is_held) => is_held,
            Err(fault) => return Added::Unconnected(Box::new(fault)),
        };
        let froms: Vec<Slot> = new.after.iter().filter_map(|id| queue.store.find(*id)).collect();
        // Not collected: there would be room for four where most have one.
        let mut edges = Vec::with_capacity(froms.len());
        edges.extend(froms.iter().filter_map(|from| queue.edge_from(*from, new.on_dead, now)));
        let dependent = NewDependent::of_new_job(edges, new.on_dead, new.is_on_hold, self.due);
        debug_assert!(dependent.is_held == is_held, "edges are as they were checked");
        let before: Vec<Slot> = new.before.iter().filter_map(|id| queue.store.find(*id)).collect();
        let policy = self.policy(queue);
        let (stage, due) = match is_held {
            true => (Stage::Held, now),
            false => (Stage::Waiting, self.due.counted_from(now)),
        };
        let progress = Progress { stage, expires_at: policy.expiry(now), ..Progress::default() };
        let job = JobView {
            progress,
            group: self.group,
            ..JobView::plain(id, self.body, due, now, policy)
        };
        let Some(slot) = queue.put_job(&job, found, Cause::Added) else {
            return Added::Full;
        };
        if !new.after.is_empty() || new.is_on_hold {
            queue.set_edges(slot, dependent);
        }
        queue.record_lives(now, &froms);
        queue.add_edges_from(now, slot, &before);
        match is_there {
            Some(_) => Added::Replaced { slot, due },
            None => Added::New { slot, due },
        }
    }
}

impl Queue {
    /// A job that an ADD names.
    pub(super) fn other(&self, id: Id, now: Time) -> Option<Other> {
        let slot = self.store.find(id).filter(|slot| !self.store.was_kept_until(*slot, now))?;
        let kind = self.kind_of(slot, now)?;
        let dependent = self.edges.as_ref().and_then(|edges| edges.dependent(slot));
        let predecessors = dependent.map_or(0, |dependent| dependent.edges_len());
        Some(Other { kind, dependents: self.waiting_for(slot), predecessors })
    }

    fn kind_of(&self, slot: Slot, now: Time) -> Option<OtherKind> {
        if !self.has_details(slot) {
            return Some(OtherKind::Alive);
        }
        let job = self.view(slot)?;
        Some(match job.state(now) {
            _ if job.schedule.is_some() => OtherKind::Scheduled,
            State::Held => OtherKind::Held,
            State::Dead => OtherKind::Dead,
            State::Done => OtherKind::Done,
            State::Delayed | State::Ready | State::Reserved => OtherKind::Alive,
        })
    }

    /// A job without details can't die, and is not held.
    fn has_details(&self, slot: Slot) -> bool {
        self.store.details_of(slot).is_some()
    }

    /// Jobs that others wait for from now on.
    fn record_lives(&mut self, now: Time, slots: &[Slot]) {
        for slot in slots {
            if self.has_details(*slot) {
                self.record_life(now, *slot);
            }
        }
    }

    pub(super) fn waiting_for(&self, slot: Slot) -> usize {
        self.edges.as_ref().map_or(0, |edges| edges.waiting_for(slot))
    }

    /// An edge from this job to one that is about to be added.
    fn edge_from(&self, from: Slot, on_dead: OnDead, now: Time) -> Option<NewEdge> {
        if !self.has_details(from) {
            return Some(NewEdge::Open(from));
        }
        let job = self.view(from)?;
        let settled = |end, what: Option<&[u8]>| {
            let ending =
                PredecessorEnd { id: job.id.bytes().into(), end, what: what.map(Box::from) };
            Some(NewEdge::Settled(ending.into()))
        };
        match (job.state(now), on_dead) {
            (State::Done, _) => settled(EndKind::Done, job.result),
            (State::Dead, OnDead::Run) => settled(EndKind::Dead, job.reason_at(now)),
            _ => Some(NewEdge::Open(from)),
        }
    }

    /// These held jobs wait for a job that was just added, too.
    fn add_edges_from(&mut self, now: Time, from: Slot, dependents: &[Slot]) {
        if dependents.is_empty() {
            return;
        }
        let edges = self.edges_or_new();
        let known = edges.dependents_of(from);
        let is_new = |dependent: &&Slot| !known.contains(dependent);
        let new: Vec<Slot> = dependents.iter().filter(is_new).copied().collect();
        if !edges.add_edges_from(from, &new) {
            impossible("a held job has no edges");
        }
        self.ledger.checksum_mut().edges(dependents.len(), 3);
        self.record_lives(now, &[from]);
    }

    pub(super) fn resume_held(&mut self, now: Time, id: Id) -> bool {
        self.held_job(id, now).is_some_and(|slot| self.end_hold(now, slot))
    }

    /// The job with this id, if it is held.
    #[inline(never)]
    pub(super) fn held_job(&self, id: Id, now: Time) -> Option<Slot> {
        let slot = self.store.find(id)?;
        (self.view(slot)?.state(now) == State::Held).then_some(slot)
    }

    fn is_dead_at(&self, slot: Slot, now: Time) -> bool {
        self.view(slot).is_some_and(|job| job.state(now) == State::Dead)
    }
}
