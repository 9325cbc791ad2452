//! The configs. What each is for: redis.conf.example.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::queue::{Attempts, Defaults, Millis};
use crate::server::config::Config;

const TTR_MAX_MS: i64 = (1 << 48) - 1;
/// What the server takes as one argument, unless told otherwise (`proto-max-bulk-len`).
const BODY_MAX_BYTES: i64 = 512 << 20;

static DEFAULT_TTR_MS: AtomicI64 = AtomicI64::new(60_000);
static DEFAULT_ATTEMPTS: AtomicI64 = AtomicI64::new(25);
static TICK_BUDGET_US: AtomicI64 = AtomicI64::new(1_000);
static MAX_BODY_BYTES: AtomicI64 = AtomicI64::new(1 << 20);

/// All there are.
pub static CONFIGS: [Config; 4] = [
    Config {
        name: "default-ttr",
        default: 60_000,
        min: 1,
        max: TTR_MAX_MS,
        value: &DEFAULT_TTR_MS,
    },
    Config {
        name: "default-attempts",
        default: 25,
        min: 0,
        max: u32::MAX as i64,
        value: &DEFAULT_ATTEMPTS,
    },
    Config {
        name: "tick-budget-us",
        default: 1_000,
        min: 100,
        max: 1_000_000,
        value: &TICK_BUDGET_US,
    },
    Config {
        name: "max-body-bytes",
        default: 1 << 20,
        min: 0,
        max: BODY_MAX_BYTES,
        value: &MAX_BODY_BYTES,
    },
];

/// The TTR and ATTEMPTS of a job that is added without.
pub fn defaults() -> Defaults {
    Defaults {
        ttr: Millis::new(get(&DEFAULT_TTR_MS)).unwrap_or(Millis::MAX),
        attempts: Attempts::new(u32::try_from(get(&DEFAULT_ATTEMPTS)).unwrap_or(u32::MAX)),
    }
}

/// How long a run of the timer may take.
pub fn tick_budget() -> Duration {
    Duration::from_micros(get(&TICK_BUDGET_US))
}

pub fn max_body_bytes() -> usize {
    get(&MAX_BODY_BYTES) as usize
}

fn get(value: &AtomicI64) -> u64 {
    // The ranges have no negative values.
    value.load(Ordering::Relaxed).unsigned_abs()
}
