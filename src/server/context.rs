//! What the server reports about itself: the time and its role; and a context for work outside
//! commands.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis_module::{raw, RedisValue};

use crate::queue::Time;

/// The number of a database.
pub type Database = i32;

/// A context outside commands, on the main thread, valid during a callback.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    raw: *mut raw::RedisModuleCtx,
    life: PhantomData<&'c ()>,
}

impl<'c> Context<'c> {
    /// # Safety
    /// `raw` is valid on the main thread during `'c`.
    pub(super) unsafe fn new(raw: *mut raw::RedisModuleCtx) -> Context<'c> {
        Context { raw, life: PhantomData }
    }

    pub(super) fn raw(self) -> *mut raw::RedisModuleCtx {
        self.raw
    }

    /// Whether this server is a primary. Takes half a microsecond: don't call it for every command.
    pub fn is_primary(self) -> bool {
        // SAFETY: the promise of `new`.
        let flags = unsafe { api!(RedisModule_GetContextFlags)(self.raw) };
        flags & raw::REDISMODULE_CTX_FLAGS_MASTER as i32 != 0
    }
}

/// The server's wall clock. Read it once per command or timer run.
pub fn wall_clock() -> Time {
    // SAFETY: needs nothing.
    let unix_ms = unsafe { api!(RedisModule_Milliseconds)() };
    u64::try_from(unix_ms).ok().and_then(Time::new).unwrap_or(Time::MAX)
}

/// How long until the wall clock reaches this time, to the microsecond; zero if it is in the past.
pub fn until(time: Time) -> Duration {
    let target = UNIX_EPOCH.checked_add(Duration::from_millis(time.unix_ms()));
    target.and_then(|target| target.duration_since(SystemTime::now()).ok()).unwrap_or_default()
}

/// How long the module has been loaded, by a monotonic clock.
pub fn uptime() -> Duration {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}

/// Whether the module may replicate outside a command. If it replicates while clients are paused,
/// during a failover or at a shutdown, the server aborts.
pub fn may_replicate() -> bool {
    // SAFETY: needs nothing.
    unsafe { api!(RedisModule_AvoidReplicaTraffic)() == 0 }
}

static CONTEXT: AtomicPtr<raw::RedisModuleCtx> = AtomicPtr::new(null_mut());

/// The module's own context.
pub(super) fn own() -> *mut raw::RedisModuleCtx {
    CONTEXT.load(Ordering::Relaxed)
}

/// Creates the module's own context from the context of its load.
pub(super) fn keep(ctx: *mut raw::RedisModuleCtx) {
    // SAFETY: `ctx` is valid during the load; the new one lives as long as the module.
    let detached = unsafe { api!(RedisModule_GetDetachedThreadSafeContext)(ctx) };
    CONTEXT.store(detached, Ordering::Relaxed);
}

/// The key of the ids' hash in this process: random, so that no client can choose ids that share a
/// chain.
pub fn hash_seed() -> (u64, u64) {
    static SEED: OnceLock<(u64, u64)> = OnceLock::new();
    *SEED.get_or_init(|| (random(), random()))
}

/// Eight random bytes.
fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: the server writes exactly as many bytes as requested.
    unsafe { api!(RedisModule_GetRandomBytes)(bytes.as_mut_ptr(), bytes.len()) };
    u64::from_ne_bytes(bytes)
}

/// Adds a sample to `LATENCY HISTORY <event>`. The server keeps samples from
/// `latency-monitor-threshold` on.
pub fn record_latency(event: &CStr, took: Duration) {
    // SAFETY: the server copies the name.
    unsafe {
        api!(RedisModule_LatencyAddSample)(event.as_ptr(), took.as_millis() as raw::mstime_t)
    };
}

/// Whether the server may evict a queue when memory runs out. No module can prevent that.
pub fn evicts_any_key() -> bool {
    let own = redis_module::Context::new(own());
    let Ok(RedisValue::Array(config)) = own.call("CONFIG", &["GET", "maxmemory-policy"]) else {
        return false;
    };
    let policy = config.get(1);
    matches!(policy, Some(RedisValue::SimpleString(policy)) if policy.starts_with("allkeys-"))
}
