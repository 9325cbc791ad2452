//! `instructions`: what a command costs in the whole server, counted by callgrind.
//!
//! A count, not a time: it is the same on a busy machine and an idle one, and tells of a change of
//! one percent. What it doesn't tell is how long memory lets the server wait, which `load`
//! measures.
//!
//! A row of DQ's is counted on the floor, too: a module that does the least there is (`floor.c`).
//!
//! A server for each row, on a clock that we turn (`turned_clock.c`), over one connection, in
//! pipelines. It is first brought to N keys, jobs or elements, uncounted; then the commands of as
//! many more are counted, and nothing else: no start-up, no preparation.

mod ceilings;
mod clock;
mod driver;
mod libraries;
mod profile;
mod workload;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{bail, Context, Result};
use clap::Args;
use comfy_table::{presets, Cell, CellAlignment, Table};
use serde::{Deserialize, Serialize};

use crate::server;
use ceilings::Ceilings;
use driver::{Driver, Settings};
use profile::Cost;
use workload::{Workload, BY_NAME, N, REFERENCE, WORKLOADS};

#[derive(Args)]
pub struct Arguments {
    /// The module to measure
    #[arg(long, default_value = "target/release/libdq.so")]
    module: PathBuf,
    /// The server; what CI holds to is Debian's Redis 7.0.15
    #[arg(long, default_value = "/usr/bin/redis-server")]
    server: PathBuf,
    /// A line of redis.conf, such as "appendonly yes"; may be given more than once
    #[arg(long, value_name = "LINE")]
    config: Vec<String>,
    /// Only these rows, and SET's: ping, set, xadd, zadd, add, add-delay-ttr, add-drawn, pop,
    /// finish, pop-16, finish-16. Only when they are named here: add-every, add-cron, add-after,
    /// finish-edge, finish-last-edge, add-to-groups, pop-limited, pop-16-limited and, which take
    /// longer, pop-of-million, pop-of-groups, pop-16-of-million, pop-16-of-groups
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    only: Vec<String>,
    /// Fail when a row is above its ceiling; the floor isn't counted then
    #[arg(long)]
    check: bool,
    /// Make what is measured now the figures that --check goes by
    #[arg(long, conflicts_with_all = ["check", "only", "config"])]
    record: bool,
    /// Where the ceilings are
    #[arg(long, default_value = "bench/ceilings.json")]
    ceilings: PathBuf,
    /// Count misses of simulated caches, too: slower, and with --profile the functions that miss
    /// most
    #[arg(long)]
    caches: bool,
    /// Print so many of the functions that take most, of each row
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "40")]
    profile: Option<usize>,
    /// Keep what callgrind wrote in this directory, a file a row, for callgrind_annotate and
    /// kcachegrind
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Where the JSON goes
    #[arg(long, default_value = "target/bench/instructions.json")]
    json: PathBuf,
    /// How many servers run at a time; it doesn't change the counts
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, usize::from))]
    jobs: usize,
}

#[derive(Serialize, Deserialize)]
pub struct Row {
    name: String,
    title: String,
    /// For each command; for each job, where a command is about several.
    instructions: f64,
    of_set: f64,
    /// Likewise as a multiple of what the floor takes for the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    of_floor: Option<f64>,
    /// All that callgrind counted, likewise.
    events: BTreeMap<String, f64>,
}

impl Row {
    /// Those of the module that are always counted: each has a ceiling.
    fn has_ceiling(&self) -> bool {
        WORKLOADS.iter().any(|workload| workload.name == self.name && workload.has_floor())
    }
}

#[derive(Serialize, Deserialize)]
pub struct Report {
    /// Redis's version.
    server: String,
    /// How many keys, jobs or elements were there, and how many commands were counted.
    counted: usize,
    rows: Vec<Row>,
}

impl Report {
    pub fn read(path: &Path) -> Result<Report> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    fn write(&self, path: &Path) -> Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }
}

/// A line a row, and for each measurement, by its label, instructions and the multiple of SET's; of
/// the floor's, too, where it was counted.
pub fn compared(reports: &[(&str, &Report)]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    let has_floor = |report: &Report| report.rows.iter().any(|row| row.of_floor.is_some());
    let mut heads = vec![String::new()];
    for (label, report) in reports {
        heads.extend([format!("DQ {label}"), format!("{label}, of SET's")]);
        heads.extend(has_floor(report).then(|| format!("{label}, of the floor's")));
    }
    table.set_header(heads);
    for workload in &WORKLOADS {
        let mut cells = vec![Cell::new(workload.title)];
        for (_, report) in reports {
            let row = report.rows.iter().find(|row| row.name == workload.name);
            let mut numbers = row.map_or_else(Default::default, |row| {
                vec![
                    format!("{:.0}", row.instructions),
                    format!("{:.3}", row.of_set),
                    of_floor(row),
                ]
            });
            numbers.resize(2 + usize::from(has_floor(report)), String::new());
            let right = |text| Cell::new(text).set_alignment(CellAlignment::Right);
            cells.extend(numbers.into_iter().map(right));
        }
        table.add_row(cells);
    }
    table
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let workloads = chosen(&arguments.only)?;
    let version = server::version(&arguments.server)?;
    let module = arguments
        .module
        .canonicalize()
        .with_context(|| format!("no module {}", arguments.module.display()))?;

    let scratch = tempfile::tempdir()?;
    let directory = match &arguments.keep {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            directory.canonicalize()?
        }
        None => scratch.path().to_owned(),
    };
    let clock_library = libraries::turned_clock(scratch.path())?;
    let settings = Settings {
        program: &arguments.server,
        module: &module,
        clock_library: &clock_library,
        simulate_caches: arguments.caches,
        config: &arguments.config,
    };
    let dumps = count_all(&settings, &workloads, &directory, arguments.jobs)?;
    let on_floor: Vec<_> =
        workloads.iter().filter(|row| row.has_floor() && !arguments.check).copied().collect();
    let floor_directory = tempfile::tempdir()?;
    let floor = libraries::floor(floor_directory.path())?;
    let settings = Settings { module: &floor, ..settings };
    let floor_dumps = count_all(&settings, &on_floor, floor_directory.path(), arguments.jobs)?;

    if let Some(count) = arguments.profile {
        for (workload, dump) in workloads.iter().zip(&dumps) {
            print_profile(workload, dump, count, arguments.caches)?;
        }
    }
    let floor = on_floor.iter().zip(&floor_dumps);
    let floor = floor.map(|(workload, dump)| Ok((workload.name, instructions(dump)?)));
    let floor: BTreeMap<_, _> = floor.collect::<Result<_>>()?;
    let report = Report { server: version, counted: N, rows: rows(&workloads, &dumps, &floor)? };
    println!(
        "\nInstructions a command (or a job) in the whole server, Redis {}, {}",
        report.server,
        module.display()
    );
    println!("{}", table(&report.rows, arguments.caches));
    report.write(&arguments.json)?;
    if let Some(directory) = &arguments.keep {
        println!(
            "callgrind's files are in {}: callgrind_annotate FILE, or kcachegrind FILE",
            directory.display()
        );
    }
    if arguments.record {
        Ceilings::of(&report.server, &report.rows).write(&arguments.ceilings)?;
    }
    if arguments.check {
        return check(&Ceilings::read(&arguments.ceilings)?, &report.server, &report.rows);
    }
    Ok(())
}

/// The rows asked for, in the table's order. The reference is always among them.
fn chosen(only: &[String]) -> Result<Vec<&'static Workload>> {
    let all = || WORKLOADS.iter().chain(&BY_NAME);
    if let Some(unknown) = only.iter().find(|name| !all().any(|workload| workload.name == **name)) {
        let names: Vec<_> = all().map(|workload| workload.name).collect();
        bail!("no row is called {unknown}; there are {}", names.join(", "));
    }
    if only.is_empty() {
        return Ok(WORKLOADS.iter().collect());
    }
    let is_chosen = |name: &str| name == REFERENCE || only.iter().any(|other| other == name);
    Ok(all().filter(|workload| is_chosen(workload.name)).collect())
}

/// A file of callgrind's for each workload.
fn count_all(
    settings: &Settings,
    workloads: &[&'static Workload],
    directory: &Path,
    at_a_time: usize,
) -> Result<Vec<PathBuf>> {
    let next = Mutex::new(workloads.iter().enumerate());
    let dumps: Mutex<Vec<(usize, Result<PathBuf>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.clamp(1, workloads.len().max(1)) {
            scope.spawn(|| loop {
                let Some((place, workload)) = next.lock().ok().and_then(|mut next| next.next())
                else {
                    return;
                };
                eprintln!("counting {}", workload.title);
                let dump = count(settings, workload, directory).with_context(|| workload.title);
                if let Ok(mut dumps) = dumps.lock() {
                    dumps.push((place, dump));
                }
            });
        }
    });
    let mut dumps = dumps.into_inner().unwrap_or_default();
    dumps.sort_by_key(|(place, _)| *place);
    dumps.into_iter().map(|(_, dump)| dump).collect()
}

fn count(settings: &Settings, workload: &Workload, directory: &Path) -> Result<PathBuf> {
    let output = directory.join(format!("callgrind.{}", workload.name));
    let mut driver = Driver::start(settings, &output)?;
    let commands = workload.prepare(&mut driver)?;
    let dump = driver.count(&commands, workload.jobs)?;
    // What callgrind writes at the server's end is about nothing.
    let _ = std::fs::remove_file(&output);
    std::fs::rename(dump, &output)?;
    Ok(output)
}

/// All that callgrind counted, for each command or job.
fn events(dump: &Path) -> Result<BTreeMap<String, f64>> {
    let each = |(name, sum): (String, u64)| (name, sum as f64 / N as f64);
    Ok(profile::totals(dump)?.into_iter().map(each).collect())
}

fn instructions(dump: &Path) -> Result<f64> {
    events(dump)?.get("Ir").copied().context("callgrind counted no instructions")
}

/// `floor` has the floor's instructions, by the names of rows.
fn rows(
    workloads: &[&Workload],
    dumps: &[PathBuf],
    floor: &BTreeMap<&str, f64>,
) -> Result<Vec<Row>> {
    let counted = || workloads.iter().zip(dumps);
    let (_, set) =
        counted().find(|(row, _)| row.name == REFERENCE).context("SET wasn't measured")?;
    let set = instructions(set)?;
    let row = |(workload, dump): (&&Workload, &PathBuf)| {
        let instructions = instructions(dump)?;
        Ok(Row {
            name: workload.name.to_owned(),
            title: workload.title.to_owned(),
            instructions,
            of_set: instructions / set,
            of_floor: floor.get(workload.name).map(|floor| instructions / floor),
            events: events(dump)?,
        })
    };
    counted().map(row).collect()
}

fn of_floor(row: &Row) -> String {
    row.of_floor.map_or_else(String::new, |ratio| format!("{ratio:.2}"))
}

fn table(rows: &[Row], caches: bool) -> Table {
    const CACHES: [(&str, &[&str]); 3] = [
        ("I1 misses", &["I1mr"]),
        ("D1 misses", &["D1mr", "D1mw"]),
        ("LL misses", &["ILmr", "DLmr", "DLmw"]),
    ];
    let caches: &[_] = if caches { &CACHES } else { &[] };
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header(
        ["", "instructions", "of SET's", "of the floor's"]
            .into_iter()
            .chain(caches.iter().map(|(title, _)| *title)),
    );
    for row in rows {
        let numbers =
            [format!("{:.0}", row.instructions), format!("{:.3}", row.of_set), of_floor(row)];
        let misses = caches.iter().map(|(_, events)| {
            let counts = events.iter().filter_map(|event| row.events.get(*event));
            format!("{:.2}", counts.sum::<f64>())
        });
        let numbers = numbers.into_iter().chain(misses);
        let numbers = numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(&row.title)].into_iter().chain(numbers));
    }
    table
}

fn print_profile(workload: &Workload, dump: &Path, count: usize, caches: bool) -> Result<()> {
    let mut parts = vec![
        ("Ir", Cost::Own, "instructions of the function itself"),
        ("Ir", Cost::Inclusive, "instructions with all that it calls"),
    ];
    if caches {
        parts.push(("I1mr", Cost::Own, "misses of the instruction cache, of the function itself"));
        parts.push(("D1mr", Cost::Own, "read misses of the D1 cache, of the function itself"));
        parts.push((
            "DLmr",
            Cost::Own,
            "read misses of the last-level cache, of the function itself",
        ));
    }
    for (event, cost, what) in parts {
        println!("\n## {}: {what}, for each command (or job)", workload.title);
        for function in profile::top_functions(dump, cost, event, count)? {
            println!(
                "{:>10.2}  {:18} {}",
                function.events as f64 / N as f64,
                function.object,
                function.name
            );
        }
    }
    Ok(())
}

fn check(ceilings: &Ceilings, version: &str, rows: &[Row]) -> Result<()> {
    if version != ceilings.server {
        bail!(
            "the ceilings are for Redis {}, and this is {version}: SET costs otherwise there",
            ceilings.server
        );
    }
    let (table, are_all_under) = ceilings.compare(rows);
    println!(
        "\nAs multiples of SET's instructions; a ceiling is {} % above what was reached.",
        ceilings.allowance_percent
    );
    println!("{table}");
    if !are_all_under {
        bail!("a row is above its ceiling; --profile shows where the instructions go, --record accepts them");
    }
    Ok(())
}
