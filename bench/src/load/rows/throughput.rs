//! Jobs a second, as many as the server can bear.

use std::cell::Cell;

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{metrics, Environment, Metrics, Row, Sample};
use crate::load::contestants::{Contestant, Log, Running};
use crate::load::engine::{self, Goal, Outcome};
use crate::load::machine::{Usage, Watch};
use crate::load::session::{Load, Session};

pub struct Throughput {
    pub name: &'static str,
    pub load: Load,
}

/// What BullMQ's client says of itself.
#[derive(Deserialize)]
pub struct Said {
    pub jobs: usize,
    /// Nothing, where it only adds.
    #[serde(default)]
    pub seconds: f64,
}

impl Row for Throughput {
    fn name(&self) -> &'static str {
        self.name
    }

    /// SET is there in each, to be compared with.
    fn takes_part(&self, contestant: Contestant) -> bool {
        contestant == Contestant::Set || contestant.can(self.load)
    }

    fn ratios(&self) -> &'static [&'static str] {
        &["jobs_per_s", "server_us", "main_us"]
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        log: Log,
    ) -> Result<Sample> {
        let running = environment.programs.start(contestant, log)?;
        let (jobs, seconds, usage) = if contestant == Contestant::BullMq {
            self.run_bullmq(environment, &running)?
        } else {
            let (outcome, usage) = self.run(environment, contestant, &running)?;
            (outcome.jobs, outcome.took.as_secs_f64(), usage)
        };
        Ok(Sample { metrics: speed(jobs, seconds, &usage), usage: Some(usage) })
    }
}

/// How fast so many jobs were done in so long, and what that cost.
pub fn speed(jobs: usize, seconds: f64, usage: &Usage) -> Metrics {
    metrics([
        ("jobs_per_s", jobs as f64 / seconds),
        ("server_us", usage.server_s * 1e6 / jobs as f64),
        ("main_us", usage.main_s * 1e6 / jobs as f64),
        ("server_cpu", usage.server),
        ("server_waited", usage.server_waited),
        ("client_cpu", usage.client),
    ])
}

/// Lets these sessions run, for as many jobs as a sample has, and watches.
pub fn measured(
    environment: &Environment,
    contestant: Contestant,
    running: &Running,
    sessions: Vec<Session>,
) -> Result<(Outcome, Usage)> {
    let scale = &environment.scale;
    let goal = Goal { warm_up: scale.jobs / 10, jobs: scale.jobs, at_most: scale.at_most };
    let (watch, usage) = (Cell::new(None), Cell::new(None));
    let begin = || {
        watch.set(Some(Watch::begin(running.server.pid(), std::process::id())?));
        Ok(())
    };
    let end = || {
        usage.set(watch.take().map(Watch::end).transpose()?);
        Ok(())
    };
    let outcome = engine::run(running.port, contestant.protocol(), sessions, &goal, begin, end)?;
    Ok((outcome, usage.take().context("nothing was watched")?))
}

impl Throughput {
    fn run(
        &self,
        environment: &Environment,
        contestant: Contestant,
        running: &Running,
    ) -> Result<(Outcome, Usage)> {
        let load = if contestant == Contestant::Set { Load::Enqueue } else { self.load };
        measured(environment, contestant, running, environment.sessions(contestant, load)?)
    }

    fn run_bullmq(
        &self,
        environment: &Environment,
        running: &Running,
    ) -> Result<(usize, f64, Usage)> {
        let bullmq = environment.programs.bullmq.as_ref().context("BullMQ isn't installed")?;
        let scale = &environment.scale;
        let mut client =
            bullmq.start(running.port, self.name, scale.jobs, scale.at_most.as_secs_f64())?;
        client.wait_for_begin()?;
        let watch = Watch::begin(running.server.pid(), client.pid())?;
        let said: Said = client.wait_for_end()?;
        Ok((said.jobs, said.seconds, watch.end()?))
    }
}
