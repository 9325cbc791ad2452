//! What was measured, as JSON keeps it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
pub struct Report {
    /// What of DQ was measured: a version, or a word such as "before".
    pub label: String,
    pub date: String,
    pub machine: String,
    /// Of the programs that took part.
    pub versions: BTreeMap<String, String>,
    pub settings: Settings,
    pub measurements: Vec<Measurement>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
}

#[derive(Serialize, Deserialize)]
pub struct Settings {
    pub connections: usize,
    pub depth: usize,
    pub rounds: usize,
    pub jobs: usize,
    pub due_at_once: usize,
    pub lateness_jobs: usize,
    pub stored: usize,
    /// Of one processor, by everybody else: a sample with more of it was dropped.
    pub tolerated: f64,
}

#[derive(Serialize, Deserialize)]
pub struct Measurement {
    pub row: String,
    pub contestant: String,
    /// With the append-only log, synced every second.
    pub aof: bool,
    pub metrics: BTreeMap<String, Metric>,
    /// As multiples of SET's in the same round.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of_set: BTreeMap<String, Metric>,
    /// How many samples other load disturbed, and by whom.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: usize,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed_by: Vec<String>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize, Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
    pub samples: usize,
}

impl Metric {
    pub fn of(mut values: Vec<f64>) -> Option<Metric> {
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            (values[middle - 1] + values[middle]) / 2.0
        };
        let [median, lowest, highest] = [median, lowest, highest].map(round);
        Some(Metric { median, lowest, highest, samples: values.len() })
    }
}

/// Five digits: more say nothing, and make the files longer.
fn round(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10_f64.powi(4 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

impl Report {
    pub fn read(path: &Path) -> Result<Report> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("in {}", path.display()))
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
    }

    pub fn find(&self, row: &str, contestant: &str, aof: bool) -> Option<&Measurement> {
        let is_it = |found: &&Measurement| {
            found.row == row && found.contestant == contestant && found.aof == aof
        };
        self.measurements.iter().find(is_it)
    }
}

impl Measurement {
    pub fn median(&self, metric: &str) -> Option<f64> {
        Some(self.metrics.get(metric)?.median)
    }

    pub fn median_of_set(&self, metric: &str) -> Option<f64> {
        Some(self.of_set.get(metric)?.median)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_numbers_of_samples() {
        assert_eq!(Metric::of(vec![3.0, 1.0, 2.0]).unwrap().median, 2.0);
        let four = Metric::of(vec![4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((four.median, four.lowest, four.highest, four.samples), (2.5, 1.0, 4.0, 4));
        assert_eq!(Metric::of(vec![]), None);
    }

    #[test]
    fn results_are_kept_to_five_digits() {
        assert_eq!(round(123_456.789), 123_460.0);
        assert_eq!(round(0.001_234_567), 0.001_234_6);
        assert_eq!(round(0.0), 0.0);
    }
}
