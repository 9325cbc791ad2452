//! The configs: by `CONFIG SET dq.<name>`, in redis.conf as `dq.<name> <value>`, and as load arguments.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use redis_module::configuration::{register_i64_configuration, ConfigurationFlags};
use redis_module::{raw, Context, RedisString};

use super::log;
use crate::queue::{Attempts, Millis};

struct Config {
    name: &'static str,
    default: i64,
    min: i64,
    max: i64,
    value: &'static AtomicI64,
}

const TTR_MAX_MS: i64 = (1 << 48) - 1;
/// What the server takes as one argument, unless told otherwise (`proto-max-bulk-len`).
const BODY_MAX_BYTES: i64 = 512 << 20;

static DEFAULT_TTR_MS: AtomicI64 = AtomicI64::new(60_000);
static DEFAULT_ATTEMPTS: AtomicI64 = AtomicI64::new(25);
static TICK_BUDGET_US: AtomicI64 = AtomicI64::new(1_000);
static MAX_BODY_BYTES: AtomicI64 = AtomicI64::new(1 << 20);

/// All there are.
static CONFIGS: [Config; 4] = [
    Config { name: "default-ttr", default: 60_000, min: 1, max: TTR_MAX_MS, value: &DEFAULT_TTR_MS },
    Config { name: "default-attempts", default: 25, min: 0, max: u32::MAX as i64, value: &DEFAULT_ATTEMPTS },
    Config { name: "tick-budget-us", default: 1_000, min: 100, max: 1_000_000, value: &TICK_BUDGET_US },
    Config { name: "max-body-bytes", default: 1 << 20, min: 0, max: BODY_MAX_BYTES, value: &MAX_BODY_BYTES },
];

/// The TTR of a job that is added without one.
pub fn default_ttr() -> Millis {
    Millis::new(get(&DEFAULT_TTR_MS)).unwrap_or(Millis::MAX)
}

/// The ATTEMPTS of a job that is added without.
pub fn default_attempts() -> Attempts {
    Attempts::new(u32::try_from(get(&DEFAULT_ATTEMPTS)).unwrap_or(u32::MAX))
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

/// Registers all configs, with the load arguments (`name value …`) as their defaults. False, with a word
/// in the log, when an argument isn't one of them.
pub fn register(ctx: &Context, args: &[RedisString]) -> bool {
    let defaults = match Arguments::parse(args) {
        Ok(arguments) => arguments,
        Err(problem) => {
            log::warning(&format!("can't load: {problem}"));
            return false;
        }
    };
    for config in &CONFIGS {
        let default = defaults.value_of(config).unwrap_or(config.default);
        let flags = ConfigurationFlags::DEFAULT;
        register_i64_configuration(
            ctx,
            config.name,
            config.value,
            default,
            config.min,
            config.max,
            flags,
            None,
        );
    }
    // SAFETY: `ctx` is the one of OnLoad, after all configs are registered.
    unsafe { api!(RedisModule_LoadConfigs)(ctx.get_raw()) == raw::REDISMODULE_OK as c_int }
}

/// Load arguments, checked.
struct Arguments(Vec<(&'static str, i64)>);

impl Arguments {
    fn parse(args: &[RedisString]) -> Result<Arguments, String> {
        let mut values = Vec::new();
        let mut args = args.iter().map(|arg| arg.to_string_lossy());
        while let Some(name) = args.next() {
            let short = name.strip_prefix("dq.").unwrap_or(&name);
            let config = CONFIGS.iter().find(|config| config.name.eq_ignore_ascii_case(short));
            let config = config.ok_or_else(|| format!("unknown argument '{name}'"))?;
            let text = args.next().ok_or_else(|| format!("argument '{name}' needs a value"))?;
            let value = text.parse().ok().filter(|value| (config.min..=config.max).contains(value));
            let range =
                || format!("'{name}' must be an integer from {} to {}, not '{text}'", config.min, config.max);
            values.push((config.name, value.ok_or_else(range)?));
        }
        Ok(Arguments(values))
    }

    fn value_of(&self, config: &Config) -> Option<i64> {
        self.0.iter().rev().find(|(name, _)| *name == config.name).map(|(_, value)| *value)
    }
}
