//! A chain of jobs that wait for each other: what the last of them waits for in the end, and how many
//! wait for that. The server tells of one job what it waits for; the rest is found by asking on, within
//! bounds.

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

use redis::Pipeline;

use super::deployment::outcome;
use super::deps::{Dep, Deps};
use super::jobs::{Place, SEEK_WITHIN};
use super::queue::State;
use super::Result;

/// How often the server is asked to follow a chain: each time it tells some edges of one job.
const STEPS: usize = 100;
/// Held jobs that are asked what they wait for, to count those behind another.
const HELD: usize = 500;

/// What a held job waits for in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    pub dep: Dep,
    /// How many jobs are between the two.
    pub between: usize,
}

/// How many held jobs wait for a job, straight or through others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    pub jobs: u64,
    /// Whether all held jobs of the queue were asked, and told all of their edges.
    pub is_whole: bool,
}

impl Place<'_> {
    /// The dead job that a held one waits for in the end, or else the first that isn't held itself.
    pub async fn root(&self, id: &[u8]) -> Result<Option<Root>> {
        let mut seen: HashSet<Vec<u8>> = HashSet::from([id.to_vec()]);
        let mut left = VecDeque::from([(id.to_vec(), 0, 0)]);
        let (mut other, began) = (None, Instant::now());
        for _ in 0..STEPS {
            let Some((id, between, from)) = left.pop_front() else { break };
            let deps = Deps::read(self.ask(Deps::command(self.queue, &id, from)).await?)?;
            left.extend(deps.next.map(|next| (id, between, next)));
            for dep in deps.found {
                match State::named(dep.state.as_bytes()) {
                    Some(State::Dead) => return Ok(Some(Root { dep, between })),
                    Some(State::Held) if seen.insert(dep.id.clone()) => {
                        left.push_back((dep.id, between + 1, 0));
                    }
                    Some(State::Held | State::Done) | None => {}
                    Some(State::Ready | State::Delayed | State::Reserved) => {
                        other.get_or_insert(Root { dep, between });
                    }
                }
            }
            if began.elapsed() > SEEK_WITHIN {
                break;
            }
        }
        Ok(other)
    }

    /// How many of the queue's first [`HELD`] held jobs wait for a job.
    pub async fn behind(&self, id: &[u8]) -> Result<Behind> {
        let held = self.peek_at_most(State::Held, &super::jobs::Begin::First, self.few()).await?;
        let mut commands = Pipeline::new();
        held.jobs.iter().for_each(|job| {
            commands.add_command(Deps::command(self.queue, &job.id, 0));
        });
        let mut waiting: HashMap<Vec<u8>, Vec<Vec<u8>>> = HashMap::new();
        let mut is_whole = held.next.is_none();
        if !held.jobs.is_empty() {
            let (_, replies) = self.deployment.ask(self.node.clone(), &mut commands).await?;
            for (job, reply) in held.jobs.iter().zip(replies) {
                let deps = Deps::read(outcome(Some(reply))?)?;
                is_whole &= deps.next.is_none();
                for dep in deps.found {
                    waiting.entry(dep.id).or_default().push(job.id.clone());
                }
            }
        }
        Ok(Behind { jobs: reached(&waiting, id), is_whole })
    }

    fn few(&self) -> usize {
        HELD.min(super::jobs::reach(self.info))
    }
}

/// How many jobs wait for one, by what waits for each.
fn reached(waiting: &HashMap<Vec<u8>, Vec<Vec<u8>>>, id: &[u8]) -> u64 {
    let (mut seen, mut left) = (HashSet::new(), vec![id]);
    while let Some(id) = left.pop() {
        for next in waiting.get(id).into_iter().flatten() {
            if seen.insert(next.as_slice()) {
                left.push(next);
            }
        }
    }
    seen.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_behind_another_counts_once() {
        let edges = [("a", vec!["b", "c"]), ("b", vec!["d"]), ("c", vec!["d"]), ("x", vec!["y"])];
        let bytes = |text: &str| text.as_bytes().to_vec();
        let waiting = edges
            .into_iter()
            .map(|(id, behind)| (bytes(id), behind.into_iter().map(bytes).collect()));
        let waiting = waiting.collect();
        assert_eq!([reached(&waiting, b"a"), reached(&waiting, b"b")], [3, 1]);
        assert_eq!([reached(&waiting, b"d"), reached(&waiting, b"none")], [0, 0]);
    }
}
