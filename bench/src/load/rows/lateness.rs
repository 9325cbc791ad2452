//! How late a waiting consumer gets a job on a server that has nothing else to do.
//!
//! Jobs fall due one by one, some 20 ms apart, by a schedule that doesn't depend on when the last
//! one came. A job's body is its due time, and the consumer compares it with the clock when the job
//! arrives: both are this machine's wall clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{anyhow, bail, ensure, Context as _, Result};
use hdrhistogram::Histogram;
use serde::Deserialize;

use super::{metrics, Environment, Row, Sample};
use crate::load::contestants::{lua, put, Contestant, Log, Running};
use crate::load::machine::{Usage, Watch};
use crate::load::session::{id, Load};
use crate::wire::{encode, Connection, Protocol, Reply};

const AHEAD_MS: u64 = 60;
const APART: Duration = Duration::from_millis(20);
/// beanstalkd knows whole seconds only.
const AHEAD_S: u64 = 1;

pub struct Lateness;

impl Row for Lateness {
    fn name(&self) -> &'static str {
        "lateness"
    }

    fn takes_part(&self, contestant: Contestant) -> bool {
        contestant.can(Load::Consume)
    }

    /// A sample is of many jobs.
    fn rounds(&self, rounds: usize) -> usize {
        rounds.div_ceil(2)
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        log: Log,
    ) -> Result<Sample> {
        let running = environment.programs.start(contestant, log)?;
        let jobs = environment.scale.lateness_jobs;
        let (late, usage) = if contestant == Contestant::BullMq {
            watch_bullmq(environment, &running, jobs)?
        } else {
            watch_consumer(contestant, running, jobs)?
        };
        let ms = |us: u64| us as f64 / 1000.0;
        let quantile = |quantile| ms(late.value_at_quantile(quantile));
        let metrics = metrics([
            ("p50_ms", quantile(0.5)),
            ("p99_ms", quantile(0.99)),
            ("worst_ms", ms(late.max())),
        ]);
        Ok(Sample { metrics, usage: Some(usage) })
    }
}

fn watch_consumer(
    contestant: Contestant,
    mut running: Running,
    jobs: usize,
) -> Result<(Histogram<u64>, Usage)> {
    let (port, protocol) = (running.port, contestant.protocol());
    let watch = Watch::begin(running.server.pid(), std::process::id())?;
    let over = AtomicBool::new(false);
    let late = thread::scope(|scope| {
        let consumer = scope.spawn(|| consume(contestant, port, protocol, jobs));
        let promoter =
            (contestant == Contestant::Lua).then(|| scope.spawn(|| promote_in_time(&over, port)));
        let produced = produce(contestant, &mut running.connection, jobs);
        let late = consumer.join().map_err(|_| anyhow!("the consumer broke down"))?;
        over.store(true, Ordering::Relaxed);
        if let Some(promoter) = promoter {
            promoter.join().map_err(|_| anyhow!("the promoter broke down"))??;
        }
        produced.and(late)
    })?;
    Ok((late, watch.end()?))
}

fn produce(contestant: Contestant, connection: &mut Connection, jobs: usize) -> Result<()> {
    let mut due_last_ms = 0;
    for number in 0..jobs as u64 {
        // Neither in step with the server's own timers nor twice in the same millisecond.
        thread::sleep(APART + Duration::from_micros(fastrand::u64(0..2000)));
        let mut command = Vec::new();
        let due_ms = (lua::now_ms() + AHEAD_MS).max(due_last_ms + 1);
        due_last_ms = due_ms;
        let body = |due_us: u64| format!("{due_us:0100}");
        match contestant {
            Contestant::Dq | Contestant::DqBefore => {
                let (due, body) = (due_ms.to_string(), body(due_ms * 1000));
                encode(
                    &mut command,
                    &[
                        &b"DQ.ADD"[..],
                        b"queue",
                        &id(number),
                        body.as_bytes(),
                        b"AT",
                        due.as_bytes(),
                    ],
                );
            }
            Contestant::Lua => {
                let (id, body) = (id(number), body(due_ms * 1000));
                lua::add_jobs(&mut command, &[(&id, body.as_bytes())], Some(due_ms));
            }
            // Due a second after it gets there: it is never early by this clock, and late by the
            // way there.
            Contestant::Beanstalkd => {
                put(&mut command, body(now_us() + AHEAD_S * 1_000_000).as_bytes(), AHEAD_S);
            }
            other => bail!("{} knows no due times", other.title()),
        }
        connection.send(&command)?;
        connection.skip(1)?;
    }
    Ok(())
}

/// Sleeps until the next job is due, as the server tells it.
fn promote_in_time(over: &AtomicBool, port: u16) -> Result<()> {
    let mut connection = Connection::tcp(port, Protocol::Resp)?;
    while !over.load(Ordering::Relaxed) {
        let again_ms = lua::promote(&mut connection)?;
        // By the clock's own milliseconds, so that it isn't woken a fraction before one begins.
        let begun_us = now_us() % 1000;
        let wait_us = (again_ms.min(lua::LONGEST_SLEEP_MS) * 1000).saturating_sub(begun_us);
        thread::sleep(Duration::from_micros(wait_us));
    }
    Ok(())
}

fn consume(
    contestant: Contestant,
    port: u16,
    protocol: Protocol,
    jobs: usize,
) -> Result<Histogram<u64>> {
    let mut connection = Connection::tcp(port, protocol)?;
    let mut late = Histogram::new(3)?;
    for _ in 0..jobs {
        let (id, lease, body) = wait_for_job(contestant, &mut connection)?;
        let now_us = now_us();
        let due_us: u64 =
            String::from_utf8(body)?.trim_start_matches('0').parse().context("a job's body")?;
        ensure!(now_us >= due_us, "a job came {} µs early", due_us - now_us);
        late.record(now_us - due_us)?;
        finish(contestant, &mut connection, &id, &lease)?;
    }
    Ok(late)
}

/// Id, lease and body.
fn wait_for_job(
    contestant: Contestant,
    connection: &mut Connection,
) -> Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
    match contestant {
        Contestant::Dq | Contestant::DqBefore => {
            let reply = connection.call(&["DQ.POP", "queue", "BLOCK", "0"])?;
            let job = reply.array()?.into_iter().next().context("no job")?;
            let mut fields = job.array()?.into_iter();
            let (Some(Reply::Bulk(id)), Some(Reply::Bulk(body)), Some(Reply::Integer(lease))) =
                (fields.next(), fields.next(), fields.next())
            else {
                bail!("not id, body, lease, attempt");
            };
            Ok((id, lease.to_string().into_bytes(), body))
        }
        Contestant::Lua => {
            let words = ["BLMOVE", lua::READY, lua::CLAIMED, "LEFT", "RIGHT", "0"];
            let id = connection.call(&words)?.bulk()?;
            let mut fields = lua::claim(connection, &id)?.into_iter();
            let (Some(Reply::Bulk(id)), Some(Reply::Bulk(body)), Some(Reply::Integer(attempt))) =
                (fields.next(), fields.next(), fields.next())
            else {
                bail!("not id, body, attempt");
            };
            Ok((id, attempt.to_string().into_bytes(), body))
        }
        Contestant::Beanstalkd => {
            connection.send(b"reserve\r\n")?;
            let reply = connection.receive_raw()?;
            let text = String::from_utf8(reply)?;
            let mut words = text.split_whitespace();
            let (Some("RESERVED"), Some(id), Some(_), Some(body)) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                bail!("beanstalkd says: {text}");
            };
            Ok((id.into(), Vec::new(), body.into()))
        }
        other => bail!("{} can't be waited for", other.title()),
    }
}

fn finish(
    contestant: Contestant,
    connection: &mut Connection,
    id: &[u8],
    lease: &[u8],
) -> Result<()> {
    let mut command = Vec::new();
    match contestant {
        Contestant::Dq | Contestant::DqBefore => {
            encode(&mut command, &[&b"DQ.FINISH"[..], b"queue", id, lease])
        }
        Contestant::Lua => lua::finish(&mut command, &[id, lease]),
        _ => command = [&b"delete "[..], id, b"\r\n"].concat(),
    }
    connection.send(&command)?;
    connection.skip(1)
}

fn watch_bullmq(
    environment: &Environment,
    running: &Running,
    jobs: usize,
) -> Result<(Histogram<u64>, Usage)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Said {
        late_us: Vec<u64>,
    }

    let bullmq = environment.programs.bullmq.as_ref().context("BullMQ isn't installed")?;
    let mut client = bullmq.start(running.port, Lateness.name(), jobs, 0.0)?;
    client.wait_for_begin()?;
    let watch = Watch::begin(running.server.pid(), client.pid())?;
    let said: Said = client.wait_for_end()?;
    let mut late = Histogram::new(3)?;
    said.late_us.into_iter().try_for_each(|us| late.record(us))?;
    Ok((late, watch.end()?))
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_micros() as u64)
}
