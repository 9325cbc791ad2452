//! The configs. What each is for: redis.conf.example.

use std::time::Duration;

use crate::queue::{Attempts, Backoff, Defaults, Millis};
use crate::server::config::{Config, Configs, PairConfig};

const SPAN_MAX_MS: i64 = (1 << 48) - 1;
/// What the server takes as one argument, unless told otherwise (`proto-max-bulk-len`).
const BODY_MAX_BYTES: i64 = 512 << 20;

static DEFAULT_TTR_MS: Config = Config::new("default-ttr", 60_000, (1, SPAN_MAX_MS));
static DEFAULT_ATTEMPTS: Config = Config::new("default-attempts", 25, (0, u32::MAX as i64));
static DEFAULT_BACKOFF_MS: PairConfig = PairConfig::new("default-backoff", SPAN_MAX_MS);
static TICK_BUDGET_US: Config = Config::new("tick-budget-us", 1_000, (100, 1_000_000));
static MAX_BODY_BYTES: Config = Config::new("max-body-bytes", 1 << 20, (0, BODY_MAX_BYTES));

/// All there are.
pub static CONFIGS: Configs = Configs {
    numbers: &[&DEFAULT_TTR_MS, &DEFAULT_ATTEMPTS, &TICK_BUDGET_US, &MAX_BODY_BYTES],
    pairs: &[&DEFAULT_BACKOFF_MS],
};

/// The TTR, ATTEMPTS and BACKOFF of a job that is added without.
pub fn defaults() -> Defaults {
    let (base, max) = DEFAULT_BACKOFF_MS.get();
    let millis = |ms| Millis::new(ms).unwrap_or(Millis::MAX);
    Defaults {
        ttr: millis(DEFAULT_TTR_MS.get()),
        attempts: Attempts::new(u32::try_from(DEFAULT_ATTEMPTS.get()).unwrap_or(u32::MAX)),
        backoff: Backoff { base: millis(base), max: millis(max) },
    }
}

/// How long a run of the timer may take.
pub fn tick_budget() -> Duration {
    Duration::from_micros(TICK_BUDGET_US.get())
}

pub fn max_body_bytes() -> usize {
    MAX_BODY_BYTES.get() as usize
}
