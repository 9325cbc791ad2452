//! Jobs of the reference that wait for others. An edge goes by ids: whatever job has the id of the
//! predecessor is the one that is waited for.

use dq::queue::{EdgeFault, End, OnDead, State};

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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Bytes,
    /// How the predecessor ended, and its result or reason. None: the edge is open.
    pub ending: Option<(End, Option<Bytes>)>,
}

impl Waits {
    pub fn are_for_any(&self) -> bool {
        self.is_on_hold || self.edges.iter().any(|edge| edge.ending.is_none())
    }
}

impl Edge {
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
        self.edges().iter().filter(|edge| edge.ending.is_none()).count()
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
        };
        for named in &edges.after {
            let refused =
                |fault: fn(Box<[u8]>) -> EdgeFault| Outcome::Unconnected(fault(named[..].into()));
            let job = other(named).ok_or_else(|| refused(EdgeFault::NoJob))?;
            if job.round.is_some() {
                return Err(refused(EdgeFault::HasSchedule));
            }
            let ending = match job.state(now) {
                State::Done => Some((End::Done, job.result.clone())),
                State::Dead if edges.on_dead == OnDead::Run => {
                    Some((End::Dead, job.reason_of_death(now)))
                }
                _ => None,
            };
            waits.edges.push(Edge { from: named.clone(), ending });
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
        edges.after.iter().for_each(|from| self.note_life(now, from));
        for named in &edges.before {
            let job = self.jobs.iter_mut().find(|job| job.id == *named).unwrap();
            if !job.waits_for(id) {
                let edges = &mut job.waits.as_mut().unwrap().edges;
                edges.push(Edge { from: id.clone(), ending: None });
            }
        }
    }

    /// The log knows whether the job is dead; if so, those go on that need no more of it.
    pub fn note_life(&mut self, now: u64, id: &Bytes) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.id == *id) else {
            return;
        };
        job.is_known_dead = job.state(now) == State::Dead;
        if job.is_known_dead {
            let reason = job.reason_of_death(now);
            self.settle(id, &[OnDead::Run], (End::Dead, reason));
        }
    }

    /// Settles the edges from this job to those that say so; to which ones.
    fn settle(
        &mut self,
        from: &Bytes,
        whose: &[OnDead],
        ending: (End, Option<Bytes>),
    ) -> Vec<Bytes> {
        let mut settled = Vec::new();
        for job in &mut self.jobs {
            let waits = job.waits.as_mut().filter(|waits| whose.contains(&waits.on_dead));
            let edge =
                waits.and_then(|waits| waits.edges.iter_mut().find(|edge| edge.is_open_from(from)));
            if let Some(edge) = edge {
                edge.ending = Some(ending.clone());
                settled.push(job.id.clone());
                self.released.extend(job.can_go().then(|| job.id.clone()));
            }
        }
        settled
    }

    pub fn settle_as_done(&mut self, from: &Bytes, result: Option<&Bytes>) {
        self.settle(from, &[OnDead::Hold, OnDead::Run], (End::Done, result.cloned()));
    }

    /// What can't come is waited for by nobody.
    pub fn settle_as_gone(&mut self, now: u64, from: &Bytes) {
        let settled = self.settle(from, &[OnDead::Hold, OnDead::Run], (End::Gone, None));
        let reason = [b"job '", &from[..], b"' that it waits for was removed"].concat();
        for id in settled {
            let place = self.jobs.iter().position(|job| job.id == id).unwrap();
            let job = &self.jobs[place];
            let on_dead = job.waits.as_ref().unwrap().on_dead;
            if on_dead == OnDead::Hold && job.state(now) == State::Held {
                self.mark_dead(now, place, Some(&reason));
            }
        }
    }

    pub fn resume_job(&mut self, now: u64, id: &Bytes) -> bool {
        let is_it = |job: &&mut Job| job.id == *id && job.state(now) == State::Held;
        let Some(job) = self.jobs.iter_mut().find(is_it).filter(|job| job.is_on_hold()) else {
            return false;
        };
        job.waits.as_mut().unwrap().is_on_hold = false;
        self.released.extend(job.can_go().then(|| id.clone()));
        true
    }

    /// The log says that these have died by now.
    pub fn settle_deaths(&mut self, now: u64, ids: &[Bytes]) -> Outcome {
        let is_dead = |id: &&Bytes| self.get(id).is_some_and(|job| job.state(now) == State::Dead);
        let dead: Vec<&Bytes> = ids.iter().filter(is_dead).collect();
        dead.iter().for_each(|id| self.note_life(now, id));
        Outcome::Jobs(dead.len())
    }

    /// Jobs that others wait for, of whose death by time the log doesn't know; and when that is.
    pub fn unsettled(&self) -> impl Iterator<Item = (&Bytes, u64)> {
        let unknown = self.jobs.iter().filter(|job| !job.is_known_dead);
        let waited_for = unknown.filter(|job| self.dependents(&job.id) > 0);
        waited_for.filter_map(|job| Some((&job.id, job.death()?)))
    }

    pub fn settles_at(&self) -> Option<u64> {
        self.unsettled().map(|(_, death)| death).min()
    }

    /// Of what was done in this change: those that have another place since this event are looked
    /// at, and those that wait for nothing any more are due.
    pub fn end_change(&mut self, now: u64, since: i64) {
        let moved = self.jobs.iter().filter(|job| job.order > since);
        let moved: Vec<Bytes> = moved.map(|job| job.id.clone()).collect();
        moved.iter().for_each(|id| self.note_life(now, id));
        while !self.released.is_empty() {
            let id = self.released.remove(0);
            let can_go = |job: &Job| job.id == id && job.can_go();
            if let Some(place) = self.jobs.iter().position(can_go) {
                let due = self.jobs[place].waits.as_ref().unwrap().due;
                self.wait(place, due.counted_from(now));
                self.note_life(now, &id);
            }
        }
    }

    /// Held jobs that wait for one of whose death the log knows.
    pub fn held_behind_dead(&self) -> usize {
        let is_dead = |edge: &Edge| {
            edge.ending.is_none() && self.get(&edge.from).is_some_and(|job| job.is_known_dead)
        };
        let held = self.jobs.iter().filter(|job| job.stage == Stage::Held);
        held.filter(|job| job.edges().iter().any(is_dead)).count()
    }
}
