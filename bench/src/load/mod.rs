//! `load`: DQ in a whole server beside what else one could take, measured by the clock.
//!
//! One server at a time, fresh for each sample, on this machine, driven over loopback by one thread
//! (BullMQ by its own client). The tables say how much of a processor server and generator used: a
//! row whose generator used a whole one measures the generator.

pub mod contestants;
mod engine;
mod machine;
pub mod results;
mod rows;
mod runner;
mod session;
pub mod shards;
pub mod tables;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use clap::Args;

use crate::server;
use contestants::{BullMq, Contestant, Programs};
use results::{Report, Settings};
use rows::{Environment, Row, Scale};
use runner::Patience;

#[derive(Args)]
pub struct Arguments {
    /// The module to measure
    #[arg(long, default_value = "target/release/libdq.so")]
    module: PathBuf,
    /// Another build of it, measured in the same rounds
    #[arg(long, value_name = "MODULE")]
    before: Option<PathBuf>,
    /// The server that all but beanstalkd run on
    #[arg(long, default_value = "/usr/bin/redis-server")]
    server: PathBuf,
    /// What this measurement is called
    #[arg(long, default_value = "now")]
    label: String,
    /// Two minutes, to see that all is well; the figures mean little
    #[arg(long)]
    quick: bool,
    /// Only these rows and contestants: enqueue, delayed, life, batches, due-at-once, lateness,
    /// memory, persistence, now, hour, month, uuids, 1k, depth-1, io-threads; set, dq, dq-before,
    /// list, zset, stream, lua, beanstalkd, bullmq
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    only: Vec<String>,
    /// How many times each is measured
    #[arg(long)]
    rounds: Option<usize>,
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Commands in a pipeline
    #[arg(long, default_value_t = 16)]
    depth: usize,
    /// How much of one processor, in percent, others may use before a sample is dropped
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    tolerate: f64,
    /// How long to wait for the machine to become quiet before a sample, in seconds
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    patience: f64,
    /// Where BullMQ and the script that drives it are installed
    #[arg(long, default_value = "target/bench-bullmq")]
    bullmq: PathBuf,
    /// Where the JSON goes
    #[arg(long, default_value = "target/bench/load.json")]
    json: PathBuf,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let programs = Programs {
        redis: arguments.server.clone(),
        module: arguments
            .module
            .canonicalize()
            .with_context(|| arguments.module.display().to_string())?,
        before: arguments.before.as_ref().map(|path| path.canonicalize()).transpose()?,
        beanstalkd: server::on_path("beanstalkd"),
        bullmq: BullMq::find(&arguments.bullmq),
    };
    let (rows, mut contestants) = chosen(&arguments.only)?;
    let mut report = report(arguments, &programs)?;
    report.skipped = skipped(&programs, &contestants);
    contestants.retain(|contestant| programs.have(*contestant));

    let environment = Environment { programs, scale: scale(arguments) };
    let patience = Patience {
        tolerated: arguments.tolerate / 100.0,
        wait: Duration::from_secs_f64(arguments.patience),
    };
    for row in &rows {
        report.measurements.extend(runner::run(&environment, &**row, &contestants, &patience)?);
        // What has been measured is kept, should a later row go wrong.
        report.write(&arguments.json)?;
    }
    println!("{}", tables::text(&report));
    println!("JSON: {}", arguments.json.display());
    Ok(())
}

type Chosen = (Vec<Box<dyn Row>>, Vec<Contestant>);

/// Names of rows choose rows, names of contestants choose contestants; SET is there to be compared
/// with.
fn chosen(only: &[String]) -> Result<Chosen> {
    let is_row = |name: &&String| rows::all().iter().any(|row| row.name() == **name);
    let is_contestant = |name: &&String| Contestant::of_name(name).is_some();
    if let Some(unknown) = only.iter().find(|name| !is_row(name) && !is_contestant(name)) {
        bail!("{unknown} is neither a row nor a contestant: see --help");
    }
    let wants_rows = only.iter().any(|name| is_row(&name));
    let wants_contestants = only.iter().any(|name| is_contestant(&name));
    let rows = rows::all()
        .into_iter()
        .filter(|row| !wants_rows || only.iter().any(|name| name == row.name()));
    let contestants = Contestant::ALL.into_iter().filter(|contestant| {
        !wants_contestants
            || *contestant == Contestant::Set
            || only.iter().any(|name| name == contestant.name())
    });
    Ok((rows.collect(), contestants.collect()))
}

fn scale(arguments: &Arguments) -> Scale {
    let (connections, depth) = (arguments.connections, arguments.depth);
    let rounds = arguments.rounds;
    if arguments.quick {
        return Scale {
            rounds: rounds.unwrap_or(1),
            jobs: 60_000,
            at_most: Duration::from_secs(1),
            due_at_once: 20_000,
            lateness_jobs: 100,
            stored: 100_000,
            connections,
            depth,
        };
    }
    Scale {
        rounds: rounds.unwrap_or(5),
        jobs: 400_000,
        at_most: Duration::from_secs(3),
        due_at_once: 200_000,
        lateness_jobs: 300,
        stored: 1_000_000,
        connections,
        depth,
    }
}

fn report(arguments: &Arguments, programs: &Programs) -> Result<Report> {
    let scale = scale(arguments);
    let mut versions: std::collections::BTreeMap<_, _> =
        [("redis".to_owned(), server::version(&programs.redis)?)].into();
    if let Some(program) = &programs.beanstalkd {
        versions.insert("beanstalkd".into(), last_word(Command::new(program).arg("-v"))?);
    }
    if let Some(bullmq) = &programs.bullmq {
        versions.insert("bullmq".into(), bullmq.version()?);
        versions.insert("node".into(), last_word(Command::new("node").arg("--version"))?);
    }
    Ok(Report {
        label: arguments.label.clone(),
        date: last_word(Command::new("date").arg("+%Y-%m-%d"))?,
        machine: machine::description()?,
        versions,
        settings: Settings {
            connections: scale.connections,
            depth: scale.depth,
            rounds: scale.rounds,
            jobs: scale.jobs,
            due_at_once: scale.due_at_once,
            lateness_jobs: scale.lateness_jobs,
            stored: scale.stored,
            tolerated: arguments.tolerate / 100.0,
        },
        measurements: Vec::new(),
        skipped: Vec::new(),
    })
}

fn last_word(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("running {command:?}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text
        .split_whitespace()
        .last()
        .with_context(|| format!("{command:?} says nothing"))?
        .to_owned())
}

fn skipped(programs: &Programs, contestants: &[Contestant]) -> Vec<String> {
    let missing = contestants
        .iter()
        .filter(|contestant| !programs.have(**contestant) && **contestant != Contestant::DqBefore);
    missing.map(|contestant| format!("{} isn't installed here", contestant.title())).collect()
}
