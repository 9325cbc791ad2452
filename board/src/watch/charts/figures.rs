//! The figures of charts: what became of a queue's jobs between two readings, and how it then stood.

use crate::server::queue::{Info, Lateness, Totals};

/// A number, or that it isn't known, in four bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(u32);

impl Default for Count {
    fn default() -> Count {
        Count(u32::MAX)
    }
}

impl From<Option<u32>> for Count {
    fn from(count: Option<u32>) -> Count {
        count.map_or(Count::default(), |count| Count(count.min(u32::MAX - 1)))
    }
}

impl Count {
    pub fn get(self) -> Option<u32> {
        (self.0 != u32::MAX).then_some(self.0)
    }

    pub fn add(&mut self, more: u64) {
        *self = Count::of(u64::from(self.get().unwrap_or(0)).saturating_add(more));
    }

    pub fn most(&mut self, other: u64) {
        *self = Count::of(u64::from(self.get().unwrap_or(0)).max(other));
    }

    fn of(number: u64) -> Count {
        Some(u32::try_from(number).unwrap_or(u32::MAX)).into()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    Added,
    Delivered,
    Finished,
    /// Attempts that ended otherwise: released, timed out, buried.
    Failed,
    Dead,
    Ready,
    OldestReady,
    LateP50,
    LateP99,
}

impl Figure {
    pub const ALL: [Figure; FIGURES] = [
        Figure::Added,
        Figure::Delivered,
        Figure::Finished,
        Figure::Failed,
        Figure::Dead,
        Figure::Ready,
        Figure::OldestReady,
        Figure::LateP50,
        Figure::LateP99,
    ];

    /// As pages call it.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Added => "added",
            Figure::Delivered => "delivered",
            Figure::Finished => "finished",
            Figure::Failed => "failed",
            Figure::Dead => "dead",
            Figure::Ready => "ready",
            Figure::OldestReady => "oldest ready",
            Figure::LateP50 => "late p50",
            Figure::LateP99 => "late p99",
        }
    }

    /// What it counts up: others are a most.
    pub fn is_sum(self) -> bool {
        match self {
            Figure::Added
            | Figure::Delivered
            | Figure::Finished
            | Figure::Failed
            | Figure::Dead => true,
            Figure::Ready | Figure::OldestReady | Figure::LateP50 | Figure::LateP99 => false,
        }
    }

    pub fn is_time(self) -> bool {
        matches!(self, Figure::OldestReady | Figure::LateP50 | Figure::LateP99)
    }
}

pub const FIGURES: usize = 9;

/// A slot of time: jobs; milliseconds for the oldest ready job, microseconds for lateness.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slot(pub [Count; FIGURES]);

impl Slot {
    pub fn get(&self, figure: Figure) -> Count {
        self.0.get(figure as usize).copied().unwrap_or_default()
    }

    pub fn of(&mut self, figure: Figure) -> Option<&mut Count> {
        self.0.get_mut(figure as usize)
    }

    /// Jobs, or milliseconds.
    pub fn value(&self, figure: Figure) -> Option<f64> {
        let value = f64::from(self.get(figure).get()?);
        let is_late = matches!(figure, Figure::LateP50 | Figure::LateP99);
        Some(if is_late { value / 1_000.0 } else { value })
    }
}

/// What all slots of a span tell, oldest first: jobs, or milliseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    pub start_ms: u64,
    pub slot_ms: u64,
    pub rows: Vec<Row>,
}

pub type Row = [Option<f64>; FIGURES];

impl Table {
    pub fn column(&self, figure: Figure) -> impl Iterator<Item = Option<f64>> + '_ {
        self.rows.iter().map(move |row| row.get(figure as usize).copied().flatten())
    }

    /// The sum, or the most, of what is known.
    pub fn all_in_all(&self, figure: Figure) -> Option<f64> {
        let known = self.column(figure).flatten();
        known.reduce(if figure.is_sum() { |sum, value| sum + value } else { f64::max })
    }
}

/// The upper ends of the steps of DQ.INFO's histogram of lateness; what is above them is the last.
const LATE_MS: [u64; 8] = [1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000];

/// How many jobs were so late, by step.
pub type Late = [u64; LATE_MS.len() + 1];

/// `None` where the module has other steps.
fn late_of(lateness: &Lateness) -> Option<Late> {
    let mut late = Late::default();
    let mut below = 0;
    for (step, ms) in late.iter_mut().zip(LATE_MS) {
        let (_, within) = lateness.within.iter().find(|(upper, _)| *upper == ms)?;
        *step = within.saturating_sub(below);
        below = *within;
    }
    *late.last_mut()? = lateness.count.saturating_sub(below);
    Some(late)
}

/// How late this share of the jobs was at most, in microseconds, as Prometheus estimates it: jobs
/// are taken to be spread evenly over their step. The step of the latest job ends at `most_ms`, the
/// latest that there was, so that no estimate is above it.
pub fn quantile_us(late: &Late, share: f64, most_ms: Option<u64>) -> Option<u64> {
    let most_ms = most_ms.unwrap_or(u64::MAX);
    let many: u64 = late.iter().sum();
    let rank = share * many as f64;
    let (mut below, mut lower_ms) = (0.0, 0);
    for (jobs, upper_ms) in late.iter().zip(LATE_MS) {
        if *jobs > 0 && below + *jobs as f64 >= rank {
            let part = (rank - below) / *jobs as f64;
            let step_ms = upper_ms.min(most_ms).saturating_sub(lower_ms);
            let us = (lower_ms as f64 + part * step_ms as f64) * 1_000.0;
            return Some((us as u64).min(most_ms.saturating_mul(1_000)));
        }
        (below, lower_ms) = (below + *jobs as f64, upper_ms);
    }
    (many > 0).then_some(lower_ms.min(most_ms) * 1_000)
}

/// What became of jobs between two readings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// Of the figures that are sums, in their order.
    pub sums: [u64; 5],
    pub late: Late,
    /// How late the latest job was that the server knows of, in milliseconds; `None` where it
    /// doesn't say.
    pub most_late_ms: Option<u64>,
}

impl Step {
    /// From when the queue was made.
    pub fn from_start(is: &Info) -> Step {
        Step {
            sums: sums_of(&is.totals),
            late: late_of(&is.lateness).unwrap_or_default(),
            most_late_ms: is.lateness.max_ms,
        }
    }

    /// `None` when it can't be told. Totals that have fallen to less than half are of a queue that was
    /// made anew; those that have only fallen are older ones, from a replica or a file.
    pub fn between(was: &Info, is: &Info) -> Option<Step> {
        if is.totals.added < was.totals.added / 2 {
            return Some(Step::from_start(is));
        }
        let (before, now) = (sums_of(&was.totals), sums_of(&is.totals));
        if before.iter().zip(&now).any(|(before, now)| now < before) {
            return None;
        }
        Some(Step {
            sums: less(&now, &before),
            late: late_between(was, is),
            most_late_ms: is.lateness.max_ms,
        })
    }

    pub fn is_quiet(&self) -> bool {
        self.sums.iter().all(|sum| *sum == 0)
    }
}

/// The server counts lateness from its start on.
fn late_between(was: &Info, is: &Info) -> Late {
    let Some(now) = late_of(&is.lateness) else { return Late::default() };
    match late_of(&was.lateness) {
        Some(before) if was.lateness.count <= is.lateness.count => less(&now, &before),
        _ => now,
    }
}

fn less<const N: usize>(from: &[u64; N], what: &[u64; N]) -> [u64; N] {
    let mut left = *from;
    left.iter_mut().zip(what).for_each(|(left, what)| *left = left.saturating_sub(*what));
    left
}

fn sums_of(totals: &Totals) -> [u64; 5] {
    let failed = totals.released + totals.timed_out + totals.buried;
    [totals.added, totals.popped, totals.finished, failed, totals.dead]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(added: u64, popped: u64, within: [u64; 8]) -> Info {
        let steps = LATE_MS.into_iter().zip(within).collect();
        let lateness = Lateness { within: steps, count: popped, ..Lateness::default() };
        let totals = Totals { added, popped, released: 2, buried: 1, ..Totals::default() };
        Info { totals, lateness, ..Info::default() }
    }

    #[test]
    fn a_step_is_the_difference_of_two_readings() {
        let was = info(10, 4, [1, 2, 2, 3, 4, 4, 4, 4]);
        let mut is = info(15, 8, [1, 2, 4, 5, 6, 6, 6, 7]);
        is.totals.timed_out = 5;
        let step = Step::between(&was, &is).unwrap();
        assert_eq!(step.sums, [5, 4, 0, 5, 0]);
        assert_eq!(step.late, [0, 0, 2, 0, 0, 0, 0, 1, 1]);
        assert_eq!(Step::between(&is, &is).map(|step| step.is_quiet()), Some(true));
    }

    #[test]
    fn a_queue_made_anew_counts_from_its_start_and_an_older_file_counts_nothing() {
        let within = [4; 8];
        let anew = Step::between(&info(1_000, 900, within), &info(7, 4, within)).unwrap();
        assert_eq!(anew.sums, [7, 4, 0, 3, 0]);
        assert_eq!(Step::between(&info(1_000, 900, within), &info(990, 900, within)), None);
        assert_eq!(Step::between(&info(1_000, 900, within), &info(1_000, 890, within)), None);
        // Only the server has started anew: it counts lateness from 0 again.
        let mut is = info(10, 9, [0; 8]);
        is.lateness.count = 0;
        assert_eq!(Step::between(&info(10, 9, [9; 8]), &is).unwrap().late, Late::default());
        let mut is = info(12, 11, [2; 8]);
        is.lateness.count = 2;
        let step = Step::between(&info(10, 9, [9; 8]), &is).unwrap();
        assert_eq!(step.late, [2, 0, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn quantiles_are_those_that_prometheus_estimates() {
        let of = |steps: [u64; 9], share| quantile_us(&steps, share, None);
        assert_eq!(of([0; 9], 0.5), None);
        assert_eq!(of([10, 0, 0, 0, 0, 0, 0, 0, 0], 0.5), Some(500));
        assert_eq!(of([50, 50, 0, 0, 0, 0, 0, 0, 0], 0.5), Some(1_000));
        assert_eq!(of([50, 0, 50, 0, 0, 0, 0, 0, 0], 0.99), Some(98_200));
        assert_eq!(of([0, 0, 0, 0, 0, 0, 0, 0, 3], 0.5), Some(3_600_000_000));
    }

    #[test]
    fn no_quantile_is_above_the_latest_that_there_was() {
        let of = |steps: [u64; 9], share, most_ms| quantile_us(&steps, share, Some(most_ms));
        // A step of 10 s to a minute, in which the latest job was 12 s late.
        assert_eq!(of([0, 0, 0, 0, 0, 100, 0, 0, 0], 0.5, 12_000), Some(11_000_000));
        assert_eq!(of([0, 0, 0, 0, 0, 100, 0, 0, 0], 1.0, 12_031), Some(12_031_000));
        assert_eq!(of([0, 0, 0, 0, 0, 0, 0, 10, 0], 0.99, 1_080_000), Some(1_075_200_000));
        assert_eq!(of([0, 0, 0, 0, 0, 0, 0, 0, 3], 0.5, 7_200_000), Some(3_600_000_000));
        // A server that was started again knows of none so late.
        assert_eq!(of([0, 0, 0, 0, 0, 0, 0, 0, 3], 0.5, 17), Some(17_000));
        for share in [0.01, 0.5, 0.99, 1.0] {
            for most_ms in [0, 1, 9, 10, 11, 999, 1_000, 59_999, 3_600_000, 1 << 47] {
                for step in 0..9 {
                    let mut steps = [1; 9];
                    steps[step] = 50;
                    assert!(of(steps, share, most_ms) <= Some(most_ms * 1_000));
                }
            }
        }
    }

    #[test]
    fn what_isn_t_known_is_no_number() {
        let mut count = Count::default();
        assert_eq!(count.get(), None);
        count.add(3);
        count.most(2);
        assert_eq!(count.get(), Some(3));
        count.add(u64::MAX);
        assert_eq!(count.get(), Some(u32::MAX - 1));
    }
}
