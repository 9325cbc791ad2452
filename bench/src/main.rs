//! Measures DQ in whole servers. `make bench` and `make bench-instructions` build and run it;
//! docs/benchmarks.md says what the figures mean.

mod charts;
mod instructions;
mod load;
mod server;
mod wire;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(version, about, max_term_width = 110)]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What a command costs in the whole server, in instructions counted by callgrind
    Instructions(instructions::Arguments),
    /// How fast whole servers are, DQ's and others, by the clock
    Load(load::Arguments),
    /// One topic on several servers
    Shards(load::shards::Arguments),
    /// Writes the tables and charts of docs/benchmarks.md
    Charts(charts::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // In words, also where RUST_BACKTRACE is set.
        Err(error) => {
            eprintln!("dq-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Instructions(arguments) => instructions::run(arguments),
        What::Load(arguments) => load::run(arguments),
        What::Shards(arguments) => load::shards::run(arguments),
        What::Charts(arguments) => charts::run(arguments),
    }
}
