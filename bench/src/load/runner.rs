//! Runs a row: round after round, each contestant once in each.
//!
//! What is slow for a while is slow for all in that round, and ratios are those of one round.
//! Samples that other load disturbed are dropped and taken again, a few times.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Result;

use super::contestants::{Contestant, Log};
use super::machine::{self, Usage};
use super::results::{Measurement, Metric};
use super::rows::{Environment, Metrics, Row};

const ATTEMPTS: usize = 3;

pub struct Patience {
    /// Of one processor, used by everybody else.
    pub tolerated: f64,
    /// How long to wait for the machine to become quiet before a sample.
    pub wait: Duration,
}

/// One contestant with or without a log, and its samples: one or none for each round.
struct Entry {
    contestant: Contestant,
    log: Log,
    samples: Vec<Option<Metrics>>,
    dropped: usize,
    disturbed_by: BTreeSet<String>,
}

pub fn run(
    environment: &Environment,
    row: &dyn Row,
    contestants: &[Contestant],
    patience: &Patience,
) -> Result<Vec<Measurement>> {
    let mut entries = Vec::new();
    for &log in row.logs() {
        for &contestant in contestants.iter().filter(|contestant| row.takes_part(**contestant)) {
            entries.push(Entry::new(contestant, log));
        }
    }
    let rounds = row.rounds(environment.scale.rounds).max(1);
    for round in 0..rounds {
        eprintln!("{}: round {} of {rounds}", row.name(), round + 1);
        // Another one begins each time: none is always the one behind the same other.
        let count = entries.len();
        for place in 0..count {
            entries[(place + round) % count].sample(environment, row, patience)?;
        }
    }
    Ok(entries.iter().map(|entry| entry.measurement(row, &entries)).collect())
}

impl Entry {
    fn new(contestant: Contestant, log: Log) -> Entry {
        let (samples, disturbed_by) = (Vec::new(), BTreeSet::new());
        Entry { contestant, log, samples, dropped: 0, disturbed_by }
    }

    fn sample(
        &mut self,
        environment: &Environment,
        row: &dyn Row,
        patience: &Patience,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            machine::wait_until_quiet(patience.tolerated, patience.wait)?;
            let sample = match row.sample(environment, self.contestant, self.log) {
                Ok(sample) => sample,
                Err(error) => {
                    self.drop_failed(&error);
                    continue;
                }
            };
            match sample.usage {
                Some(usage) if usage.others > patience.tolerated => self.drop_sample(&usage),
                _ => {
                    self.samples.push(Some(sample.metrics));
                    return Ok(());
                }
            }
        }
        self.samples.push(None);
        Ok(())
    }

    /// One that went wrong doesn't cost all others. It is told with the disturbances, for that is
    /// what it mostly is.
    fn drop_failed(&mut self, error: &anyhow::Error) {
        self.dropped += 1;
        let words = format!("{error:#}");
        eprintln!("  {} failed: {words}", self.contestant.title());
        self.disturbed_by
            .insert(format!("an error ({})", words.lines().next().unwrap_or_default()));
    }

    fn drop_sample(&mut self, usage: &Usage) {
        self.dropped += 1;
        let names = usage
            .culprits
            .iter()
            .filter_map(|culprit| culprit.rsplit_once(' ')?.0.rsplit_once(' '));
        self.disturbed_by.extend(names.map(|(name, _)| name.to_owned()));
        let share = 100.0 * usage.others;
        eprintln!(
            "  {} disturbed: others used {share:.0} % of a processor ({})",
            self.contestant.title(),
            if usage.culprits.is_empty() {
                "nobody who is still there".into()
            } else {
                usage.culprits.join(", ")
            }
        );
    }

    fn measurement(&self, row: &dyn Row, entries: &[Entry]) -> Measurement {
        let is_reference =
            |other: &&Entry| other.contestant == Contestant::Set && other.log == self.log;
        let reference = entries.iter().find(is_reference);
        let mut values: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (round, sample) in self.samples.iter().enumerate() {
            let Some(sample) = sample else { continue };
            let set = reference.and_then(|entry| entry.samples.get(round)?.as_ref());
            for (name, value) in sample {
                values.entry(name.clone()).or_default().push(*value);
                if row.ratios().contains(&&**name) {
                    if let Some(set) = set.and_then(|set| set.get(name)).filter(|set| **set > 0.0) {
                        ratios.entry(name.clone()).or_default().push(value / set);
                    }
                }
            }
        }
        let medians = |values: BTreeMap<String, Vec<f64>>| {
            values
                .into_iter()
                .filter_map(|(name, values)| Some((name, Metric::of(values)?)))
                .collect()
        };
        Measurement {
            row: row.name().to_owned(),
            contestant: self.contestant.name().to_owned(),
            aof: self.log == Log::EverySecond,
            metrics: medians(values),
            of_set: medians(ratios),
            dropped: self.dropped,
            disturbed_by: self.disturbed_by.iter().cloned().collect(),
        }
    }
}
