//! `charts`: tables and charts of docs/benchmarks.md, from the JSON that is kept beside it.
//!
//! The page's data are in DIRECTORY/before and, when there is something to compare with,
//! DIRECTORY/after: load.json and instructions.json, as `load` and `instructions` write them; and
//! sent.json, of the rows of what people send, where these were measured at another time. With
//! `--check` nothing is written, and the page has to be as it would be written: text and figures
//! can't drift apart.

mod bars;
mod page;

use std::path::{Path, PathBuf};

use anyhow::{bail, Result};
use clap::Args;
use plotters::style::RGBColor;

use crate::instructions;
use crate::load::results::{Measurement, Report};
use crate::load::tables::{self, Line, LOADS};
use bars::{Bar, Chart, Group};

const DQ_BEFORE: RGBColor = RGBColor(236, 157, 120);
const DQ: RGBColor = RGBColor(214, 82, 40);
const OTHERS: RGBColor = RGBColor(120, 144, 168);
const REFERENCE: RGBColor = RGBColor(190, 190, 190);

#[derive(Args)]
pub struct Arguments {
    /// The page whose tables are written
    #[arg(long, default_value = "docs/benchmarks.md")]
    page: PathBuf,
    /// Where before/ and after/ are, and where charts are drawn
    #[arg(long, default_value = "docs/benchmarks")]
    data: PathBuf,
    /// Write nothing; fail when the page isn't as it would be written
    #[arg(long)]
    check: bool,
}

/// One measurement of all.
struct Side {
    load: Report,
    /// What people send, measured at another time.
    sent: Option<Report>,
    instructions: instructions::Report,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let sides = read_sides(&arguments.data)?;
    let loads: Vec<&Report> = sides.iter().map(|side| &side.load).collect();
    let charts = charts(&loads);
    let page = std::fs::read_to_string(&arguments.page)?;
    let filled = page::fill(&page, &parts(&sides, &loads)?)?;

    if arguments.check {
        let scratch = tempfile::tempdir()?;
        draw(&charts, scratch.path())?;
        for (name, _) in &charts {
            let file = format!("{name}.svg");
            let [drawn, kept] = [scratch.path(), &arguments.data]
                .map(|directory| std::fs::read(directory.join(&file)).ok());
            if drawn != kept {
                bail!("{file} isn't what the figures give: run `make bench-docs`");
            }
        }
        if filled != page {
            bail!(
                "{} isn't what the figures give: run `make bench-docs`",
                arguments.page.display()
            );
        }
        return Ok(());
    }
    draw(&charts, &arguments.data)?;
    std::fs::write(&arguments.page, filled)?;
    Ok(())
}

fn draw(charts: &[(&str, Chart)], directory: &Path) -> Result<()> {
    charts.iter().try_for_each(|(name, chart)| chart.draw(&directory.join(format!("{name}.svg"))))
}

fn read_sides(data: &Path) -> Result<Vec<Side>> {
    let mut sides = Vec::new();
    for name in ["before", "after"] {
        let directory = data.join(name);
        if !directory.is_dir() {
            continue;
        }
        let load = Report::read(&directory.join("load.json"))?;
        let instructions = instructions::Report::read(&directory.join("instructions.json"))?;
        let sent = directory.join("sent.json");
        let sent = sent.is_file().then(|| Report::read(&sent)).transpose()?;
        sides.push(Side { load, sent, instructions });
    }
    if sides.is_empty() {
        bail!("neither before nor after in {}", data.display());
    }
    Ok(sides)
}

/// What the page has places for: each table, the machine, and what the reader has to know besides.
fn parts(sides: &[Side], loads: &[&Report]) -> Result<Vec<(String, String)>> {
    let mut parts: Vec<_> = tables::all(loads)
        .into_iter()
        .map(|titled| (titled.name.to_owned(), titled.table.to_string()))
        .collect();
    let sent: Vec<&Report> = sides.iter().filter_map(|side| side.sent.as_ref()).collect();
    if let Some(table) = tables::sent_table(&sent) {
        let notes = sent.iter().flat_map(|report| {
            let remarks = tables::remarks(report).into_iter();
            [description(report)].into_iter().chain(remarks.map(|remark| format!("- {remark}\n")))
        });
        parts
            .push((table.name.into(), format!("{}\n\n{}", table.table, notes.collect::<String>())));
    }
    let counts: Vec<_> = sides.iter().map(|side| (&*side.load.label, &side.instructions)).collect();
    parts.push(("instructions".into(), instructions::compared(&counts).to_string()));
    parts.push(("machine".into(), sides.iter().map(|side| description(&side.load)).collect()));
    let remarks: Vec<_> = loads
        .iter()
        .flat_map(|report| {
            tables::remarks(report)
                .into_iter()
                .map(|remark| format!("- DQ {}: {remark}", report.label))
        })
        .collect();
    let none = "None: no sample was dropped, and everybody took part.".to_owned();
    parts.push(("remarks".into(), if remarks.is_empty() { none } else { remarks.join("\n") }));
    Ok(parts)
}

fn description(report: &Report) -> String {
    let versions: Vec<_> =
        report.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let settings = &report.settings;
    format!(
        "- **DQ {}**, {}, on {}. With {}. {} connections with {} commands each under way; medians of {} rounds, in \
         which a sample is {} jobs.\n",
        report.label,
        report.date,
        report.machine,
        versions.join(", "),
        settings.connections,
        settings.depth,
        settings.rounds,
        settings.jobs,
    )
}

fn charts(loads: &[&Report]) -> Vec<(&'static str, Chart)> {
    let lines = tables::lines(loads);
    let last = loads.last().map_or("", |report| &*report.label);
    let chart = |title: &str, groups: Vec<Group>| Chart {
        title: title.to_owned(),
        groups: groups.into_iter().filter(|group| !group.bars.is_empty()).collect(),
    };
    let group = |title: &str,
                 row: &str,
                 aof: bool,
                 value: &dyn Fn(&Measurement) -> Option<f64>,
                 digits: usize| {
        let bar = |line: &Line| {
            let value = value(line.find(row, aof)?)?;
            let figure = format!("{value:.digits$}");
            Some(Bar { label: line.title.clone(), value, figure, colour: colour(line, last) })
        };
        // SET is 1 in each, and is itself a load of one only.
        let is_shown = |line: &&Line| {
            row == "enqueue" || row == "memory" || row == "persistence" || line.title != "SET"
        };
        Group {
            title: title.to_owned(),
            bars: lines.iter().filter(is_shown).filter_map(bar).collect(),
        }
    };
    let plain = |metric: &'static str| move |measurement: &Measurement| measurement.median(metric);
    let ratio =
        |metric: &'static str| move |measurement: &Measurement| measurement.median_of_set(metric);
    let throughput = |aof: bool| -> Vec<Group> {
        LOADS.iter().map(|(row, title)| group(title, row, aof, &ratio("jobs_per_s"), 2)).collect()
    };
    vec![
        (
            "throughput",
            chart("Jobs a second, as a multiple of SET's: longer is better", throughput(false)),
        ),
        (
            "throughput-aof",
            chart(
                "Jobs a second with AOF everysec, as a multiple of SET's: longer is better",
                throughput(true),
            ),
        ),
        (
            "costs",
            chart(
                "Processor time of the server for a job, as a multiple of SET's: shorter is better",
                LOADS
                    .iter()
                    .map(|(row, title)| group(title, row, false, &ratio("server_us"), 2))
                    .collect(),
            ),
        ),
        (
            "due-at-once",
            chart(
                "Many jobs due at once: shorter is better",
                vec![
                    group(
                        "seconds until all are consumed",
                        "due-at-once",
                        false,
                        &plain("seconds"),
                        2,
                    ),
                    group(
                        "worst PING meanwhile, ms",
                        "due-at-once",
                        false,
                        &plain("worst_ping_ms"),
                        1,
                    ),
                ],
            ),
        ),
        (
            "lateness",
            chart(
                "Lateness of a waiting consumer on an idle server, ms: shorter is better",
                vec![
                    group("half of all jobs (p50)", "lateness", false, &plain("p50_ms"), 2),
                    group("99 of 100 jobs (p99)", "lateness", false, &plain("p99_ms"), 2),
                ],
            ),
        ),
        (
            "memory",
            chart(
                "Bytes of memory a job, its 16 of id and 100 of body included: shorter is better",
                vec![group("", "memory", false, &plain("bytes_a_job"), 0)],
            ),
        ),
        (
            "persistence",
            chart(
                "Saving and loading, seconds: shorter is better",
                vec![
                    group("save RDB", "persistence", false, &plain("save_s"), 2),
                    group("load RDB", "persistence", false, &plain("load_s"), 2),
                    group("rewrite AOF", "persistence", false, &plain("rewrite_s"), 2),
                    group("load AOF", "persistence", false, &plain("log_load_s"), 2),
                ],
            ),
        ),
    ]
}

fn colour(line: &Line, last: &str) -> RGBColor {
    match line.contestant.name() {
        "dq" if line.report.label == last => DQ,
        "dq" => DQ_BEFORE,
        "set" => REFERENCE,
        _ => OTHERS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_and_its_charts_are_what_the_figures_give() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        let arguments = Arguments {
            page: docs.join("benchmarks.md"),
            data: docs.join("benchmarks"),
            check: true,
        };
        run(&arguments).unwrap();
    }
}
