//! The core beside what everybody writes first and what the field recommends, all under one
//! contract. docs/benchmarks.md has the tables, also of candidates that were tried before, and how
//! to run those.
//!
//! ```text
//! cargo bench --bench structures                                 # about a minute
//! cargo bench --bench structures -- --markdown                   # to be pasted into docs/benchmarks.md
//! cargo bench --bench structures -- --jobs 10000000 --runs 1     # wants 4 GB of memory
//! cargo bench --bench structures -- --only wheel                 # candidates whose name has "wheel" in it
//! ```
//!
//! First each candidate goes through random operations beside an obvious reference: ids, counts,
//! and the total order (due time, order of adding), also in the midst of a promotion. Then, for
//! each workload: a million jobs are added, half of them cancelled in random order, as many others
//! added, all promoted when all are due, all popped; the order is checked once more.
//!
//! | column | what |
//! | --- | --- |
//! | add ns, cancel ns, pop ns | for each job; a pop lets go of the job |
//! | longest add | the longest single add of the first million: here a table or an array that grows shows |
//! | promote | for all jobs, in slices of a thousand: how long others would wait if it weren't sliced |
//! | longest slice | how long they wait if it is |
//! | bytes/job | beyond the 15 bytes of the id and the 64 of the body, after the first million |
//! | rounded | the same with each allocation rounded up to jemalloc's size classes |
//! | churned | rounded, after the cancels and the adds that followed |
//!
//! Medians of the runs. Ids, bodies, hash (SipHash) and a job's other fields are the same for all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::undocumented_unsafe_blocks,
    clippy::wildcard_enum_match_arm,
    reason = "a benchmark may panic"
)]

mod candidate;
mod check;
mod counting;
mod heap;
mod list;
mod measure;
#[path = "../../src/queue/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the candidate uses a part of it")]
mod queue;
mod report;
mod shipped;
mod wheel;
mod workload;

use candidate::Candidate;
use counting::Counting;
use heap::MapAndHeap;
use lexopt::Arg::{Long, Value};
use lexopt::ValueExt;
use measure::Sample;
use report::Format;
use shipped::Shipped;
use wheel::Wheel;
use workload::{Script, Workload};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

struct Row {
    name: &'static str,
    check: fn(&str),
    run: fn(&str, &Script) -> Sample,
}

fn row<C: Candidate>(name: &'static str) -> Row {
    Row { name, check: check::keeps_the_contract::<C>, run: measure::run::<C> }
}

fn rows() -> Vec<Row> {
    vec![
        row::<MapAndHeap>("HashMap and BinaryHeap"),
        row::<Wheel>("timing wheel, Swiss table"),
        row::<Shipped>("dq::queue::Queue, as shipped"),
    ]
}

struct Settings {
    jobs: usize,
    runs: usize,
    format: Format,
    only: String,
}

fn settings() -> Result<Settings, lexopt::Error> {
    let mut settings =
        Settings { jobs: 1_000_000, runs: 3, format: Format::Text, only: String::new() };
    let mut arguments = lexopt::Parser::from_env();
    while let Some(argument) = arguments.next()? {
        match argument {
            Long("jobs") => settings.jobs = arguments.value()?.parse()?,
            Long("runs") => settings.runs = arguments.value()?.parse()?,
            Long("markdown") => settings.format = Format::Markdown,
            Long("only") => settings.only = arguments.value()?.string()?,
            // What cargo itself passes.
            Long("bench") => {}
            Value(_) | Long(_) | lexopt::Arg::Short(_) => return Err(argument.unexpected()),
        }
    }
    Ok(settings)
}

fn main() -> Result<(), lexopt::Error> {
    let settings = settings()?;
    let rows: Vec<Row> =
        rows().into_iter().filter(|row| row.name.contains(&settings.only)).collect();
    for row in &rows {
        (row.check)(row.name);
    }
    println!(
        "{} jobs, medians of {} runs. All candidates keep the order.",
        settings.jobs, settings.runs
    );
    for workload in Workload::ALL {
        measure_all(&rows, workload, &settings);
    }
    Ok(())
}

fn measure_all(rows: &[Row], workload: Workload, settings: &Settings) {
    let script = Script::new(workload, settings.jobs);
    let mut samples: Vec<Vec<Sample>> = rows.iter().map(|_| Vec::new()).collect();
    // Candidate after candidate, then again: a slow stretch of the machine doesn't hit one alone.
    for _ in 0..settings.runs {
        for (row, samples) in rows.iter().zip(&mut samples) {
            samples.push((row.run)(row.name, &script));
        }
    }
    let medians: Vec<(&str, Sample)> = rows
        .iter()
        .zip(&samples)
        .map(|(row, samples)| (row.name, measure::median(samples)))
        .collect();
    report::print(workload.title(), &medians, settings.format);
    let widest = samples.iter().map(|samples| measure::spread_percent(samples)).fold(0.0, f64::max);
    println!("\nWidest spread of one candidate's runs: {widest:.0} %.");
}
