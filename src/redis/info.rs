//! The `dq` section of INFO.

use std::ffi::{c_int, CStr};
use std::sync::atomic::{AtomicU64, Ordering};

use redis_module::raw;

use super::{pacemaker, server, sums, waiting};
use crate::queue::State;

/// What clients did since the server started.
pub static ADDED: Counter = Counter(AtomicU64::new(0));
pub static POPPED: Counter = Counter(AtomicU64::new(0));
pub static FINISHED: Counter = Counter(AtomicU64::new(0));
pub static DELETED: Counter = Counter(AtomicU64::new(0));

pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub fn register(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is the one of OnLoad.
    unsafe { api!(RedisModule_RegisterInfoFunc)(ctx, Some(on_info)) };
}

unsafe extern "C" fn on_info(ctx: *mut raw::RedisModuleInfoCtx, for_crash_report: c_int) {
    // SAFETY: `ctx` is the one of this callback; the server copies the strings.
    let number = |name: &CStr, value: u64| unsafe {
        api!(RedisModule_InfoAddFieldULongLong)(ctx, name.as_ptr(), value);
    };
    // SAFETY: as above. The section without a name of its own is called like the module.
    let is_wanted = unsafe { api!(RedisModule_InfoAddSection)(ctx, c"".as_ptr()) };
    if is_wanted != raw::REDISMODULE_OK as c_int {
        return;
    }
    // SAFETY: as above.
    unsafe { api!(RedisModule_InfoAddFieldCString)(ctx, c"version".as_ptr(), VERSION.as_ptr()) };
    number(c"queues", sums::queues());
    for (state, name) in [
        (State::Delayed, c"jobs_delayed"),
        (State::Ready, c"jobs_ready"),
        (State::Reserved, c"jobs_reserved"),
        (State::Dead, c"jobs_dead"),
        (State::Done, c"jobs_done"),
    ] {
        number(name, sums::jobs(state));
    }
    number(c"waiting_consumers", waiting::consumers() as u64);
    let (waiting, timer) = pacemaker::report();
    number(c"queues_waiting", waiting as u64);
    number(c"timer_runs", timer.runs);
    number(c"timer_budget_exceeded", timer.budget_exceeded);
    number(c"timer_last_us", timer.last.as_micros() as u64);
    number(c"timer_max_us", timer.longest.as_micros() as u64);
    number(c"jobs_added", ADDED.get());
    number(c"jobs_popped", POPPED.get());
    number(c"jobs_finished", FINISHED.get());
    number(c"jobs_deleted", DELETED.get());
    // A server that is going down is not asked any more.
    if for_crash_report == 0 {
        number(c"eviction_risk", u64::from(evicts_queues()));
    }
}

/// The crate's version, as the C string that INFO wants.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => c"",
};

/// Whether the server may evict a queue when memory runs out: no module can prevent that.
pub fn evicts_queues() -> bool {
    server::config_value(c"maxmemory-policy").is_some_and(|policy| policy.starts_with("allkeys-"))
}
