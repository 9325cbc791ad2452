//! When the jobs are due, and in which order they are cancelled. The same at each run.

use fastrand::Rng;

pub const ID_BYTES: usize = 15;
pub const BODY_BYTES: usize = 64;
pub const START_MS: u64 = 1_763_725_200_000;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;
const SEED: u64 = 1_763_725_200;

#[derive(Clone, Copy)]
pub enum Workload {
    Dense,
    HundredAMs,
    OneAMs,
    OverAsManyMs,
    OverADay,
}

impl Workload {
    pub const ALL: [Workload; 5] = [
        Workload::Dense,
        Workload::HundredAMs,
        Workload::OneAMs,
        Workload::OverAsManyMs,
        Workload::OverADay,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Workload::Dense => "Dense: all jobs due in one millisecond",
            Workload::HundredAMs => "Traffic: 100 jobs a millisecond, each an hour ahead",
            Workload::OneAMs => "Sparse: one job a millisecond, each an hour ahead",
            Workload::OverAsManyMs => {
                "Random: due anywhere in as many milliseconds as there are jobs"
            }
            Workload::OverADay => "Random over a day: due anywhere in 24 hours",
        }
    }

    fn due_ms(self, number: usize, jobs: usize, rng: &mut Rng) -> u64 {
        let number = number as u64;
        let ahead_ms = match self {
            Workload::Dense => 0,
            Workload::HundredAMs => number / 100,
            Workload::OneAMs => number,
            Workload::OverAsManyMs => rng.u64(..jobs as u64),
            Workload::OverADay => rng.u64(..DAY_MS),
        };
        START_MS + HOUR_MS + ahead_ms
    }
}

/// A script: `jobs` are added, half of them cancelled, as many others added.
pub struct Script {
    pub jobs: usize,
    /// By the number of the job; the last third are those added after the cancels.
    pub due_ms: Vec<u64>,
    pub ids: Vec<[u8; ID_BYTES]>,
    pub cancelled: Vec<u32>,
    pub last_due_ms: u64,
}

impl Script {
    pub fn new(workload: Workload, jobs: usize) -> Self {
        let mut rng = Rng::with_seed(SEED);
        let all = jobs + jobs / 2;
        let due_ms: Vec<u64> =
            (0..all).map(|number| workload.due_ms(number, jobs, &mut rng)).collect();
        let mut cancelled: Vec<u32> = (0..jobs as u32).collect();
        rng.shuffle(&mut cancelled);
        cancelled.truncate(jobs / 2);
        Script {
            jobs,
            last_due_ms: due_ms.iter().copied().max().unwrap_or(START_MS),
            due_ms,
            ids: (0..all).map(id).collect(),
            cancelled,
        }
    }

    /// The numbers of the jobs that are left, in the order in which they have to leave.
    pub fn order_of_leaving(&self) -> Vec<u32> {
        let mut is_left = vec![true; self.ids.len()];
        for number in &self.cancelled {
            is_left[*number as usize] = false;
        }
        let mut left: Vec<u32> =
            (0..self.ids.len() as u32).filter(|n| is_left[*n as usize]).collect();
        left.sort_by_key(|number| self.due_ms[*number as usize]);
        left
    }
}

/// Such as the server makes them: "1763725200000-7".
fn id(number: usize) -> [u8; ID_BYTES] {
    let mut bytes = [b'0'; ID_BYTES];
    let text = format!("{}-{}", START_MS + number as u64 / 10, number % 10);
    bytes.copy_from_slice(text.as_bytes());
    bytes
}
