//! Sends commands to a server under callgrind, a pipeline at a time, and turns its clock on.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::clock::{Clock, Request};
use crate::server::Server;
use crate::wire::{Connection, Reply};

/// Commands in a pipeline. All of them must fit the 16 KiB that a server reads at once: then each
/// pipeline is one read, however fast the two of us are.
const DEPTH: usize = 16;
/// How far the clock is turned on: near what commands take in a server that runs free.
const NS_A_COMMAND: u64 = 1_500;
const NS_A_JOB: u64 = 1_000;

const START_WITHIN: Duration = Duration::from_secs(60);

pub struct Driver {
    server: Server,
    connection: Connection,
    clock: Clock,
    output: PathBuf,
}

pub struct Settings<'a> {
    pub program: &'a Path,
    pub module: &'a Path,
    pub clock_library: &'a Path,
    pub simulate_caches: bool,
    /// Lines of redis.conf.
    pub config: &'a [String],
}

impl Driver {
    /// Starts a server that callgrind watches, and will write about to `output`.
    pub fn start(settings: &Settings, output: &Path) -> Result<Driver> {
        let page = with_suffix(output, ".clock");
        let clock = Clock::new(&page)?;
        let mut callgrind = Command::new("valgrind");
        callgrind.args(["--tool=callgrind", "--quiet", "--instr-atstart=no"]);
        callgrind.arg(format!("--callgrind-out-file={}", output.display()));
        if settings.simulate_caches {
            callgrind.arg("--cache-sim=yes");
        }
        callgrind.env("LD_PRELOAD", settings.clock_library).env("DQ_BENCH_CLOCK", &page);
        let mut config =
            vec!["port 0".to_owned(), format!("loadmodule \"{}\"", settings.module.display())];
        config.extend_from_slice(settings.config);

        let mut server = Server::redis(settings.program, Some(callgrind), &config)?;
        let connection = server.connect(START_WITHIN, || clock.turn(1_000_000))?;
        // Both have opened it: it goes when they do.
        std::fs::remove_file(&page)?;
        Ok(Driver { server, connection, clock, output: output.to_owned() })
    }

    /// Commands of so many jobs each, in pipelines.
    pub fn run(&mut self, commands: &[Vec<u8>], jobs: usize) -> Result<()> {
        for pipeline in commands.chunks(DEPTH) {
            self.clock.turn(pipeline.len() as u64 * (NS_A_COMMAND + jobs as u64 * NS_A_JOB));
            self.connection.send(&pipeline.concat())?;
            self.connection.skip(pipeline.len())?;
        }
        Ok(())
    }

    pub fn call(&mut self, command: &[u8], jobs: usize) -> Result<Reply> {
        self.clock.turn(NS_A_COMMAND + jobs as u64 * NS_A_JOB);
        self.connection.send(command)?;
        self.connection.receive()
    }

    /// The same as `run`, counted: returns the file in which callgrind says what it saw.
    pub fn count(mut self, commands: &[Vec<u8>], jobs: usize) -> Result<PathBuf> {
        self.clock.request(Request::CountFromNow);
        self.run(commands, jobs)?;
        self.clock.request(Request::Dump);
        self.connection.call(&["PING"])?;
        self.clock.wait_until_done()?;
        self.end().context("ending the server")?;
        // The first dump; the file without a number is what came after it.
        Ok(with_suffix(&self.output, ".1"))
    }

    fn end(&mut self) -> Result<()> {
        let mut command = Vec::new();
        crate::wire::encode(&mut command, &["SHUTDOWN", "NOSAVE"]);
        self.connection.send(&command)?;
        self.server.wait()
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(suffix);
    name.into()
}
