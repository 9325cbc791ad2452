//! The rows of the table: what is asked of each contestant, and what is measured.

mod due_at_once;
mod lateness;
mod memory;
mod persistence;
mod pings;
pub mod sent;
mod throughput;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::contestants::{Contestant, Log, Programs};
use super::machine::Usage;
use super::session::{Load, Session};

/// How much of everything: the full measurement, or a quick one.
pub struct Scale {
    pub rounds: usize,
    /// Jobs of one sample of throughput; slow contestants are stopped after `at_most`.
    pub jobs: usize,
    pub at_most: Duration,
    pub due_at_once: usize,
    pub lateness_jobs: usize,
    /// Jobs that lie in memory, and are saved and loaded.
    pub stored: usize,
    pub connections: usize,
    pub depth: usize,
}

pub struct Environment {
    pub programs: Programs,
    pub scale: Scale,
}

/// By name, as JSON has them.
pub type Metrics = BTreeMap<String, f64>;

pub struct Sample {
    pub metrics: Metrics,
    /// None where other load does no harm: a count of bytes.
    pub usage: Option<Usage>,
}

pub trait Row {
    /// As JSON and `--only` name it.
    fn name(&self) -> &'static str;

    fn takes_part(&self, contestant: Contestant) -> bool;

    fn logs(&self) -> &'static [Log] {
        &[Log::None, Log::EverySecond]
    }

    /// How many times it is sampled, given how many rounds there are.
    fn rounds(&self, rounds: usize) -> usize {
        rounds
    }

    /// The metrics that are told as multiples of SET's.
    fn ratios(&self) -> &'static [&'static str] {
        &[]
    }

    fn sample(&self, environment: &Environment, contestant: Contestant, log: Log)
        -> Result<Sample>;
}

pub fn all() -> Vec<Box<dyn Row>> {
    let mut rows: Vec<Box<dyn Row>> = vec![
        Box::new(throughput::Throughput { name: "enqueue", load: Load::Enqueue }),
        Box::new(throughput::Throughput { name: "delayed", load: Load::Delayed }),
        Box::new(throughput::Throughput { name: "life", load: Load::Life }),
        Box::new(throughput::Throughput { name: "batches", load: Load::Batches }),
        Box::new(due_at_once::DueAtOnce),
        Box::new(lateness::Lateness),
        Box::new(memory::Memory),
        Box::new(persistence::Persistence),
    ];
    rows.extend(sent::ALL.map(|sent| Box::new(sent) as Box<dyn Row>));
    rows
}

impl Environment {
    /// For all connections; of those whose client isn't a program of its own.
    fn sessions(&self, contestant: Contestant, load: Load) -> Result<Vec<Session>> {
        let next_id = Rc::new(Cell::new(0));
        let session = |_| {
            let verbs = contestant.verbs().context("its client is a program of its own")?;
            Ok(Session::new(verbs, load, self.scale.depth, Rc::clone(&next_id)))
        };
        (0..self.scale.connections).map(session).collect()
    }

    /// The same, which together add no more than so many jobs, a multiple of the depth.
    fn bounded_sessions(
        &self,
        contestant: Contestant,
        load: Load,
        jobs: usize,
    ) -> Result<Vec<Session>> {
        let mut sessions = self.sessions(contestant, load)?;
        sessions.iter_mut().for_each(|session| session.add_at_most(jobs as u64));
        Ok(sessions)
    }

    fn rounded_up(&self, jobs: usize) -> usize {
        jobs.next_multiple_of(self.scale.depth)
    }
}

fn metrics<const N: usize>(values: [(&str, f64); N]) -> Metrics {
    values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
