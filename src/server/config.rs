//! The configs: by `CONFIG SET dq.<name>`, in redis.conf as `dq.<name> <value>`, and as load
//! arguments.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI64, Ordering};

use redis_module::configuration::{register_i64_configuration, ConfigurationFlags};
use redis_module::{raw, Context, RedisString};

use super::logfile;

/// A config: a whole number in a range that has nothing negative.
pub struct Config {
    name: &'static str,
    default: i64,
    min: i64,
    max: i64,
    value: AtomicI64,
}

impl Config {
    pub const fn new(name: &'static str, default: i64, (min, max): (i64, i64)) -> Config {
        Config { name, default, min, max, value: AtomicI64::new(default) }
    }

    pub fn get(&self) -> u64 {
        self.value.load(Ordering::Relaxed).unsigned_abs()
    }
}

pub type Configs = &'static [&'static Config];

/// Registers all configs, with the load arguments (`name value …`) as their defaults. False, with a
/// word in the log, when an argument isn't one of them.
pub(super) fn register(ctx: &Context, configs: Configs, args: &[RedisString]) -> bool {
    let defaults = match parse(configs, args) {
        Ok(values) => values,
        Err(problem) => {
            logfile::warning(&format!("can't load: {problem}"));
            return false;
        }
    };
    for config in configs {
        let default = defaults.get(config.name).copied().unwrap_or(config.default);
        let flags = ConfigurationFlags::DEFAULT;
        register_i64_configuration(
            ctx,
            config.name,
            &config.value,
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

/// The values of load arguments, checked, by the names of their configs.
fn parse(configs: Configs, args: &[RedisString]) -> Result<BTreeMap<&'static str, i64>, String> {
    let mut values = BTreeMap::new();
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(name) = args.next() {
        let short = name.strip_prefix("dq.").unwrap_or(&name);
        let config = configs.iter().find(|config| config.name.eq_ignore_ascii_case(short));
        let config = config.ok_or_else(|| format!("unknown argument '{name}'"))?;
        let text = args.next().ok_or_else(|| format!("argument '{name}' needs a value"))?;
        let value = text.parse().ok().filter(|value| (config.min..=config.max).contains(value));
        let range = || {
            format!(
                "'{name}' must be an integer from {} to {}, not '{text}'",
                config.min, config.max
            )
        };
        values.insert(config.name, value.ok_or_else(range)?);
    }
    Ok(values)
}
