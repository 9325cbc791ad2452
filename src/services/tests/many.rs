//! Jobs that are added in one step, and dead jobs that come back one after the other: as clients say
//! it, and in the world's account.

use fastrand::Rng;

use crate::queue::{self, Add, AddMany, AddedMany, IfTaken, OneOfMany};

use super::account::Account;
use super::operation::{id, ms, Bytes, Due, NewJob, Outcome};

/// DQ.MADD.
#[derive(Clone, Debug, PartialEq)]
pub struct ManyJobs {
    /// What is said of all of them; its id and its body count for nothing.
    pub like: NewJob,
    /// Id and body of each.
    pub jobs: Vec<(Bytes, Bytes)>,
    pub times: Times,
    /// NX.
    pub leaves_taken: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Times {
    Same,
    Delays(Vec<u64>),
    Ats(Vec<u64>),
    Spread(u64),
}

impl Times {
    /// Of so many jobs, at this time.
    pub fn draw(rng: &mut Rng, jobs: usize, now: u64) -> Times {
        match rng.u32(..5) {
            0 => Times::Same,
            1 => Times::Delays((0..jobs).map(|_| rng.u64(..3) * rng.u64(..60)).collect()),
            2 => Times::Ats((0..jobs).map(|_| (now + rng.u64(..90)).saturating_sub(30)).collect()),
            _ => Times::Spread(rng.u64(..200)),
        }
    }
}

impl ManyJobs {
    pub fn operation(&self) -> AddMany<'_> {
        let like = self.like.operation();
        let if_taken = if self.leaves_taken { IfTaken::Leave } else { like.if_taken };
        let jobs = self.jobs.iter().map(|(name, body)| OneOfMany { id: Some(id(name)), body });
        let times = match &self.times {
            Times::Same => queue::Times::Same,
            Times::Delays(all) => each(all, Due::In),
            Times::Ats(all) => each(all, Due::At),
            Times::Spread(span) => queue::Times::SpreadOver(ms(*span)),
        };
        AddMany { like: Add { if_taken, ..like }, jobs: jobs.collect(), times }
    }

    pub fn outcome(&self, added: &AddedMany) -> Outcome {
        match added {
            AddedMany::Refused { position, .. } => Outcome::RefusedAt(*position),
            AddedMany::Yes(slots) => {
                let all = slots.iter().zip(&self.jobs);
                Outcome::Added(all.map(|(slot, (id, _))| slot.map(|_| id.clone())).collect())
            }
        }
    }

    /// The job at this place, from 0, as if it were said alone.
    fn one(&self, at: usize, now: u64) -> NewJob {
        let (id, body) = self.jobs[at].clone();
        let due = match &self.times {
            Times::Same => self.like.due,
            Times::Delays(all) => Due::In(all[at]),
            Times::Ats(all) => Due::At(all[at]),
            Times::Spread(span) => {
                let behind = share(*span, at, self.jobs.len());
                match self.like.due {
                    Due::In(delay) => Due::In(delay + behind),
                    Due::At(_) => Due::At(self.like.due.counted_from(now) + behind),
                }
            }
        };
        NewJob { id, body, due, ..self.like.clone() }
    }
}

fn each(all: &[u64], due: impl Fn(u64) -> Due) -> queue::Times {
    queue::Times::Each(all.iter().map(|ms| due(*ms).operation()).collect())
}

fn share(span: u64, at: usize, jobs: usize) -> u64 {
    span * at as u64 / jobs as u64
}

impl Account {
    /// One after the other; none, if one of them can't be added.
    pub fn add_many(&mut self, now: u64, many: &ManyJobs) -> Outcome {
        let (mut after, mut added) = (self.clone(), Vec::new());
        for (at, (id, _)) in many.jobs.iter().enumerate() {
            let is_given_twice = many.jobs[..at].iter().any(|(earlier, _)| earlier == id);
            let is_left = !is_given_twice && many.leaves_taken && after.is_taken(now, id);
            if !is_left && (is_given_twice || !after.add(now, &many.one(at, now))) {
                return Outcome::RefusedAt(at);
            }
            added.push((!is_left).then(|| id.clone()));
        }
        *self = after;
        Outcome::Added(added)
    }

    pub fn kick_spread(&mut self, now: u64, ids: &[Bytes], span: u64) -> Outcome {
        let all: Vec<(usize, &Bytes)> = ids.iter().enumerate().collect();
        self.each(now, &all, |account, (at, id)| {
            account.kick(now, id, now + share(span, *at, ids.len()))
        })
    }
}
