//! Saving, loading and rewriting the log of a million jobs.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{ensure, Context as _, Result};

use super::memory::{fill, info};
use super::{metrics, Environment, Row, Sample};
use crate::load::contestants::{Contestant, Log, Running};
use crate::load::machine::Watch;
use crate::wire::Connection;

const REWRITTEN_WITHIN: Duration = Duration::from_secs(120);

pub struct Persistence;

impl Row for Persistence {
    fn name(&self) -> &'static str {
        "persistence"
    }

    /// beanstalkd has nothing but its log. BullMQ's jobs are hashes and sorted sets, and its client
    /// needs minutes to add a million.
    fn takes_part(&self, contestant: Contestant) -> bool {
        !matches!(contestant, Contestant::Beanstalkd | Contestant::BullMq)
    }

    fn logs(&self) -> &'static [Log] {
        &[Log::None]
    }

    fn rounds(&self, rounds: usize) -> usize {
        rounds.div_ceil(2)
    }

    fn ratios(&self) -> &'static [&'static str] {
        &["save_s", "load_s", "rewrite_s", "log_load_s", "file_bytes_a_job", "log_bytes_a_job"]
    }

    fn sample(
        &self,
        environment: &Environment,
        contestant: Contestant,
        _log: Log,
    ) -> Result<Sample> {
        let mut running = environment.programs.start(contestant, Log::None)?;
        let jobs = fill(environment, contestant, &running)? as f64;
        let watch = Watch::begin(running.server.pid(), std::process::id())?;
        let save_s = timed(|| running.connection.call(&["SAVE"]).map(drop))?;
        let rewrite_s = timed(|| rewrite_log(&mut running.connection))?;
        let usage = watch.end()?;

        let directory = running.server.into_directory()?;
        let size = |path: &str| directory_bytes(&directory.path().join(path));
        let (file_bytes, log_bytes) = (size("dump.rdb")?, size("appendonlydir")?);
        let (directory, load_s) = {
            let running =
                environment.programs.start_redis(contestant, Log::None, &[], directory)?;
            let seconds = seconds_of_load(&running, "DB loaded from disk: ")?;
            (running.server.into_directory()?, seconds)
        };
        let running =
            environment.programs.start_redis(contestant, Log::EverySecond, &[], directory)?;
        let log_load_s =
            seconds_of_load(&running, "DB loaded from append only file: ").or_else(|_| {
                seconds_of_load(&running, "DB loaded from base file appendonly.aof.1.base.aof: ")
            })?;
        let metrics = metrics([
            ("save_s", save_s),
            ("load_s", load_s),
            ("rewrite_s", rewrite_s),
            ("log_load_s", log_load_s),
            ("file_bytes_a_job", file_bytes as f64 / jobs),
            ("log_bytes_a_job", log_bytes as f64 / jobs),
            ("jobs", jobs),
        ]);
        Ok(Sample { metrics, usage: Some(usage) })
    }
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_secs_f64())
}

/// In the child that the server forks, until the new log has taken the old one's place.
fn rewrite_log(connection: &mut Connection) -> Result<()> {
    connection.call(&["BGREWRITEAOF"])?;
    let deadline = Instant::now() + REWRITTEN_WITHIN;
    while info(connection, "persistence", "aof_rewrite_in_progress")? > 0 {
        ensure!(Instant::now() < deadline, "the log isn't rewritten after {REWRITTEN_WITHIN:?}");
        thread::sleep(Duration::from_millis(5));
    }
    let text = String::from_utf8(connection.call(&["INFO", "persistence"])?.bulk()?)?;
    ensure!(text.contains("aof_last_bgrewrite_status:ok"), "rewriting the log failed");
    Ok(())
}

/// "… 0.523 seconds", as the server writes it to its log.
fn seconds_of_load(running: &Running, words: &str) -> Result<f64> {
    let log = running.server.log();
    let rest =
        log.split_once(words).with_context(|| format!("no \"{words}\" in the log:\n{log}"))?.1;
    Ok(rest.split_whitespace().next().context("half a line")?.parse()?)
}

fn directory_bytes(path: &std::path::Path) -> Result<u64> {
    if path.is_file() {
        return Ok(path.metadata()?.len());
    }
    let sizes = std::fs::read_dir(path).with_context(|| format!("reading {}", path.display()))?;
    sizes.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
