//! The configs: by `CONFIG SET dq.<name>`, in redis.conf as `dq.<name> <value>`, and as load
//! arguments.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CString};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering};

use redis_module::configuration::{register_i64_configuration, ConfigurationFlags};
use redis_module::{raw, Context, RedisString};

use super::arg::string_bytes;
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

/// A config of two whole numbers in one text, `base max`: the first is not greater than the second.
pub struct PairConfig {
    name: &'static str,
    max: i64,
    values: [AtomicI64; 2],
    /// What the server was given when it asked last. It copies that, and doesn't free it.
    shown: AtomicPtr<raw::RedisModuleString>,
}

impl PairConfig {
    /// `0 0` unless it is set.
    pub const fn new(name: &'static str, max: i64) -> PairConfig {
        let values = [const { AtomicI64::new(0) }; 2];
        PairConfig { name, max, values, shown: AtomicPtr::new(null_mut()) }
    }

    pub fn get(&self) -> (u64, u64) {
        let [base, max] = self.values.each_ref().map(|value| value.load(Ordering::Relaxed));
        (base.unsigned_abs(), max.unsigned_abs())
    }

    /// Two numbers with one or more blanks between them.
    fn parse(&self, text: &str) -> Option<[i64; 2]> {
        let mut words = text.split_ascii_whitespace().map(|word| word.parse().ok());
        let (Some(base), Some(max), None) = (words.next()?, words.next()?, words.next()) else {
            return None;
        };
        (0 <= base && base <= max && max <= self.max).then_some([base, max])
    }

    fn expected(&self) -> String {
        format!("must be two integers from 0 to {}, the first not greater", self.max)
    }

    fn set(&self, text: &str) -> Result<(), String> {
        let values = self.parse(text).ok_or_else(|| format!("argument {}", self.expected()))?;
        for (place, value) in self.values.iter().zip(values) {
            place.store(value, Ordering::Relaxed);
        }
        Ok(())
    }

    fn register(&'static self, ctx: &Context, default: &str) -> bool {
        let (Ok(name), Ok(default)) = (CString::new(self.name), CString::new(default)) else {
            return false;
        };
        // SAFETY: `ctx` is the one of OnLoad. The server copies both texts. `self` lives for ever,
        // and the callbacks take it for what it is.
        let registered = unsafe {
            api!(RedisModule_RegisterStringConfig)(
                ctx.get_raw(),
                name.as_ptr(),
                default.as_ptr(),
                raw::REDISMODULE_CONFIG_DEFAULT,
                Some(get_pair),
                Some(set_pair),
                None,
                std::ptr::from_ref(self).cast_mut().cast(),
            )
        };
        registered == raw::REDISMODULE_OK as c_int
    }
}

/// A text of the server, which the caller has to free.
fn server_text(text: &str) -> *mut raw::RedisModuleString {
    // SAFETY: the server copies the bytes; without a context, the string is the caller's.
    unsafe { api!(RedisModule_CreateString)(null_mut(), text.as_ptr().cast(), text.len()) }
}

extern "C" fn get_pair(_: *const c_char, config: *mut c_void) -> *mut raw::RedisModuleString {
    // SAFETY: what `register` gave.
    let config = unsafe { &*config.cast::<PairConfig>() };
    let (base, max) = config.get();
    let text = server_text(&format!("{base} {max}"));
    let before = config.shown.swap(text, Ordering::Relaxed);
    if !before.is_null() {
        // SAFETY: made by the last call of this function, and copied by the server since.
        unsafe { api!(RedisModule_FreeString)(null_mut(), before) };
    }
    text
}

extern "C" fn set_pair(
    _: *const c_char,
    text: *mut raw::RedisModuleString,
    config: *mut c_void,
    error: *mut *mut raw::RedisModuleString,
) -> c_int {
    // SAFETY: what `register` gave; the server's text is valid during this call.
    let (config, text) = unsafe { (&*config.cast::<PairConfig>(), string_bytes(text)) };
    match config.set(&String::from_utf8_lossy(text)) {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(problem) => {
            // SAFETY: the server gives a place for the error, which it frees.
            unsafe { *error = server_text(&problem) };
            raw::REDISMODULE_ERR as c_int
        }
    }
}

/// All configs of the module.
pub struct Configs {
    pub numbers: &'static [&'static Config],
    pub pairs: &'static [&'static PairConfig],
}

/// Registers all configs, with the load arguments (`name value …`, a pair as one or two) as their
/// defaults. False, with a word in the log, when an argument isn't one of them.
pub(super) fn register(ctx: &Context, configs: &Configs, args: &[RedisString]) -> bool {
    let defaults = match parse(configs, args) {
        Ok(values) => values,
        Err(problem) => {
            logfile::warning(&format!("can't load: {problem}"));
            return false;
        }
    };
    for config in configs.numbers {
        let given = defaults.get(config.name).and_then(|text| text.parse().ok());
        let flags = ConfigurationFlags::DEFAULT;
        register_i64_configuration(
            ctx,
            config.name,
            &config.value,
            given.unwrap_or(config.default),
            config.min,
            config.max,
            flags,
            None,
        );
    }
    for config in configs.pairs {
        let given = defaults.get(config.name).map_or("0 0", |text| text);
        if !config.register(ctx, given) {
            return false;
        }
    }
    // SAFETY: `ctx` is the one of OnLoad, after all configs are registered.
    unsafe { api!(RedisModule_LoadConfigs)(ctx.get_raw()) == raw::REDISMODULE_OK as c_int }
}

/// The values of load arguments, checked, by the names of their configs.
fn parse(
    configs: &Configs,
    args: &[RedisString],
) -> Result<BTreeMap<&'static str, String>, String> {
    let mut values = BTreeMap::new();
    let mut args = args.iter().map(|arg| arg.to_string_lossy());
    while let Some(name) = args.next() {
        let short = name.strip_prefix("dq.").unwrap_or(&name);
        let number = configs.numbers.iter().find(|config| config.name.eq_ignore_ascii_case(short));
        let pair = configs.pairs.iter().find(|config| config.name.eq_ignore_ascii_case(short));
        if number.is_none() && pair.is_none() {
            return Err(format!("unknown argument '{name}'"));
        }
        let mut text = args.next().ok_or_else(|| format!("argument '{name}' needs a value"))?;
        if let Some(config) = number {
            let value = text.parse().ok().filter(|value| (config.min..=config.max).contains(value));
            if value.is_none() {
                let (min, max) = (config.min, config.max);
                return Err(format!(
                    "'{name}' must be an integer from {min} to {max}, not '{text}'"
                ));
            }
            values.insert(config.name, text.clone());
        }
        if let Some(config) = pair {
            // CONFIG REWRITE writes load arguments without their quotes.
            let has_one = text.split_ascii_whitespace().count() == 1;
            if let Some(second) = has_one.then(|| args.next()).flatten() {
                text = format!("{text} {second}");
            }
            if config.parse(&text).is_none() {
                return Err(format!("'{name}' {}, not '{text}'", config.expected()));
            }
            values.insert(config.name, text);
        }
    }
    Ok(values)
}
