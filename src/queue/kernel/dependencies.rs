//! What happens to jobs that wait for others. An edge is settled when its predecessor is done; when
//! the last one is settled, the dependent is due. When a predecessor dies or is removed, OnDead
//! says what follows.
//!
//! The passing of time settles an edge in one case, when a predecessor dies. That is written to the
//! log, as the operation [`Settle`](crate::queue::Settle), before the next change. An operation on
//! such a job notes its death first, so the outcome doesn't depend on which came first.
//!
//! What follows from an end is *pending* until the end of the operation, which carries out a part of
//! it ([`Queue::carry_out`]). So an operation costs O(log n) for each job that it ends, whatever
//! waits for it; the jobs that DQ.DONE adds may still add edges to those that wait; and a job that
//! ends others makes no recursion. The rest is carried out by the timer.

use super::change::Cause;
use super::queue::Queue;
use super::transition::{Reason, Transition};
use crate::queue::edges::edge::{EndKind, NewDependent, PredecessorEnd};
use crate::queue::edges::pending::{SettleBudget, Step, Which};
use crate::queue::edges::table::Edges;
use crate::queue::memory::impossible::impossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::Time;

/// To release a job, or to let it die, takes about as long as so many edges.
const EDGES_A_JOB: u32 = 10;

impl Queue {
    /// A job has these edges from now on, which are all that it has.
    pub(in crate::queue) fn set_edges(&mut self, slot: Slot, new: NewDependent) {
        self.forget_edges(slot);
        let open = new.edges.iter().filter(|edge| !edge.is_settled()).count();
        self.ledger.checksum_mut().edges(new.edges.len(), open as u32);
        self.edges_or_new().add_dependent(slot, new);
    }

    pub(in crate::queue) fn edges_or_new(&mut self) -> &mut Edges {
        self.edges.get_or_insert_default()
    }

    /// The job depends on nothing any more. Open edges from it stay.
    pub(in crate::queue) fn forget_edges(&mut self, slot: Slot) {
        let forgotten = self.edges.as_mut().and_then(|edges| edges.forget_dependent(slot));
        if let Some((job, bytes)) = forgotten {
            self.store.removed_mut().add_dependent(job, bytes);
        }
    }

    /// A job is about to be finished: the edges from it are to be settled.
    pub(in crate::queue) fn settle_as_done(
        &mut self,
        now: Time,
        slot: Slot,
        result: Option<&[u8]>,
    ) {
        self.record_death_by(now, slot);
        self.end_edges(slot, Which::All, (EndKind::Done, result), now);
    }

    /// A job is about to be removed before it is done.
    pub(in crate::queue) fn settle_as_gone(&mut self, now: Time, slot: Slot) {
        self.record_death_by(now, slot);
        self.end_edges(slot, Which::All, (EndKind::Gone, None), now);
    }

    /// Edges from this job are to be settled, as of this time.
    fn end_edges(
        &mut self,
        slot: Slot,
        which: Which,
        (end, what): (EndKind, Option<&[u8]>),
        at: Time,
    ) {
        let waiting = self.edges.as_ref().map_or(0, |edges| edges.waiting_for(slot));
        let Some((id, _)) = self.id_and_body(slot).filter(|_| waiting > 0) else {
            // It may still be about to be marked.
            let edges = self.edges.iter_mut().filter(|_| which == Which::All);
            return edges.for_each(|edges| edges.forget_predecessor(slot));
        };
        let ending = PredecessorEnd { id: id.bytes().into(), end, what: what.map(Box::from) };
        if let Some(edges) = &mut self.edges {
            match end {
                EndKind::Done => self.ledger.checksum_mut().edges(waiting, 0),
                EndKind::Gone => self.ledger.checksum_mut().edges(edges.marks_of(slot).0, 1),
                EndKind::Dead => self.ledger.checksum_mut().edges(waiting, 2),
            }
            edges.end(slot, which, ending, at);
        }
    }

    /// The job waits for one that can't come, as of this time.
    fn die_behind(&mut self, now: Time, at: Time, slot: Slot, reason: &[u8]) -> bool {
        if self.view(slot).is_none_or(|job| job.state(at) != State::Held) {
            return false;
        }
        self.edges.iter_mut().for_each(|edges| edges.leave_hold(slot));
        let dead = Progress { stage: Stage::Dead, ..Progress::default() };
        let transition = Transition::new(Cause::Orphaned, now, at, &dead);
        self.transition(slot, &transition.because(Reason::Is(reason)));
        true
    }

    /// If this job, which others wait for, has died by now, and that isn't in the log yet: it is
    /// from here on.
    #[inline]
    pub(in crate::queue) fn record_death_by(&mut self, now: Time, slot: Slot) {
        let death = self.edges.as_ref().and_then(|edges| edges.death_of(slot));
        if death.is_some_and(|time| time <= now) {
            self.record_life(now, slot);
        }
    }

    /// The job has another state, or will die at another time. Called for each such change of a
    /// queue with edges. O(log n).
    pub(in crate::queue) fn record_life(&mut self, now: Time, slot: Slot) {
        let Some(edges) = &mut self.edges else {
            return;
        };
        if edges.waiting_for(slot) == 0 {
            // It may still be about to be marked: that would say of it what isn't so any more.
            return edges.forget_predecessor(slot);
        }
        let Some(job) = self.view(slot) else {
            return impossible("a job that others wait for is there");
        };
        let (is_dead, death) = (job.state(now) == State::Dead, job.dies_at());
        if is_dead {
            let (reason, since) = (job.reason_at(now).map(<[u8]>::to_vec), job.since(now));
            self.end_edges(slot, Which::Run, (EndKind::Dead, reason.as_deref()), since);
        }
        if let Some(edges) = &mut self.edges {
            edges.record_life(slot, is_dead);
            let death = death.filter(|_| !is_dead);
            edges.set_death(slot, death);
            // A replica that was read at a later time has nothing else to wake it for this.
            self.ledger.wake_by(death.unwrap_or(Time::MAX));
        }
    }

    /// Notes when these jobs die, which others wait for since a file was read.
    pub(in crate::queue) fn schedule_deaths_of(&mut self, slots: &[Slot]) {
        for slot in slots {
            let death = self.view(*slot).and_then(|job| job.dies_at());
            self.edges_or_new().schedule_death(*slot, death);
            self.ledger.wake_by(death.unwrap_or(Time::MAX));
        }
    }

    /// At the end of an operation: releases those that a command has let go, and carries out a part
    /// of what is pending.
    pub(in crate::queue) fn carry_out(&mut self, now: Time, budget: u32) {
        while let Some((slot, due)) = self.edges.as_mut().and_then(|edges| edges.next_freed()) {
            self.free_held(now, slot, due);
        }
        let mut done = 0;
        while done < budget {
            let Some(step) = self.edges.as_mut().and_then(|edges| edges.step()) else {
                break;
            };
            done += self.follow(now, step);
        }
        let Some(edges) = &self.edges else {
            return;
        };
        if edges.is_empty() {
            self.edges = None;
        } else if edges.has_pending() {
            self.ledger.wake_now();
        }
    }

    /// What a step means for the job that it is about. Returns how much work it was.
    fn follow(&mut self, now: Time, step: Step) -> u32 {
        let slot = match step {
            Step::Edge => return 1,
            Step::LastEdge(slot) => slot,
            Step::Orphan { slot, at, of } => {
                if self.die_behind(now, at, slot, &reason_of_removal(&of.id)) {
                    return EDGES_A_JOB;
                }
                slot
            }
        };
        if let Some(due) = self.edges.as_mut().and_then(|edges| edges.let_go_if_free(slot)) {
            self.free_held(now, slot, due);
        }
        EDGES_A_JOB
    }

    fn free_held(&mut self, now: Time, slot: Slot, due: Time) {
        if self.store.progress(slot).stage == Stage::Held {
            self.wait_until(now, slot, due, Cause::Resumed);
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
            Some(edges) => edges.end_hold(slot, now),
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

    /// When something follows for jobs that wait for others, and isn't in the log yet: when a job
    /// dies, or died, that others wait for, or at once.
    pub fn settles_at(&self) -> Option<Time> {
        let edges = self.edges.as_ref()?;
        if edges.has_pending() {
            Some(Time::ZERO)
        } else {
            edges.next_death()
        }
    }

    /// Whether something follows from ends of jobs that isn't carried out yet.
    #[inline]
    pub fn has_pending(&self) -> bool {
        self.edges.as_ref().is_some_and(|edges| edges.has_pending())
    }

    /// Jobs that others wait for and that have died by `now`: at most so many.
    pub fn to_settle(&self, now: Time, at_most: usize) -> Vec<Slot> {
        self.edges.iter().flat_map(|all| all.died_by(now)).take(at_most).collect()
    }

    /// The first of these jobs, and further ones as long as they wait, or have waited, for not more
    /// than `at_most` others together: to forget an edge takes a few nanoseconds.
    pub(in crate::queue) fn up_to_edges<'q>(
        &'q self,
        slots: impl Iterator<Item = Slot> + 'q,
        at_most: usize,
    ) -> impl Iterator<Item = Slot> + 'q {
        let mut sum = 0;
        let edges_to = |slot| self.edges.as_ref().map_or(0, |edges| edges.edges_to(slot));
        slots.enumerate().map_while(move |(place, slot)| {
            sum += edges_to(slot);
            (place == 0 || sum <= at_most).then_some(slot)
        })
    }

    /// Sets how much of what is pending is carried out at once. For tests, in which a slice has few
    /// edges: a queue of a file has the default again.
    #[doc(hidden)]
    pub fn set_settle_budget(&mut self, budget: SettleBudget) {
        self.settle_budget = budget;
    }

    /// How many held jobs wait for a dead one.
    pub fn held_behind_dead(&self) -> usize {
        self.edges.as_ref().map_or(0, |edges| edges.behind_dead())
    }
}

fn reason_of_removal(id: &[u8]) -> Vec<u8> {
    [b"job '", id, b"' that it waits for was removed"].concat()
}
