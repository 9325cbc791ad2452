//! `shards`: one topic on one, two and three servers, for docs/scaling.md.
//!
//! Each server is a cluster node that has a queue of the topic. One thread drives all of them, so
//! that the same connections are spread over more and more servers. Where there are fewer
//! processors than servers and generator could use, jobs a second tell of the machine. What depends
//! on that less is how much processor time the servers take for a job. It says how many jobs it
//! would be if each server had a processor to itself and an equal share of the jobs, as ids that
//! are spread by a hash give it.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use clap::Args;

use super::contestants::Contestant;
use super::engine::{self, Goal};
use super::machine::{self, Busy};
use super::results::Metric;
use super::session::{Load, Session};
use crate::server::{free_port, Server};
use crate::wire::{Connection, Protocol};

const LOADS: [(&str, Load); 3] =
    [("enqueue", Load::Enqueue), ("life", Load::Life), ("batches of 16", Load::Batches)];
const ATTEMPTS: usize = 4;
const START_WITHIN: Duration = Duration::from_secs(30);

#[derive(Args)]
pub struct Arguments {
    /// The module to measure
    #[arg(long, default_value = "target/release/libdq.so")]
    module: PathBuf,
    /// The server to load it into
    #[arg(long, default_value = "/usr/bin/redis-server")]
    server: PathBuf,
    /// At most so many servers
    #[arg(long, default_value_t = 3)]
    shards: usize,
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    #[arg(long, default_value_t = 48)]
    connections: usize,
    /// Commands in a pipeline
    #[arg(long, default_value_t = 16)]
    depth: usize,
    /// How long a sample takes, in seconds
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    /// How much of one processor, in percent, others may use before a sample is taken again
    #[arg(long, default_value_t = 10.0, value_name = "PERCENT")]
    tolerate: f64,
    /// How long to wait for the machine to become quiet before a sample, in seconds
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS")]
    patience: f64,
}

struct Shard {
    server: Server,
    port: u16,
    connection: Connection,
}

struct Sample {
    jobs_per_s: f64,
    /// If each server had a processor to itself.
    unbound_jobs_per_s: f64,
    /// Processor time of all servers for a job.
    server_us: f64,
    /// Shares of a processor.
    client: f64,
    others: f64,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    ensure!(arguments.shards > 0 && arguments.rounds > 0, "nothing to measure");
    let module =
        arguments.module.canonicalize().with_context(|| arguments.module.display().to_string())?;
    let mut shards = Vec::new();
    for _ in 0..arguments.shards {
        shards.push(Shard::start(&arguments.server, &module)?);
    }
    println!("{}\n", machine::description()?);
    for (name, load) in LOADS {
        table(name, &measure(arguments, &mut shards, load)?)?;
    }
    Ok(())
}

/// Of each round, a sample for one server, for two, and so on.
fn measure(arguments: &Arguments, shards: &mut [Shard], load: Load) -> Result<Vec<Vec<Sample>>> {
    let count = shards.len();
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        let mut samples: Vec<Option<Sample>> = (0..count).map(|_| None).collect();
        // Another one begins each time.
        for place in 0..count {
            let used = (place + round) % count;
            samples[used] = Some(quiet_sample(arguments, &mut shards[..=used], load)?);
        }
        rounds.push(samples.into_iter().flatten().collect());
    }
    Ok(rounds)
}

fn quiet_sample(arguments: &Arguments, shards: &mut [Shard], load: Load) -> Result<Sample> {
    let tolerated = arguments.tolerate / 100.0;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        machine::wait_until_quiet(tolerated, Duration::from_secs_f64(arguments.patience))?;
        let sample = sample(arguments, shards, load)?;
        if sample.others <= tolerated {
            return Ok(sample);
        }
        eprintln!("disturbed: others used {:.0} % of a processor", 100.0 * sample.others);
        last = Some(sample);
    }
    last.context("no sample")
}

fn sample(arguments: &Arguments, shards: &mut [Shard], load: Load) -> Result<Sample> {
    for shard in &mut *shards {
        shard.connection.call(&["FLUSHALL"])?;
    }
    let ports: Vec<u16> = shards.iter().map(|shard| shard.port).collect();
    let pids: Vec<u32> = shards.iter().map(|shard| shard.server.pid()).collect();
    let next_id = Rc::new(Cell::new(0));
    let mut sessions = Vec::new();
    for _ in 0..arguments.connections {
        let verbs = Contestant::Dq.verbs().context("it has a client")?;
        sessions.push(Session::new(verbs, load, arguments.depth, Rc::clone(&next_id)));
    }
    let at_most = Duration::from_secs_f64(arguments.seconds);
    let goal = Goal { warm_up: 20_000, jobs: usize::MAX, at_most };
    let (began, used) = (Cell::new(None), Cell::new(None));
    let begin = || {
        began.set(Some((Busy::now()?, ran_s(&pids), Instant::now())));
        Ok(())
    };
    let end = || {
        let (busy, before, at) = began.take().context("it began")?;
        let seconds = at.elapsed().as_secs_f64();
        let ran: Vec<f64> = ran_s(&pids).iter().zip(before).map(|(now, then)| now - then).collect();
        used.set(Some((Busy::now()?.since(&busy), ran, seconds)));
        Ok(())
    };
    let outcome = engine::run_at(&ports, Protocol::Resp, sessions, &goal, begin, end)?;
    let (busy_s, ran, seconds) = used.take().context("it ended")?;
    let (client, servers) = ran.split_last().context("there is a client")?;
    let servers_s: f64 = servers.iter().sum();
    let jobs = outcome.jobs as f64;
    Ok(Sample {
        jobs_per_s: jobs / outcome.took.as_secs_f64(),
        unbound_jobs_per_s: jobs * servers.len() as f64 / servers_s,
        server_us: servers_s * 1e6 / jobs,
        client: client / seconds,
        others: (busy_s - servers_s - client).max(0.0) / seconds,
    })
}

/// Of each server, and of this program at the end.
fn ran_s(pids: &[u32]) -> Vec<f64> {
    pids.iter().chain([&std::process::id()]).map(|pid| machine::ran_s(*pid)).collect()
}

fn table(title: &str, rounds: &[Vec<Sample>]) -> Result<()> {
    const HEAD: [&str; 8] = [
        "shards",
        "thousand jobs a second",
        "beside one",
        "servers' time, a job",
        "thousand a second with a processor each",
        "beside one",
        "generator",
        "others",
    ];
    println!("**{title}**\n\n| {} |\n|{}", HEAD.join(" | "), "---|".repeat(HEAD.len()));
    for at in 0..rounds.first().map_or(0, Vec::len) {
        let of = |value: fn(&Sample) -> f64| median(rounds.iter().map(|round| value(&round[at])));
        let beside = |value: fn(&Sample) -> f64| {
            median(rounds.iter().map(|round| value(&round[at]) / value(&round[0])))
        };
        println!(
            "| {} | {:.0} | {:.2} | {:.2} µs | {:.0} | {:.2} | {:.0} % | {:.0} % |",
            at + 1,
            of(|sample| sample.jobs_per_s)? / 1e3,
            beside(|sample| sample.jobs_per_s)?,
            of(|sample| sample.server_us)?,
            of(|sample| sample.unbound_jobs_per_s)? / 1e3,
            beside(|sample| sample.unbound_jobs_per_s)?,
            100.0 * of(|sample| sample.client)?,
            100.0 * of(|sample| sample.others)?,
        );
    }
    println!();
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> Result<f64> {
    Ok(Metric::of(values.collect()).context("no samples")?.median)
}

impl Shard {
    /// A cluster of its own, so that it looks at slots as every node does.
    fn start(program: &Path, module: &Path) -> Result<Shard> {
        let port = free_port()?;
        let config = [
            format!("port {port}"),
            format!("loadmodule \"{}\"", module.display()),
            "cluster-enabled yes".to_owned(),
            format!("cluster-port {}", free_port()?),
        ];
        let mut server = Server::redis(program, None, &config)?;
        let mut connection = server.connect(START_WITHIN, || {})?;
        connection.call(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"])?;
        let deadline = Instant::now() + START_WITHIN;
        while connection.call(&["DQ.LEN", "queue"]).is_err() {
            if Instant::now() > deadline {
                bail!("the node is not up:\n{}", server.log());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Shard { server, port, connection })
    }
}
