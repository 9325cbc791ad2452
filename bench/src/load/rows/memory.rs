//! What a job takes in memory, by the server's own count: id, body and all that is kept about it.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::throughput::Said;
use super::{metrics, Environment, Row, Sample};
use crate::load::contestants::{Contestant, Log, Running};
use crate::load::engine::{self, Goal};
use crate::load::machine::resident_bytes;
use crate::load::session::Load;
use crate::wire::Connection;

const AT_MOST: Duration = Duration::from_secs(300);
/// Its client is slow to add more, and a job takes no less when there are many.
const MOST_OF_BULLMQ: usize = 100_000;

pub struct Memory;

impl Row for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn takes_part(&self, _contestant: Contestant) -> bool {
        true
    }

    fn logs(&self) -> &'static [Log] {
        &[Log::None]
    }

    /// It comes to the same each time.
    fn rounds(&self, _rounds: usize) -> usize {
        1
    }

    fn ratios(&self) -> &'static [&'static str] {
        &["bytes_a_job"]
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        log: Log,
    ) -> Result<Sample> {
        let mut running = environment.programs.start(contestant, log)?;
        let before = bytes_used(contestant, &mut running)?;
        let jobs = if contestant == Contestant::BullMq {
            fill_with_bullmq(environment, &running)?
        } else {
            fill(environment, contestant, &running)?
        };
        // The connections that brought them are gone when the server has heard of it.
        std::thread::sleep(Duration::from_millis(500));
        let after = bytes_used(contestant, &mut running)?;
        let bytes = after.saturating_sub(before) as f64 / jobs as f64;
        Ok(Sample {
            metrics: metrics([("bytes_a_job", bytes), ("jobs", jobs as f64)]),
            usage: None,
        })
    }
}

/// Delayed jobs, of who knows delays. Returns how many.
pub fn fill(environment: &Environment, contestant: Contestant, running: &Running) -> Result<usize> {
    let load = if contestant.can(Load::Delayed) { Load::Delayed } else { Load::Enqueue };
    let jobs = environment.rounded_up(environment.scale.stored);
    let sessions = environment.bounded_sessions(contestant, load, jobs)?;
    let goal = Goal { warm_up: 0, jobs, at_most: AT_MOST };
    Ok(engine::run(running.port, contestant.protocol(), sessions, &goal, || Ok(()), || Ok(()))?
        .jobs)
}

fn fill_with_bullmq(environment: &Environment, running: &Running) -> Result<usize> {
    let bullmq = environment.programs.bullmq.as_ref().context("BullMQ isn't installed")?;
    let jobs = environment.scale.stored.min(MOST_OF_BULLMQ);
    Ok(bullmq.start(running.port, Memory.name(), jobs, 0.0)?.wait_for_end::<Said>()?.jobs)
}

/// beanstalkd counts no bytes: there it is the memory of the process.
fn bytes_used(contestant: Contestant, running: &mut Running) -> Result<u64> {
    match contestant {
        Contestant::Beanstalkd => resident_bytes(running.server.pid()),
        _ => info(&mut running.connection, "memory", "used_memory"),
    }
}

/// A number of the server's INFO.
pub fn info(connection: &mut Connection, section: &str, field: &str) -> Result<u64> {
    let text = String::from_utf8(connection.call(&["INFO", section])?.bulk()?)?;
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    Ok(value.with_context(|| format!("no {field} in INFO"))?.trim().parse()?)
}
