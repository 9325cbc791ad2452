//! Finding queues that have moved. RENAME and MOVE take a queue to another key and tell nobody where; all
//! that a module sees is the value leaving its old key. When it still lives a moment later, it is looked
//! for: a scan over the keys, in slices of the timer's budget, gives a hint to every queue without one.
//!
//! (A keyspace subscription would tell, but makes COPY … DB and MOVE leave the client in the wrong
//! database on Valkey 8.1; a command filter would cost every command of the server.)

use std::ffi::{c_int, c_void};
use std::sync::Weak;
use std::time::{Duration, Instant};

use redis_module::raw;

use super::data_type::QueueValue;
use super::hints::Database;
use super::key::{name_bytes, queue_of};
use super::main_thread::MainThread;
use super::pacemaker::{self, Slice};

/// How long a value that is being freed may take for it before it is looked for.
const GRACE: Duration = Duration::from_millis(200);
/// More values than this that left their keys within the grace are not told apart: then there is a sweep.
const ORPHANS_MAX: usize = 1_024;
/// While a sweep goes on, the timer comes this often.
const BETWEEN_SLICES: Duration = Duration::from_millis(1);

/// A queue that left its key: freed, or somewhere else.
struct Orphan {
    life: Weak<()>,
    since: Instant,
}

struct Sweep {
    orphans: Vec<Orphan>,
    /// Another sweep has to begin, from the first key.
    is_wanted: bool,
    scan: Option<Scan>,
}

/// How far the present sweep has got.
struct Scan {
    database: Database,
    cursor: *mut raw::RedisModuleScanCursor,
}

static SWEEP: MainThread<Sweep> =
    MainThread::new(Sweep { orphans: Vec::new(), is_wanted: false, scan: None });

/// The value, which waits for something, has left its key.
pub fn left_its_key(value: &QueueValue) {
    SWEEP.with(|sweep| {
        if sweep.orphans.len() < ORPHANS_MAX {
            sweep.orphans.push(Orphan { life: value.life(), since: Instant::now() });
        } else {
            sweep.is_wanted = true;
        }
    });
    pacemaker::arm(Some(GRACE));
}

/// Looks through all keys, soon.
pub fn want() {
    SWEEP.with(|sweep| sweep.is_wanted = true);
    pacemaker::arm(Some(BETWEEN_SLICES));
}

/// A slice of the work, if there is any; when to come again.
pub fn go_on(ctx: *mut raw::RedisModuleCtx, slice: &Slice) -> Option<Duration> {
    let begins = SWEEP.with(Sweep::take_begin)?;
    if begins {
        begin();
    }
    let mut scan = SWEEP.with(|sweep| sweep.scan.take()).flatten();
    while let Some(going) = scan.take_if(|_| !slice.is_over()) {
        scan = step(ctx, going);
    }
    SWEEP.with(|sweep| {
        sweep.scan = scan;
        if sweep.scan.is_some() {
            Some(BETWEEN_SLICES)
        } else {
            (!sweep.orphans.is_empty() || sweep.is_wanted).then_some(GRACE)
        }
    })?
}

impl Sweep {
    /// Whether a sweep has to begin now. Forgets the orphans that are dead, and those that it is for.
    fn take_begin(&mut self) -> bool {
        self.orphans.retain(|orphan| orphan.life.strong_count() > 0);
        let before = self.orphans.len();
        self.orphans.retain(|orphan| orphan.since.elapsed() < GRACE);
        let begins = self.is_wanted || self.orphans.len() < before;
        self.is_wanted = false;
        begins
    }
}

fn begin() {
    // SAFETY: needs nothing; destroyed when the sweep ends or begins anew.
    let cursor = unsafe { api!(RedisModule_ScanCursorCreate)() };
    let old = SWEEP.with(|sweep| sweep.scan.replace(Scan { database: 0, cursor })).flatten();
    if let Some(old) = old {
        // SAFETY: the cursor is not used after this.
        unsafe { api!(RedisModule_ScanCursorDestroy)(old.cursor) };
    }
}

/// A few keys further; `None` after the last one of the last database.
fn step(ctx: *mut raw::RedisModuleCtx, scan: Scan) -> Option<Scan> {
    let Scan { database, cursor } = scan;
    // SAFETY: on the main thread with the timer's context; the cursor is alive, the callback needs no data.
    unsafe {
        if api!(RedisModule_SelectDb)(ctx, database) != raw::REDISMODULE_OK as c_int {
            api!(RedisModule_ScanCursorDestroy)(cursor);
            return None;
        }
        if api!(RedisModule_Scan)(ctx, cursor, Some(on_key), std::ptr::null_mut()) != 0 {
            return Some(Scan { database, cursor });
        }
        api!(RedisModule_ScanCursorRestart)(cursor);
    }
    Some(Scan { database: database + 1, cursor })
}

unsafe extern "C" fn on_key(
    ctx: *mut raw::RedisModuleCtx,
    name: *mut raw::RedisModuleString,
    key: *mut raw::RedisModuleKey,
    _data: *mut c_void,
) {
    if key.is_null() {
        return;
    }
    // SAFETY: key, name and context are valid while the callback lasts; nobody else has the value.
    unsafe {
        if let Some(mut value) = queue_of(key) {
            let database = || api!(RedisModule_GetSelectedDb)(ctx);
            let name = name_bytes(name).unwrap_or_default();
            pacemaker::watch(value.as_mut(), database, || name);
        }
    }
}
