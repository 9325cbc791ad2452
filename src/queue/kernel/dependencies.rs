//! What happens to jobs that wait for others. An edge is settled when its predecessor is done; when
//! the last one is settled, the dependent is due. When a predecessor dies or is removed, OnDead
//! says what follows.
//!
//! The passing of time settles an edge in one case, when a predecessor dies. That is written to the
//! log, as the operation [`Settle`](crate::queue::Settle), before the next change.
//!
//! Dependents are released at the end of an operation ([`Queue::release_dependents`]): so the jobs
//! that DQ.DONE adds may still add edges to them, and one that releases others makes no recursion.

use std::sync::Arc;

use super::queue::Queue;
use super::transition::{Cause, Reason, Transition};
use crate::queue::edges::edge::{Dependent, End, Ending, OnDead};
use crate::queue::edges::table::Edges;
use crate::queue::memory::slab::Slot;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::Time;

impl Queue {
    /// A job has these edges from now on, which are all that it has.
    pub(in crate::queue) fn set_edges(&mut self, slot: Slot, dependent: Dependent) {
        self.forget_edges(slot);
        self.ledger.mix().edges(dependent.edges().len(), dependent.open());
        self.edges_or_new().add_dependent(slot, dependent);
    }

    pub(in crate::queue) fn edges_or_new(&mut self) -> &mut Edges {
        self.edges.get_or_insert_default()
    }

    /// The job depends on nothing any more. Open edges from it stay.
    pub(in crate::queue) fn forget_edges(&mut self, slot: Slot) {
        let forgotten = self.edges.as_mut().and_then(|edges| edges.forget_dependent(slot));
        forgotten.into_iter().for_each(|job| self.store.removed_mut().add_dependent(job));
    }

    /// A job is about to be finished: settles the edges from it.
    pub(in crate::queue) fn settle_as_done(&mut self, slot: Slot, result: Option<&[u8]>) {
        self.settle_all(slot, End::Done, result);
    }

    fn settle_all(&mut self, slot: Slot, end: End, what: Option<&[u8]>) {
        let Some(ending) = self.ending_of(slot, end, what) else {
            return;
        };
        let Some(edges) = &mut self.edges else {
            return;
        };
        let from_it = edges.take_edges_from(slot);
        from_it.iter().for_each(|edge| edges.settle(slot, edge, &ending));
        self.ledger.mix().edges(from_it.len(), 0);
    }

    /// `None` where no job waits for this one.
    fn ending_of(&self, slot: Slot, end: End, what: Option<&[u8]>) -> Option<Arc<Ending>> {
        let is_any = self.edges.as_ref().is_some_and(|edges| edges.waiting_for(slot) > 0);
        let (id, _) = self.store.get(slot).filter(|_| is_any)?.id_and_body();
        Some(Arc::new(Ending { id: id.bytes().into(), end, what: what.map(Box::from) }))
    }

    /// A job is about to be removed before it is done.
    pub(in crate::queue) fn settle_as_gone(&mut self, now: Time, slot: Slot) {
        let Some(ending) = self.ending_of(slot, End::Gone, None) else {
            return;
        };
        let Some(edges) = &mut self.edges else {
            return;
        };
        let mut are_to_die = Vec::new();
        for edge in edges.take_edges_from(slot) {
            let on_dead = edges.dependent(edge.dependent).map(Dependent::on_dead);
            edges.settle(slot, &edge, &ending);
            if on_dead == Some(OnDead::Hold) {
                are_to_die.push(edge.dependent);
            }
        }
        self.ledger.mix().edges(are_to_die.len(), 1);
        let reason = reason_of_removal(&ending.id);
        are_to_die.into_iter().for_each(|slot| self.die_behind(now, slot, &reason));
    }

    /// The job waits for one that can't come.
    fn die_behind(&mut self, now: Time, slot: Slot, reason: &[u8]) {
        if self.view(slot).is_none_or(|job| job.state(now) != State::Held) {
            return;
        }
        self.edges.iter_mut().for_each(|edges| edges.leave_hold(slot));
        let dead = Progress { stage: Stage::Dead, ..Progress::default() };
        let transition = Transition::new(Cause::Orphaned, now, now, &dead);
        self.transition(slot, &transition.because(Reason::Is(reason)));
    }

    /// The job has another state, or will die at another time. Called for each such change of a
    /// queue with edges.
    pub(in crate::queue) fn note_life(&mut self, now: Time, slot: Slot) {
        let is_any = self.edges.as_ref().is_some_and(|edges| edges.waiting_for(slot) > 0);
        if !is_any {
            return;
        }
        let Some(job) = self.view(slot) else {
            return;
        };
        let (is_dead, death) = (job.state(now) == State::Dead, job.dies_at());
        if is_dead {
            let reason = job.reason_at(now).map(<[u8]>::to_vec);
            self.note_death(slot, reason.as_deref());
        } else if let Some(edges) = &mut self.edges {
            edges.set_death(slot, death);
            // A replica that was read at a later time has nothing else to wake it for this.
            self.ledger.wake_by(death.unwrap_or(Time::MAX));
            // A job that lives on, as most do, isn't a matter of its edges.
            if edges.waiting_for_dead(slot) > 0 {
                edges.edges_from(slot).iter().for_each(|edge| edges.note_life(slot, edge, false));
            }
        }
    }

    /// Notes when these jobs die, which others wait for since a file was read.
    pub(in crate::queue) fn expect_deaths_of(&mut self, slots: &[Slot]) {
        for slot in slots {
            let death = self.view(*slot).and_then(|job| job.dies_at());
            self.edges_or_new().set_death(*slot, death);
            self.ledger.wake_by(death.unwrap_or(Time::MAX));
        }
    }

    /// A job that others wait for is dead.
    fn note_death(&mut self, slot: Slot, reason: Option<&[u8]>) {
        let Some(ending) = self.ending_of(slot, End::Dead, reason) else {
            return;
        };
        let Some(edges) = &mut self.edges else {
            return;
        };
        edges.set_death(slot, None);
        let waiting = edges.waiting_for(slot);
        self.ledger.mix().edges(waiting, 2);
        if edges.waiting_for_dead(slot) == waiting {
            return;
        }
        let from_it = edges.edges_from(slot);
        for edge in &from_it {
            match edges.dependent(edge.dependent).map(Dependent::on_dead) {
                Some(OnDead::Run) => edges.settle(slot, edge, &ending),
                Some(OnDead::Hold) | None => edges.note_life(slot, edge, true),
            }
        }
    }

    /// Some jobs have stopped waiting during this operation: they are due.
    pub(in crate::queue) fn release_dependents(&mut self, now: Time) {
        while let Some((slot, due)) = self.edges.as_mut().and_then(|edges| edges.next_released()) {
            let is_held = self.store.progress(slot).stage == Stage::Held;
            if is_held {
                self.wait_until(now, slot, due.counted_from(now), Cause::Resumed);
            }
        }
        if self.edges.as_ref().is_some_and(|edges| edges.is_empty()) {
            self.edges = None;
        }
    }

    /// A held job is held no more, and due at this time.
    fn wait_until(&mut self, now: Time, slot: Slot, due: Time, cause: Cause) {
        let progress = Progress { stage: Stage::Waiting, ..self.store.progress(slot) };
        self.transition(slot, &Transition::new(cause, now, due, &progress));
    }

    /// A held job is ready, whatever it waits for.
    pub(in crate::queue) fn kick_held(&mut self, now: Time, slot: Slot, cause: Cause) {
        self.drop_open_edges(slot);
        self.wait_until(now, slot, now, cause);
    }

    /// A job that is, or was, held waits for nothing any more.
    pub(in crate::queue) fn drop_open_edges(&mut self, slot: Slot) {
        self.edges.iter_mut().for_each(|edges| edges.drop_open(slot));
    }

    /// A job that was on hold is so no more. Returns whether it was.
    pub(in crate::queue) fn end_hold(&mut self, now: Time, slot: Slot) -> bool {
        let edges = self.edges.as_mut();
        match edges.filter(|edges| edges.dependent(slot).is_some()) {
            Some(edges) => edges.end_hold(slot),
            // A file said that it is held, and not for what.
            None => {
                self.wait_until(now, slot, now, Cause::Resumed);
                true
            }
        }
    }

    /// Whether any job waits for another, or has waited.
    #[inline]
    pub fn has_edges(&self) -> bool {
        self.edges.is_some()
    }

    /// When a job dies, or died, that others wait for, and it isn't in the log yet.
    pub fn settles_at(&self) -> Option<Time> {
        self.edges.as_ref()?.next_death()
    }

    /// Jobs of [`Queue::settles_at`] that have died by `now`: at least one, and further ones as long
    /// as they have not more than `edges` edges together.
    pub fn to_settle(&self, now: Time, edges: usize) -> Vec<Slot> {
        let dead = self.edges.iter().flat_map(|all| all.died_by(now));
        self.up_to_edges(dead, edges).collect()
    }

    /// The first of these jobs, and further ones as long as they have not more than `at_most` edges
    /// together.
    pub(in crate::queue) fn up_to_edges<'q>(
        &'q self,
        slots: impl Iterator<Item = Slot> + 'q,
        at_most: usize,
    ) -> impl Iterator<Item = Slot> + 'q {
        let mut sum = 0;
        let edges_of = |slot| self.edges.as_ref().map_or(0, |edges| edges.of_job(slot));
        slots.enumerate().map_while(move |(place, slot)| {
            sum += edges_of(slot);
            (place == 0 || sum <= at_most).then_some(slot)
        })
    }

    /// How many held jobs wait for a dead one.
    pub fn held_behind_dead(&self) -> usize {
        self.edges.as_ref().map_or(0, |edges| edges.behind_dead())
    }
}

fn reason_of_removal(id: &[u8]) -> Vec<u8> {
    [b"job '", id, b"' that it waits for was removed"].concat()
}
