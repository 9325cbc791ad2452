//! The tables.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, Table};

use crate::measure::Sample;

#[derive(Clone, Copy)]
pub enum Format {
    Text,
    Markdown,
}

const COLUMNS: [&str; 10] = [
    "candidate",
    "add ns",
    "longest add µs",
    "cancel ns",
    "promote ms",
    "longest slice µs",
    "pop ns",
    "bytes/job",
    "rounded",
    "churned",
];

pub fn print(title: &str, rows: &[(&str, Sample)], format: Format) {
    let mut table = Table::new();
    match format {
        Format::Text => println!("\n{title}"),
        Format::Markdown => println!("\n**{title}**\n"),
    };
    table.load_preset(match format {
        Format::Text => NOTHING,
        Format::Markdown => ASCII_MARKDOWN,
    });
    table.set_header(COLUMNS);
    for (name, sample) in rows {
        table.add_row(cells(name, sample));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    println!("{}", table.trim_fmt());
}

fn cells(name: &str, sample: &Sample) -> [String; COLUMNS.len()] {
    [
        name.to_string(),
        whole(sample.add_ns),
        whole(sample.longest_add_us),
        whole(sample.cancel_ns),
        format!("{:.1}", sample.promote_ms),
        whole(sample.longest_slice_us),
        whole(sample.pop_ns),
        format!("{:.1}", sample.bytes_requested),
        format!("{:.1}", sample.bytes_rounded),
        format!("{:.1}", sample.bytes_churned),
    ]
}

/// With commas between thousands.
fn whole(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
