//! What was reached, kept in the repository, and the ceiling above it that CI holds new commits to.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use comfy_table::{presets, Cell, CellAlignment, Table};
use serde::{Deserialize, Serialize};

use super::Row;

const ALLOWANCE_PERCENT: f64 = 5.0;

#[derive(Serialize, Deserialize)]
pub struct Ceilings {
    /// The server they were measured with: another build of it has another SET.
    pub server: String,
    pub allowance_percent: f64,
    /// Instructions as a multiple of SET's, by the name of the row.
    pub reached: BTreeMap<String, f64>,
}

impl Ceilings {
    pub fn of(server: &str, rows: &[Row]) -> Ceilings {
        let of_module = rows.iter().filter(|row| row.has_ceiling());
        let reached = of_module.map(|row| (row.name.clone(), round(row.of_set))).collect();
        Ceilings { server: server.to_owned(), allowance_percent: ALLOWANCE_PERCENT, reached }
    }

    pub fn read(path: &Path) -> Result<Ceilings> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        std::fs::write(path, serde_json::to_string_pretty(self)? + "\n")?;
        Ok(())
    }

    /// A table of all rows, and whether each is under its ceiling. A row without a ceiling isn't:
    /// it was forgotten.
    pub fn compare(&self, rows: &[Row]) -> (Table, bool) {
        let mut table = Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(["row", "reached", "ceiling", "now", "change", ""]);
        let mut are_all_under = true;
        for row in rows.iter().filter(|row| row.has_ceiling()) {
            let cells = match self.reached.get(&row.name) {
                Some(&reached) => {
                    let ceiling = reached * (1.0 + self.allowance_percent / 100.0);
                    let is_under = row.of_set <= ceiling;
                    are_all_under &= is_under;
                    let change = 100.0 * (row.of_set / reached - 1.0);
                    let numbers = [
                        format!("{reached:.3}"),
                        format!("{ceiling:.3}"),
                        format!("{:.3}", row.of_set),
                    ];
                    let [reached, ceiling, now] = numbers;
                    [
                        reached,
                        ceiling,
                        now,
                        format!("{change:+.1} %"),
                        if is_under { "" } else { "TOO MUCH" }.into(),
                    ]
                }
                None => {
                    are_all_under = false;
                    ["", "", &format!("{:.3}", row.of_set), "", "NO CEILING"].map(str::to_owned)
                }
            };
            let cells =
                cells.into_iter().map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
            table.add_row([Cell::new(&row.title)].into_iter().chain(cells));
        }
        (table, are_all_under)
    }
}

fn round(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, of_set: f64) -> Row {
        Row {
            name: name.into(),
            title: name.into(),
            instructions: 0.0,
            of_set,
            of_floor: None,
            events: BTreeMap::new(),
        }
    }

    #[test]
    fn five_percent_above_the_ceiling_passes_and_more_does_not() {
        let ceilings = Ceilings::of("7.0.15", &[row("set", 1.0), row("add", 1.4)]);
        assert!(ceilings.compare(&[row("add", 1.469)]).1);
        assert!(!ceilings.compare(&[row("add", 1.471)]).1);
    }

    #[test]
    fn a_row_without_a_ceiling_fails() {
        let ceilings = Ceilings::of("7.0.15", &[row("add", 1.4)]);
        assert!(!ceilings.compare(&[row("add", 1.4), row("pop", 1.0)]).1);
    }

    #[test]
    fn rows_of_the_server_alone_have_no_ceiling() {
        let ceilings =
            Ceilings::of("7.0.15", &[row("set", 1.0), row("zadd", 1.4), row("add", 1.4)]);
        assert_eq!(ceilings.reached.keys().collect::<Vec<_>>(), ["add"]);
        assert!(ceilings.compare(&[row("zadd", 99.0)]).1);
    }
}
