//! Jobs of the reference that wait for others. An edge goes by ids: whatever job has the id of the
//! predecessor is the one that is waited for.

use dq::queue::{EdgeFault, EndKind, OnDead, SettleBudget, State};

use crate::job::{Job, Stage};
use crate::reference::Reference;
use crate::told::{Add, Bytes, Due, Edges, Outcome};

/// What a job that was added with AFTER or HOLD waits for, or has waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// In the order in which they were named.
    pub edges: Vec<Edge>,
    pub on_dead: OnDead,
    /// Until a command ends that.
    pub is_on_hold: bool,
    /// Once it waits no more.
    pub due: Due,
    /// When the last of it has ended so far.
    pub due_from: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Bytes,
    /// How the predecessor ended, and its result or reason. None: the edge is open.
    pub ending: Option<(EndKind, Option<Bytes>)>,
    /// The number of the end that has still to get here.
    pub pending: Option<u64>,
    /// Counted as one from a dead job.
    pub is_marked: bool,
}

/// What follows from an end, a death or a revival and isn't carried out yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pending {
    /// The edges with this number are to be settled.
    EndKind {
        number: u64,
        at: u64,
    },
    /// Those from this job, with HOLD, are to be marked, or no more so.
    Mark {
        id: Bytes,
        is_dead: bool,
    },
    Nothing,
}

/// How much is carried out by an operation, and in a slice.
pub const BUDGET: SettleBudget = SettleBudget { of_operation: 24, of_slice: 11 };
const EDGES_A_JOB: u32 = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Run,
}

impl Waits {
    pub fn are_for_any(&self) -> bool {
        self.is_on_hold || self.edges.iter().any(Edge::waits)
    }
}

impl Edge {
    fn new(from: Bytes, ending: Option<(EndKind, Option<Bytes>)>) -> Edge {
        Edge { from, ending, pending: None, is_marked: false }
    }

    fn waits(&self) -> bool {
        self.ending.is_none() || self.pending.is_some()
    }

    fn is_open_from(&self, id: &[u8]) -> bool {
        self.from == id && self.ending.is_none()
    }
}

impl Job {
    pub fn edges(&self) -> &[Edge] {
        self.waits.as_ref().map_or(&[], |waits| &waits.edges)
    }

    pub fn is_on_hold(&self) -> bool {
        self.waits.as_ref().is_some_and(|waits| waits.is_on_hold)
    }

    pub fn pending(&self) -> usize {
        self.edges().iter().filter(|edge| edge.waits()).count()
    }

    pub fn waits_for(&self, id: &[u8]) -> bool {
        self.edges().iter().any(|edge| edge.is_open_from(id))
    }

    fn can_go(&self) -> bool {
        self.stage == Stage::Held && !self.waits.as_ref().is_some_and(Waits::are_for_any)
    }

    /// It waits for nothing any more. What it has got, it keeps.
    pub fn drop_open_edges(&mut self) {
        if let Some(waits) = &mut self.waits {
            waits.edges.retain(|edge| edge.ending.is_some());
            waits.edges.iter_mut().for_each(|edge| edge.pending = None);
            waits.is_on_hold = false;
        }
    }
}

impl Reference {
    pub fn dependents(&self, id: &[u8]) -> usize {
        self.jobs.iter().filter(|job| job.waits_for(id)).count()
    }

    /// A job that others wait for stays one that ends, and waits for none.
    pub fn check_replaced(&self, id: &Bytes, add: &Add) -> Result<(), Outcome> {
        let waits = add.edges.as_ref().is_some_and(|edges| !edges.after.is_empty());
        let is_waited_for = self.dependents(id) > 0;
        if (waits || add.schedule.is_some()) && is_waited_for {
            return Err(Outcome::Unconnected(EdgeFault::HasDependents(id[..].into())));
        }
        Ok(())
    }

    /// What a job waits for that is added under this id. An error, where an edge can't be.
    pub fn waits_of_new(&self, now: u64, id: &Bytes, add: &Add) -> Result<Option<Waits>, Outcome> {
        let Some(edges) = &add.edges else {
            return Ok(None);
        };
        self.check_replaced(id, add)?;
        let other = |named: &Bytes| self.get(named).filter(|job| !job.is_over(now) && named != id);
        let mut waits = Waits {
            edges: Vec::new(),
            on_dead: edges.on_dead,
            is_on_hold: edges.is_on_hold,
            due: add.due,
            due_from: 0,
        };
        for named in &edges.after {
            let refused =
                |fault: fn(Box<[u8]>) -> EdgeFault| Outcome::Unconnected(fault(named[..].into()));
            let job = other(named).ok_or_else(|| refused(EdgeFault::NoJob))?;
            if job.round.is_some() {
                return Err(refused(EdgeFault::HasSchedule));
            }
            let ending = match job.state(now) {
                State::Done => Some((EndKind::Done, job.result.clone())),
                State::Dead if edges.on_dead == OnDead::Run => {
                    Some((EndKind::Dead, job.reason_of_death(now)))
                }
                _ => None,
            };
            waits.edges.push(Edge::new(named.clone(), ending));
        }
        for named in &edges.before {
            if other(named).is_none_or(|job| job.state(now) != State::Held) {
                return Err(Outcome::Unconnected(EdgeFault::NotHeld(named[..].into())));
            }
        }
        Ok((!edges.after.is_empty() || edges.is_on_hold).then_some(waits))
    }

    /// The job is there.
    pub fn connect(&mut self, now: u64, id: &Bytes, edges: &Edges) {
        edges.after.iter().for_each(|from| self.record_life(now, from));
        for named in &edges.before {
            let place = self.jobs.iter().position(|job| job.id == *named).unwrap();
            if !self.jobs[place].waits_for(id) {
                let is_marked = self.is_before_a_marked_one(place, id);
                let edges = &mut self.jobs[place].waits.as_mut().unwrap().edges;
                edges.push(Edge { is_marked, ..Edge::new(id.clone(), None) });
            }
        }
        if !edges.before.is_empty() {
            self.record_life(now, id);
        }
    }

    /// The marked edges are the first.
    fn is_before_a_marked_one(&self, place: usize, from: &Bytes) -> bool {
        let is_hold = |job: &&Job| job.waits.as_ref().is_some_and(|it| it.on_dead == OnDead::Hold);
        let behind = self.jobs[place + 1..].iter().filter(is_hold).flat_map(Job::edges);
        let is_any = behind.into_iter().any(|edge| edge.is_open_from(from) && edge.is_marked);
        is_any && is_hold(&&self.jobs[place])
    }

    /// If others wait for it, and it has died by now, of which the log doesn't know: it does so
    /// from here on.
    pub fn record_death_by(&mut self, now: u64, id: &Bytes) {
        let is_dead =
            |job: &Job| !job.is_known_dead && job.death().is_some_and(|death| death <= now);
        if self.get(id).is_some_and(is_dead) && self.dependents(id) > 0 {
            self.record_life(now, id);
        }
    }

    /// The log knows whether the job is dead; if so, those go on that need no more of it.
    pub fn record_life(&mut self, now: u64, id: &Bytes) {
        let is_any = self.dependents(id) > 0;
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == *id) else {
            return;
        };
        let is_dead = job.state(now) == State::Dead;
        job.is_known_dead = is_dead;
        if !is_any {
            return;
        }
        if is_dead {
            let (reason, death) = (job.reason_of_death(now), job.death().unwrap());
            self.end_edges(id, Which::Run, (EndKind::Dead, reason), death);
        }
        let of_it =
            |pending: &&mut Pending| matches!(pending, Pending::Mark { id: it, .. } if it == id);
        if let Some(pending) = self.pending.iter_mut().find(of_it) {
            *pending = Pending::Mark { id: id.clone(), is_dead };
        } else if self.marks_of(id).any(|is_marked| is_marked != is_dead) {
            self.pending.push(Pending::Mark { id: id.clone(), is_dead });
        }
    }

    /// Of the edges from this job to those with HOLD, whether each is marked.
    fn marks_of<'r>(&'r self, id: &'r Bytes) -> impl Iterator<Item = bool> + 'r {
        let is_hold = |job: &&Job| job.waits.as_ref().is_some_and(|it| it.on_dead == OnDead::Hold);
        let edges = self.jobs.iter().filter(is_hold).flat_map(Job::edges);
        edges.filter(|edge| edge.is_open_from(id)).map(|edge| edge.is_marked)
    }

    /// The edges from this job are to be settled.
    fn end_edges(&mut self, from: &Bytes, which: Which, ending: (EndKind, Option<Bytes>), at: u64) {
        let (number, mut is_any) = (self.next_event() as u64, false);
        for waits in self.jobs.iter_mut().filter_map(|job| job.waits.as_mut()) {
            let ends = which == Which::All || waits.on_dead == OnDead::Run;
            for edge in waits.edges.iter_mut().filter(|edge| ends && edge.is_open_from(from)) {
                (edge.ending, edge.pending, is_any) = (Some(ending.clone()), Some(number), true);
            }
        }
        if which == Which::All {
            for pending in &mut self.pending {
                if matches!(pending, Pending::Mark { id, .. } if id == from) {
                    *pending = Pending::Nothing;
                }
            }
        }
        self.pending.extend(is_any.then_some(Pending::EndKind { number, at }));
    }

    pub fn settle_as_done(&mut self, now: u64, from: &Bytes, result: Option<&Bytes>) {
        self.record_death_by(now, from);
        self.end_edges(from, Which::All, (EndKind::Done, result.cloned()), now);
    }

    pub fn settle_as_gone(&mut self, now: u64, from: &Bytes) {
        self.record_death_by(now, from);
        self.end_edges(from, Which::All, (EndKind::Gone, None), now);
    }

    /// Carries out as much of what is pending.
    fn carry_out(&mut self, now: u64, budget: u32) {
        let mut done = 0;
        while done < budget && !self.pending.is_empty() {
            done += self.step(now);
        }
    }

    /// Settles or marks one edge, or takes away what stands first and is done with. How much work
    /// that was.
    fn step(&mut self, now: u64) -> u32 {
        let is_done = match self.pending[0].clone() {
            Pending::Nothing => true,
            Pending::Mark { id, is_dead } => !self.mark_one(&id, is_dead),
            Pending::EndKind { number, at } => {
                let is_it = |edge: &Edge| edge.pending == Some(number);
                match self.jobs.iter().position(|job| job.edges().iter().any(is_it)) {
                    Some(place) => return self.settle(now, place, number, at),
                    None => true,
                }
            }
        };
        if is_done {
            self.pending.remove(0);
        }
        1
    }

    fn mark_one(&mut self, id: &Bytes, is_dead: bool) -> bool {
        let marks: Vec<bool> = self.marks_of(id).collect();
        let place = match is_dead {
            true => marks.iter().position(|is_marked| !is_marked),
            false => marks.iter().rposition(|is_marked| *is_marked),
        };
        let Some(place) = place else {
            return false;
        };
        let waits = self.jobs.iter_mut().filter_map(|job| job.waits.as_mut());
        let edges = waits.filter(|it| it.on_dead == OnDead::Hold).flat_map(|it| &mut it.edges);
        let edge = edges.filter(|edge| edge.is_open_from(id)).nth(place);
        edge.unwrap().is_marked = is_dead;
        true
    }

    fn settle(&mut self, now: u64, place: usize, number: u64, at: u64) -> u32 {
        let job = &mut self.jobs[place];
        let (id, waits) = (job.id.clone(), job.waits.as_mut().unwrap());
        waits.due_from = waits.due_from.max(at);
        let on_dead = waits.on_dead;
        let edge = waits.edges.iter_mut().find(|edge| edge.pending == Some(number)).unwrap();
        (edge.pending, edge.is_marked) = (None, false);
        let is_gone = edge.ending.as_ref().unwrap().0 == EndKind::Gone;
        let from = edge.from.clone();
        let is_orphan = is_gone && on_dead == OnDead::Hold && job.stage == Stage::Held;
        if is_orphan && job.state(at) == State::Held {
            let reason = [b"job '", &from[..], b"' that it waits for was removed"].concat();
            self.die_of_it(now, at, place, &reason);
        } else if self.jobs[place].can_go() {
            self.free_held(now, &id);
        } else if !is_orphan {
            return 1;
        }
        EDGES_A_JOB
    }

    fn die_of_it(&mut self, now: u64, at: u64, place: usize, reason: &Bytes) {
        self.totals.died += u64::from(self.jobs[place].state(self.horizon) != State::Dead);
        let id = self.jobs[place].id.clone();
        self.record_death_by(now, &id);
        self.end(place, Stage::Dead, at);
        self.give_reason(place, Some(reason));
        self.record_life(now, &id);
    }

    fn free_held(&mut self, now: u64, id: &Bytes) {
        let Some(place) = self.jobs.iter().position(|job| job.id == *id) else {
            return;
        };
        let waits = self.jobs[place].waits.as_ref().unwrap();
        let due = waits.due.counted_from(waits.due_from);
        let was_dead = self.jobs[place].state(self.horizon) == State::Dead;
        self.record_death_by(now, id);
        self.wait(place, due);
        let is_dead = self.jobs[place].state(self.horizon) == State::Dead;
        self.totals.died += u64::from(is_dead && !was_dead);
    }

    pub fn resume_job(&mut self, now: u64, id: &Bytes) -> bool {
        let is_it = |job: &&mut Job| job.id == *id && job.state(now) == State::Held;
        let Some(job) = self.jobs.iter_mut().find(is_it).filter(|job| job.is_on_hold()) else {
            return false;
        };
        let waits = job.waits.as_mut().unwrap();
        (waits.is_on_hold, waits.due_from) = (false, waits.due_from.max(now));
        self.released.extend(job.can_go().then(|| id.clone()));
        true
    }

    /// The log says that these have died by now.
    pub fn settle_deaths(&mut self, now: u64, ids: &[Bytes]) -> Outcome {
        let is_dead = |id: &&Bytes| self.get(id).is_some_and(|job| job.state(now) == State::Dead);
        let dead: Vec<&Bytes> = ids.iter().filter(is_dead).collect();
        dead.iter().for_each(|id| self.record_life(now, id));
        Outcome::Jobs(dead.len().max(usize::from(!self.pending.is_empty())))
    }

    /// Jobs that others wait for, of whose death by time the log doesn't know; and when that is.
    pub fn unsettled(&self) -> impl Iterator<Item = (&Bytes, u64)> {
        let unknown = self.jobs.iter().filter(|job| !job.is_known_dead);
        let waited_for = unknown.filter(|job| self.dependents(&job.id) > 0);
        waited_for.filter_map(|job| Some((&job.id, job.death()?)))
    }

    pub fn settles_at(&self) -> Option<u64> {
        if !self.pending.is_empty() {
            return Some(0);
        }
        self.unsettled().map(|(_, death)| death).min()
    }

    /// At the end of a change: those that a command has let go are due, and a part of what is
    /// pending is carried out.
    pub fn end_change(&mut self, now: u64, budget: u32) {
        while !self.released.is_empty() {
            let id = self.released.remove(0);
            if self.get(&id).is_some_and(Job::can_go) {
                self.free_held(now, &id);
            }
        }
        self.carry_out(now, budget);
    }

    /// Held jobs that wait for one of whose death the log knows.
    pub fn held_behind_dead(&self) -> usize {
        let held = self.jobs.iter().filter(|job| job.stage == Stage::Held);
        held.filter(|job| job.edges().iter().any(|edge| edge.is_marked)).count()
    }
}
