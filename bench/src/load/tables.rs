//! The tables, of one measurement or of an earlier one and a later one: then DQ has a line for
//! each.

use comfy_table::{presets, Cell, CellAlignment, Table};

use super::contestants::Contestant;
use super::results::{Measurement, Metric, Report};
use super::rows::sent;

/// A client that uses so much of a processor is what was measured, and not the server.
const BUSY_CLIENT: f64 = 0.95;
/// Of the time of a measurement.
const LONG_WAIT: f64 = 0.1;
const LIMITED: &str = " °";
const NOTHING: &str = "–";

pub struct Titled {
    /// As the page's markers name it.
    pub name: &'static str,
    pub title: &'static str,
    pub table: Table,
}

/// One line of a table: a contestant in a measurement.
pub struct Line<'a> {
    pub title: String,
    pub contestant: Contestant,
    pub report: &'a Report,
}

/// Earlier measurements come first in `reports`. What isn't DQ is told by the last of them.
pub fn lines<'a>(reports: &[&'a Report]) -> Vec<Line<'a>> {
    let Some((&last, earlier)) = reports.split_last() else { return Vec::new() };
    let mut lines = Vec::new();
    for contestant in Contestant::ALL {
        let title = contestant.title().to_owned();
        if contestant == Contestant::Dq && !earlier.is_empty() {
            let labelled = |report: &&'a Report| Line {
                title: format!("{title} {}", report.label),
                contestant,
                report,
            };
            lines.extend(reports.iter().map(labelled));
        } else {
            lines.push(Line { title, contestant, report: last });
        }
    }
    lines
}

impl Line<'_> {
    pub fn find(&self, row: &str, aof: bool) -> Option<&Measurement> {
        self.report.find(row, self.contestant.name(), aof)
    }
}

/// What a cell says, of one line.
type Content = Box<dyn Fn(&Line) -> Option<String>>;

struct Column {
    head: String,
    content: Content,
}

pub fn all(reports: &[&Report]) -> Vec<Titled> {
    let lines = lines(reports);
    let tables = [
        (
            "ratios",
            "Jobs a second, as a multiple of SET's in the same round",
            throughput_columns(ratio),
        ),
        ("rates", "Jobs a second, in thousands", throughput_columns(rate)),
        (
            "costs",
            "Processor time of the server for a job, µs (and as a multiple of SET's)",
            throughput_columns(cost),
        ),
        ("shares", "Of a processor, in percent: server / generator", throughput_columns(shares)),
        ("due-at-once", "Due at once: all are consumed, and a client pings", due_columns()),
        ("lateness", "Lateness of a waiting consumer, ms", lateness_columns()),
        ("memory", "Memory", memory_columns()),
        ("persistence", "Files, seconds (and as a multiple of SET's)", persistence_columns()),
    ];
    let tables = tables.into_iter().filter_map(|(name, title, columns)| {
        Some(Titled { name, title, table: table(&lines, &columns)? })
    });
    tables.chain(sent_table(reports)).collect()
}

/// What people send: a line for each load and each build.
pub fn sent_table(reports: &[&Report]) -> Option<Titled> {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([
        "",
        "",
        "thousand/s",
        "of SET's",
        "server µs",
        "main thread µs",
        "bytes a job",
    ]);
    let sent = sent::ALL.map(|sent| (sent.name, sent.title));
    // Beside these, where they were measured with them.
    let others = [("life", "life"), ("batches", "batches of 16")];
    for report in reports {
        let find = |row, contestant: Contestant| report.find(row, contestant.name(), false);
        if sent.iter().all(|(row, _)| find(row, Contestant::Dq).is_none()) {
            continue;
        }
        for (row, title) in sent.iter().chain(&others) {
            let mut title = *title;
            for contestant in [Contestant::Set, Contestant::DqBefore, Contestant::Dq] {
                let Some(cells) = find(row, contestant).and_then(sent_cells) else { continue };
                let cells = cells
                    .into_iter()
                    .map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
                let names = [Cell::new(title), Cell::new(contestant.title())];
                table.add_row(names.into_iter().chain(cells));
                title = "";
            }
        }
    }
    let title = "What people send: ADD with DELAY and TTR (and as a multiple of SET's)";
    (table.row_count() > 0).then_some(Titled { name: "sent", title, table })
}

fn sent_cells(measurement: &Measurement) -> Option<[String; 5]> {
    let with_ratio = |metric, digits: usize| {
        let (value, ratio) = (measurement.median(metric)?, measurement.median_of_set(metric)?);
        Some(format!("{value:.digits$} ({ratio:.2})"))
    };
    Some([
        format!("{:.0}{}", measurement.median("jobs_per_s")? / 1000.0, limited(measurement)),
        format!("{:.3}", measurement.median_of_set("jobs_per_s")?),
        with_ratio("server_us", 2)?,
        with_ratio("main_us", 2)?,
        with_ratio("bytes_a_job", 0).unwrap_or_else(|| NOTHING.into()),
    ])
}

/// For a terminal: all tables, and what was left out or disturbed.
pub fn text(report: &Report) -> String {
    let mut text = format!("DQ {}, {}\n{}\n", report.label, report.date, report.machine);
    for Titled { title, table, .. } in all(&[report]) {
        text += &format!("\n{title}\n{table}\n");
    }
    text += &format!(
        "{} its client used a whole processor: that client was measured, not the server\n",
        LIMITED.trim()
    );
    for remark in remarks(report) {
        text += &format!("{remark}\n");
    }
    text
}

/// What the reader of the tables has to know besides.
pub fn remarks(report: &Report) -> Vec<String> {
    let mut remarks = report.skipped.clone();
    remarks.extend(busy_machine(report));
    for measurement in report.measurements.iter().filter(|measurement| measurement.dropped > 0) {
        let Measurement { row, contestant, aof, dropped, disturbed_by, .. } = measurement;
        let log = if *aof { " with AOF" } else { "" };
        let left = measurement.metrics.values().next().map_or(0, |metric| metric.samples);
        let names =
            if disturbed_by.is_empty() { "others".to_owned() } else { disturbed_by.join(", ") };
        let samples = if *dropped == 1 { "sample" } else { "samples" };
        remarks.push(format!(
            "{row}, {contestant}{log}: {dropped} {samples} dropped, disturbed by {names}; {left} left"
        ));
    }
    remarks
}

/// A server that waits for a processor isn't alone on the machine.
fn busy_machine(report: &Report) -> Option<String> {
    let waited =
        report.measurements.iter().filter_map(|measurement| measurement.median("server_waited"));
    let waited = Metric::of(waited.collect())?.median;
    (waited > LONG_WAIT).then(|| {
        format!(
            "the machine was busy with other work: servers that could have run waited for a processor for {:.0} % of \
             the time (median). Ratios and processor time bear that, seconds and milliseconds don't",
            100.0 * waited
        )
    })
}

fn table(lines: &[Line], columns: &[Column]) -> Option<Table> {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_MARKDOWN);
    table.set_header([""].into_iter().chain(columns.iter().map(|column| &*column.head)));
    for line in lines {
        let cells: Vec<_> = columns.iter().map(|column| (column.content)(line)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let cells = cells.into_iter().map(|cell| cell.unwrap_or_else(|| NOTHING.into()));
        let cells = cells.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(&line.title)].into_iter().chain(cells));
    }
    (table.row_count() > 0).then_some(table)
}

pub const LOADS: [(&str, &str); 4] = [
    ("enqueue", "enqueue"),
    ("delayed", "delayed"),
    ("life", "life"),
    ("batches", "batches of 16"),
];

fn throughput_columns(cell: fn(&Line, &'static str, bool) -> Option<String>) -> Vec<Column> {
    let column = |(row, title): (&'static str, &str), aof: bool| {
        let head = if aof { format!("{title}, AOF") } else { title.to_owned() };
        Column { head, content: Box::new(move |line: &Line| cell(line, row, aof)) as Content }
    };
    let without = LOADS.map(|load| column(load, false));
    let with = LOADS.map(|load| column(load, true));
    without.into_iter().chain(with).collect()
}

/// SET has a figure where it is a row of the table: where jobs are added.
fn throughput<'a>(line: &'a Line, row: &str, aof: bool) -> Option<&'a Measurement> {
    line.find(row, aof).filter(|_| line.contestant != Contestant::Set || row == "enqueue")
}

fn limited(measurement: &Measurement) -> &'static str {
    let is_limited = measurement.median("client_cpu").is_some_and(|share| share > BUSY_CLIENT);
    if is_limited {
        LIMITED
    } else {
        ""
    }
}

fn ratio(line: &Line, row: &'static str, aof: bool) -> Option<String> {
    let measurement = throughput(line, row, aof)?;
    Some(format!("{:.3}{}", measurement.median_of_set("jobs_per_s")?, limited(measurement)))
}

fn rate(line: &Line, row: &'static str, aof: bool) -> Option<String> {
    let measurement = throughput(line, row, aof)?;
    Some(format!("{:.0}{}", measurement.median("jobs_per_s")? / 1000.0, limited(measurement)))
}

fn cost(line: &Line, row: &'static str, aof: bool) -> Option<String> {
    let measurement = throughput(line, row, aof)?;
    let (us, of_set) = (measurement.median("server_us")?, measurement.median_of_set("server_us")?);
    Some(format!("{us:.2} ({of_set:.2})"))
}

fn shares(line: &Line, row: &'static str, aof: bool) -> Option<String> {
    let measurement = throughput(line, row, aof)?;
    let percent = |metric| Some(format!("{:.0}", 100.0 * measurement.median(metric)?));
    Some(format!("{} / {}", percent("server_cpu")?, percent("client_cpu")?))
}

/// A column of a metric as it is.
fn plain(head: &str, row: &'static str, metric: &'static str, aof: bool, digits: usize) -> Column {
    let content = move |line: &Line| {
        let value = line.find(row, aof)?.median(metric)?;
        Some(format!("{value:.digits$}"))
    };
    Column { head: head.to_owned(), content: Box::new(content) }
}

fn due_columns() -> Vec<Column> {
    let row = "due-at-once";
    vec![
        plain("jobs", row, "jobs", false, 0),
        plain("seconds", row, "seconds", false, 3),
        Column {
            head: "thousand jobs/s".into(),
            content: Box::new(move |line| {
                let measurement = line.find(row, false)?;
                Some(format!("{:.0}", measurement.median("jobs_per_s")? / 1000.0))
            }),
        },
        plain("worst PING, ms", row, "worst_ping_ms", false, 2),
        plain("p99 PING, ms", row, "p99_ping_ms", false, 2),
        plain("worst while idle, ms", row, "worst_idle_ping_ms", false, 2),
        plain("seconds, AOF", row, "seconds", true, 3),
        plain("worst PING, AOF, ms", row, "worst_ping_ms", true, 2),
    ]
}

fn lateness_columns() -> Vec<Column> {
    let row = "lateness";
    vec![
        plain("p50", row, "p50_ms", false, 2),
        plain("p99", row, "p99_ms", false, 2),
        plain("worst", row, "worst_ms", false, 2),
        plain("p50, AOF", row, "p50_ms", true, 2),
        plain("p99, AOF", row, "p99_ms", true, 2),
        plain("worst, AOF", row, "worst_ms", true, 2),
    ]
}

fn memory_columns() -> Vec<Column> {
    let of_set = |line: &Line| {
        Some(format!("{:.2}", line.find("memory", false)?.median_of_set("bytes_a_job")?))
    };
    vec![
        plain("bytes a job", "memory", "bytes_a_job", false, 0),
        Column { head: "of SET's".into(), content: Box::new(of_set) },
        plain("jobs", "memory", "jobs", false, 0),
    ]
}

fn persistence_columns() -> Vec<Column> {
    let row = "persistence";
    let column = |head: &str, metric: &'static str, digits: usize| {
        let content = move |line: &Line| {
            let measurement = line.find(row, false)?;
            let (value, of_set) = (measurement.median(metric)?, measurement.median_of_set(metric));
            Some(match of_set.filter(|_| line.contestant != Contestant::Set) {
                Some(of_set) => format!("{value:.digits$} ({of_set:.2})"),
                None => format!("{value:.digits$}"),
            })
        };
        Column { head: head.to_owned(), content: Box::new(content) }
    };
    vec![
        column("save", "save_s", 2),
        column("load", "load_s", 2),
        column("rewrite AOF", "rewrite_s", 2),
        column("load AOF", "log_load_s", 2),
        column("RDB bytes a job", "file_bytes_a_job", 0),
        column("AOF bytes a job", "log_bytes_a_job", 0),
    ]
}
