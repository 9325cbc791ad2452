//! Each candidate against an obvious, slow one, before it is measured: random operations, many
//! jobs of one millisecond, promotions that stop halfway, pops in their midst.

use std::collections::{BTreeMap, HashMap};

use fastrand::Rng;

use crate::candidate::Candidate;

const OPERATIONS: usize = 60_000;
const SEED: u64 = 6;
/// Jobs are due within so many ms: few, so that times collide.
const AHEAD_MS: u64 = 400;

#[derive(Default)]
struct Obvious {
    jobs: BTreeMap<(u64, u64), Vec<u8>>,
    keys: HashMap<Vec<u8>, (u64, u64)>,
    added: u64,
}

impl Obvious {
    fn add(&mut self, id: &[u8], due_ms: u64) -> bool {
        if self.keys.contains_key(id) {
            return false;
        }
        self.added += 1;
        let key = (due_ms, self.added);
        self.jobs.insert(key, id.to_vec());
        self.keys.insert(id.to_vec(), key);
        true
    }

    fn cancel(&mut self, id: &[u8]) -> bool {
        self.keys.remove(id).is_some_and(|key| self.jobs.remove(&key).is_some())
    }

    fn pop(&mut self, now_ms: u64) -> Option<Vec<u8>> {
        let first = self.jobs.first_entry().filter(|job| job.key().0 <= now_ms)?;
        let id = first.remove();
        self.keys.remove(&id);
        Some(id)
    }

    fn due(&self, now_ms: u64) -> usize {
        self.jobs.range(..=(now_ms, u64::MAX)).count()
    }
}

/// # Panics
/// At the first reply that differs.
pub fn keeps_the_contract<C: Candidate>(name: &str) {
    let mut rng = Rng::with_seed(SEED);
    let mut now_ms = crate::workload::START_MS;
    let (mut candidate, mut obvious) = (C::new(now_ms), Obvious::default());
    for step in 0..OPERATIONS {
        let id = rng.u32(..2_000).to_string();
        let id = id.as_bytes();
        match rng.u32(..100) {
            0..48 => {
                let due_ms = now_ms + rng.u64(..AHEAD_MS);
                let added = candidate.add(id, b"body", due_ms);
                assert_eq!(added, obvious.add(id, due_ms), "{name}: ADD, step {step}");
            }
            48..68 => {
                assert_eq!(candidate.cancel(id), obvious.cancel(id), "{name}: DEL, step {step}");
            }
            68..90 => {
                let mut popped = None;
                candidate.pop(now_ms, &mut |id| popped = Some(id.to_vec()));
                assert_eq!(popped, obvious.pop(now_ms), "{name}: POP, step {step}");
            }
            90..95 => {
                candidate.promote(now_ms, rng.usize(1..30));
            }
            95..98 => {
                while !candidate.promote(now_ms, rng.usize(1..100)) {}
                assert_eq!(candidate.ready(), obvious.due(now_ms), "{name}: ready, step {step}");
            }
            _ => now_ms += rng.u64(..60),
        }
    }
}
