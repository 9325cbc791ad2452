//! How a job stops waiting, other than by the ends of those that it waits for.

use super::edge::{Dependent, DependentKey, Edge, EdgeKey};
use super::lists::Origin;
use super::table::Edges;
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

impl Edges {
    /// The job waits for commands no more. Returns whether it did.
    pub fn end_hold(&mut self, slot: Slot, now: Time) -> bool {
        let Some(key) = self.dependents.get(&slot).copied() else {
            return false;
        };
        let Some(job) = self.lists.dependents.get_mut(key).filter(|job| job.is_on_hold) else {
            return false;
        };
        job.is_on_hold = false;
        job.due_from = job.due_from.max(now);
        if job.can_go() {
            self.released.push_back((key, job.serial));
        }
        true
    }

    /// The next job that a command has let go during this operation, and that still waits for
    /// nothing: it is held no more. Returns when it is due.
    pub fn next_freed(&mut self) -> Option<(Slot, Time)> {
        while let Some((key, serial)) = self.released.pop_front() {
            let job = self.lists.dependents.get(key).filter(|job| job.serial == serial);
            if let Some(slot) = job.map(|job| job.slot) {
                if let Some(due) = self.let_go_if_free(slot) {
                    return Some((slot, due));
                }
            }
        }
        None
    }

    /// If this held job waits for nothing, it is held no more. Returns when it is due.
    pub fn let_go_if_free(&mut self, slot: Slot) -> Option<Time> {
        let job = self.dependent_mut(slot).filter(|job| job.can_go())?;
        job.is_held = false;
        Some(job.due.counted_from(job.due_from))
    }

    /// The job is held no more, whatever it waits for.
    pub fn leave_hold(&mut self, slot: Slot) {
        if let Some(job) = self.dependent_mut(slot) {
            let was_behind_dead = job.is_behind_dead();
            job.is_held = false;
            self.count_behind_dead(was_behind_dead, false);
        }
    }

    /// Drops the open edges of a job, which is held no more. Keeps the settled ones, and those from
    /// jobs that have ended.
    pub fn drop_open(&mut self, slot: Slot) {
        let waits = |job: &Dependent| job.open > 0 || job.is_held || job.is_on_hold;
        let Some(key) = self.dependents.get(&slot).copied() else {
            return;
        };
        if !self.lists.dependents.get(key).is_some_and(waits) {
            return;
        }
        self.count_behind_dead(self.is_behind_dead(key), false);
        self.unlink_all(key);
        let job = self.lists.dependents.get_mut(key).or_impossible("a dependent is there");
        let Some(job) = job else {
            return;
        };
        (job.open, job.marked, job.is_on_hold, job.is_held) = (0, 0, false, false);
        job.edges.retain(|edge| matches!(edge, Edge::Settled(_)));
        if job.edges.is_empty() {
            self.lists.dependents.remove(key);
            self.dependents.remove(&slot);
        }
    }

    /// Takes all open edges of a dependent out of their lists. Those from jobs that have ended are
    /// settled.
    fn unlink_all(&mut self, dependent: DependentKey) {
        let len = self.lists.dependents.get(dependent).map_or(0, |job| job.edges.len());
        for index in 0..len as u32 {
            let Some(link) = self.lists.unlink(EdgeKey { dependent, index }) else {
                continue;
            };
            let ending = match self.lists.bundles.get(link.bundle).map(|bundle| &bundle.origin) {
                Some(Origin::Ended(ending)) => Some(ending.clone()),
                Some(Origin::Job(_) | Origin::Nothing) | None => None,
            };
            self.tidy(link.bundle);
            let job = self.lists.dependents.get_mut(dependent);
            let edge = job.and_then(|job| job.edges.get_mut(index as usize));
            match (edge, ending) {
                (Some(edge), Some(ending)) => *edge = Edge::Settled(ending),
                (Some(_), None) => self.bytes -= size_of::<Edge>(),
                (None, _) => (),
            }
        }
    }

    /// The job in this slot is gone, or depends on nothing. Returns what it knew alone, and how many
    /// bytes it had.
    pub fn forget_dependent(&mut self, slot: Slot) -> Option<(Dependent, usize)> {
        let key = self.dependents.remove(&slot)?;
        self.count_behind_dead(self.is_behind_dead(key), false);
        let job = self.lists.dependents.get(key)?;
        let len = if job.open > 0 { job.edges.len() as u32 } else { 0 };
        (0..len).for_each(|index| self.unlink(EdgeKey { dependent: key, index }));
        let mut job = self.lists.dependents.remove(key)?;
        let bytes = job.forget_shared_endings();
        self.bytes -= bytes;
        Some((job, bytes))
    }
}
