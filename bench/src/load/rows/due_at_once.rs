//! Many jobs that fall due in one moment are consumed, while somebody else only wants a PONG.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, Context as _, Result};
use hdrhistogram::Histogram;

use super::pings::ping_while;
use super::throughput::Said;
use super::{metrics, Environment, Row, Sample};
use crate::load::contestants::{lua, put, Contestant, Log, Running};
use crate::load::engine::{self, Goal};
use crate::load::machine::{Usage, Watch};
use crate::load::session::{body, id, Load, TTR_MS};
use crate::wire::{encode, Connection, Protocol};

/// Pings before the jobs are due: what the machine does to them by itself.
const IDLE_PINGS_FOR: Duration = Duration::from_millis(500);
/// At least so many can be added a second.
const FILLED_A_SECOND: usize = 20_000;
const AT_MOST: Duration = Duration::from_secs(60);

pub struct DueAtOnce;

impl Row for DueAtOnce {
    fn name(&self) -> &'static str {
        "due-at-once"
    }

    /// SET too, as a control: what a PING waits behind as many connections with as deep a pipeline,
    /// and no queue.
    fn takes_part(&self, contestant: Contestant) -> bool {
        contestant.can(Load::Consume) || contestant == Contestant::Set
    }

    fn rounds(&self, rounds: usize) -> usize {
        rounds.div_ceil(2)
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        log: Log,
    ) -> Result<Sample> {
        let mut running = environment.programs.start(contestant, log)?;
        // BullMQ's client needs ten times as long, for adding them, too.
        let share = if contestant == Contestant::BullMq { 10 } else { 1 };
        let jobs = environment.rounded_up(environment.scale.due_at_once / share);
        let consumed = if contestant == Contestant::BullMq {
            consume_with_bullmq(environment, &running, jobs)?
        } else {
            let due = fill(&mut running, contestant, jobs)?;
            consume(environment, contestant, &running, jobs, due)?
        };
        let ms = |value: u64| value as f64 / 1000.0;
        let metrics = metrics([
            ("seconds", consumed.seconds),
            ("jobs", consumed.jobs as f64),
            ("jobs_per_s", consumed.jobs as f64 / consumed.seconds),
            ("worst_ping_ms", ms(consumed.pings.max())),
            ("p99_ping_ms", ms(consumed.pings.value_at_quantile(0.99))),
            ("worst_idle_ping_ms", ms(consumed.idle_pings.max())),
        ]);
        Ok(Sample { metrics, usage: Some(consumed.usage) })
    }
}

/// By batches, where it has a command for that: who has so many jobs to catch up with takes many at
/// a time.
fn load_of(contestant: Contestant) -> Load {
    if contestant == Contestant::Set {
        Load::Enqueue
    } else if contestant.can(Load::ConsumeBatches) {
        Load::ConsumeBatches
    } else {
        Load::Consume
    }
}

struct Consumed {
    jobs: usize,
    seconds: f64,
    usage: Usage,
    pings: Histogram<u64>,
    idle_pings: Histogram<u64>,
}

/// Adds the jobs, and returns when all of them are due.
fn fill(running: &mut Running, contestant: Contestant, jobs: usize) -> Result<SystemTime> {
    if contestant == Contestant::Set {
        return Ok(SystemTime::now() + IDLE_PINGS_FOR);
    }
    // Whole seconds, for beanstalkd's sake.
    let ahead = Duration::from_secs(1 + jobs.div_ceil(FILLED_A_SECOND) as u64);
    let due = SystemTime::now() + ahead;
    let due_ms = due.duration_since(UNIX_EPOCH)?.as_millis() as u64;
    for first in (0..jobs as u64).step_by(500) {
        let mut pipeline = Vec::new();
        let ids = first..(first + 500).min(jobs as u64);
        let replies = match contestant {
            Contestant::Lua => {
                lua::add_at(&mut pipeline, ids, Some(due_ms));
                1
            }
            Contestant::Beanstalkd => {
                // From now on, and so over as long a time as they take to be added.
                let count = ids.clone().count();
                ids.for_each(|number| put(&mut pipeline, &body(number), ahead.as_secs()));
                count
            }
            _ => {
                let (due, ttr) = (due_ms.to_string(), TTR_MS.to_string());
                let count = ids.clone().count();
                for number in ids {
                    let (id, body) = (id(number), body(number));
                    let words = [
                        &b"DQ.ADD"[..],
                        b"queue",
                        &id,
                        &body,
                        b"AT",
                        due.as_bytes(),
                        b"TTR",
                        ttr.as_bytes(),
                    ];
                    encode(&mut pipeline, &words);
                }
                count
            }
        };
        running.connection.send(&pipeline)?;
        running.connection.skip(replies)?;
    }
    if contestant == Contestant::Beanstalkd {
        return Ok(SystemTime::now() + ahead);
    }
    anyhow::ensure!(
        SystemTime::now() + IDLE_PINGS_FOR < due,
        "the jobs were due before all had been added"
    );
    Ok(due)
}

fn consume(
    environment: &Environment,
    contestant: Contestant,
    running: &Running,
    jobs: usize,
    due: SystemTime,
) -> Result<Consumed> {
    let sessions = environment.sessions(contestant, load_of(contestant))?;
    let until_due = || due.duration_since(SystemTime::now()).unwrap_or_default();
    thread::sleep(until_due().saturating_sub(IDLE_PINGS_FOR));
    let idle_pings = ping_while(running.port, contestant.protocol(), || {
        thread::sleep(until_due());
        Ok(())
    })?;

    let goal = Goal { warm_up: 0, jobs, at_most: AT_MOST };
    let port = running.port;
    let over = AtomicBool::new(false);
    let mut outcome = None;
    let mut usage = None;
    let pings = thread::scope(|scope| -> Result<_> {
        let promoter = (contestant == Contestant::Lua)
            .then(|| scope.spawn(|| promote_until(&over, port, contestant.protocol())));
        let pings = ping_while(running.port, contestant.protocol(), || {
            let watch = Watch::begin(running.server.pid(), std::process::id())?;
            let run = engine::run(
                running.port,
                contestant.protocol(),
                sessions,
                &goal,
                || Ok(()),
                || Ok(()),
            );
            over.store(true, Ordering::Relaxed);
            outcome = Some(run?);
            usage = Some(watch.end()?);
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        if let Some(promoter) = promoter {
            promoter.join().map_err(|_| anyhow!("the promoter broke down"))??;
        }
        pings
    })?;
    let (outcome, usage) = (outcome.context("nothing ran")?, usage.context("nothing was watched")?);
    Ok(Consumed {
        jobs: outcome.jobs,
        seconds: outcome.took.as_secs_f64(),
        usage,
        pings,
        idle_pings,
    })
}

/// What the scripts need beside consumers: somebody who moves what is due.
fn promote_until(over: &AtomicBool, port: u16, protocol: Protocol) -> Result<()> {
    let mut connection = Connection::tcp(port, protocol)?;
    while !over.load(Ordering::Relaxed) {
        let again_ms = lua::promote(&mut connection)?;
        thread::sleep(Duration::from_millis(again_ms.min(lua::LONGEST_SLEEP_MS)));
    }
    Ok(())
}

fn consume_with_bullmq(
    environment: &Environment,
    running: &Running,
    jobs: usize,
) -> Result<Consumed> {
    let bullmq = environment.programs.bullmq.as_ref().context("BullMQ isn't installed")?;
    let idle_pings = ping_while(running.port, Protocol::Resp, || {
        thread::sleep(IDLE_PINGS_FOR);
        Ok(())
    })?;
    let mut client = bullmq.start(running.port, DueAtOnce.name(), jobs, AT_MOST.as_secs_f64())?;
    client.wait_for_begin()?;
    let watch = Watch::begin(running.server.pid(), client.pid())?;
    let mut said = None;
    let pings = ping_while(running.port, Protocol::Resp, || {
        said = Some(client.wait_for_end::<Said>()?);
        Ok(())
    })?;
    let said = said.context("nothing ran")?;
    Ok(Consumed { jobs: said.jobs, seconds: said.seconds, usage: watch.end()?, pings, idle_pings })
}
