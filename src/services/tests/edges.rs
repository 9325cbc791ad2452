//! The account's edges: which jobs wait for others. They go by ids, as clients name them, and share
//! no code with the queue.

use super::account::{mark_dead, Account, Job, Stage, State};
use super::operation::{Bytes, NewJob};

/// How a predecessor ended; of one that is done, its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Done(Option<Bytes>),
    Dead,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: Bytes,
    /// None: it is open.
    pub end: Option<End>,
}

/// The ids that a new job waits for, and those of held jobs that wait for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewEdges {
    pub after: Vec<Bytes>,
    pub before: Vec<Bytes>,
    pub is_on_hold: bool,
    /// ONDEAD RUN.
    pub runs: bool,
}

impl Edge {
    pub fn is_open_from(&self, id: &[u8]) -> bool {
        self.end.is_none() && self.from == id
    }
}

impl Job {
    pub fn waits_for(&self, id: &[u8]) -> bool {
        self.edges.iter().any(|edge| edge.is_open_from(id))
    }

    pub fn waits(&self) -> bool {
        self.is_on_hold || self.edges.iter().any(|edge| edge.end.is_none())
    }

    /// It waits for nothing any more, and keeps what it has got.
    pub fn drop_open_edges(&mut self) {
        self.is_on_hold = false;
        self.edges.retain(|edge| edge.end.is_some());
    }
}

impl Account {
    pub fn is_waited_for(&self, id: &[u8]) -> bool {
        self.jobs.iter().any(|job| job.waits_for(id))
    }

    /// What a new job waits for; none if that can't be.
    pub fn edges_of(&self, now: u64, new: &NewJob) -> Option<Vec<Edge>> {
        let NewEdges { after, before, runs, .. } = &new.edges;
        let may_be_waited_for =
            self.is_waited_for(&new.id) || self.once_waited_for.contains(&new.id);
        if !after.is_empty() && may_be_waited_for {
            return None;
        }
        let is_over = |job: &Job| job.stage == Stage::Done && job.time <= now;
        let other = |id: &Bytes| self.job(id).filter(|job| job.new.id != new.id && !is_over(job));
        if !before.iter().all(|id| other(id).is_some_and(|job| job.state(now) == State::Held)) {
            return None;
        }
        let edge = |from: &Bytes| {
            let job = other(from)?;
            let end = match job.state(now) {
                State::Done => Some(End::Done(job.result.clone())),
                State::Dead if *runs => Some(End::Dead),
                State::Delayed | State::Ready | State::Reserved | State::Dead | State::Held => None,
            };
            Some(Edge { from: from.clone(), end })
        };
        after.iter().map(edge).collect()
    }

    /// The job has been added.
    pub fn connect(&mut self, now: u64, new: &NewJob) {
        for id in &new.edges.before {
            let job = self.jobs.iter_mut().find(|job| job.new.id == *id).unwrap();
            if !job.waits_for(&new.id) {
                job.edges.push(Edge { from: new.id.clone(), end: None });
            }
        }
        new.edges.after.iter().for_each(|id| self.record_life(now, id));
    }

    /// The edges from this job are settled, of those jobs for which that is so.
    fn settle(&mut self, at: u64, from: &[u8], end: &End, is_so: impl Fn(&Job) -> bool) {
        for job in self.jobs.iter_mut().filter(|job| is_so(job)) {
            let edge = job.edges.iter_mut().find(|edge| edge.is_open_from(from));
            if let Some(edge) = edge {
                edge.end = Some(end.clone());
                job.due_from = job.due_from.max(at);
                let is_orphan = *end == End::Gone && !job.new.edges.runs;
                let becomes = match job.stage == Stage::Held {
                    true if is_orphan && job.state(at) == State::Held => Some(Stage::Dead),
                    true if !job.waits() => Some(Stage::Waiting),
                    true | false => None,
                };
                self.freed.extend(becomes.map(|stage| (job.new.id.clone(), stage)));
            }
        }
    }

    pub fn settle_as_done(&mut self, now: u64, from: &[u8], result: Option<Bytes>) {
        self.settle(now, from, &End::Done(result), |_| true);
    }

    /// Those that wait in vain then die at the end of the operation.
    pub fn settle_as_gone(&mut self, now: u64, from: &[u8]) {
        self.settle(now, from, &End::Gone, |_| true);
    }

    /// What is known of its death in the log; where it is, its dependents with RUN need it no more.
    pub fn record_life(&mut self, now: u64, id: &[u8]) {
        let Some(job) = self.jobs.iter_mut().find(|job| job.new.id == id) else {
            return;
        };
        job.is_known_dead = job.state(now) == State::Dead;
        if job.is_known_dead {
            let death = job.death().unwrap_or(now);
            self.settle(death, id, &End::Dead, |job| job.new.edges.runs);
        }
    }

    /// An operation on a job whose last lease has run out notes the death first, for those that wait
    /// for the job: what was on its way to a client that has gone comes back without a SETTLE before.
    pub fn record_death(&mut self, now: u64, id: &[u8]) {
        if self.job(id).is_some_and(|job| job.state(now) == State::Dead) {
            self.record_life(now, id);
        }
    }

    /// Of those that have another place since it was looked last.
    pub fn record_lives(&mut self, now: u64) {
        let moved = self.jobs.iter().filter(|job| job.place().1 > self.noted);
        let moved: Vec<Bytes> = moved.map(|job| job.new.id.clone()).collect();
        self.noted = self.next_event();
        moved.iter().for_each(|id| self.record_life(now, id));
    }

    /// Those that wait for nothing any more are due, and those that wait in vain die, in the order in
    /// which that came to be so. An operation does this at its end: until then they are held. So a
    /// DEL of a job and of one that waits for it removes the second before it dies of the first.
    pub fn release_the_freed(&mut self, now: u64) {
        self.record_lives(now);
        while !self.freed.is_empty() {
            let ((id, becomes), order) = (self.freed.remove(0), self.next_event());
            let is_it = |job: &&mut Job| job.new.id == id && job.stage == Stage::Held;
            match self.jobs.iter_mut().find(is_it) {
                Some(job) if becomes == Stage::Dead => mark_dead(job, now, order),
                Some(job) if !job.waits() => {
                    job.wait_from(job.new.due.counted_from(job.due_from), order);
                }
                Some(_) | None => (),
            }
            self.record_lives(now);
        }
    }

    pub fn end_hold(&mut self, now: u64, id: &[u8]) -> bool {
        let is_it = |job: &&mut Job| job.new.id == id && job.state(now) == State::Held;
        let Some(job) = self.jobs.iter_mut().find(is_it).filter(|job| job.is_on_hold) else {
            return false;
        };
        job.is_on_hold = false;
        job.due_from = job.due_from.max(now);
        let is_free = !job.waits();
        self.freed.extend(is_free.then(|| (id.to_vec(), Stage::Waiting)));
        true
    }

    /// The log says that this job has died by now. False where that is no news for anybody.
    pub fn settle_death(&mut self, now: u64, id: &[u8]) -> bool {
        let is_news = self.deaths_to_settle().any(|(job, at)| job.new.id == id && at <= now);
        self.record_life(now, id);
        is_news
    }

    /// Jobs of whose death others have to hear, and when they die.
    pub fn deaths_to_settle(&self) -> impl Iterator<Item = (&Job, u64)> {
        let unknown = self.jobs.iter().filter(|job| !job.is_known_dead);
        let waited_for = unknown.filter(|job| self.is_waited_for(&job.new.id));
        waited_for.filter_map(|job| Some((job, job.death()?)))
    }
}
