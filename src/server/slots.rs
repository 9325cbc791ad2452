//! Slots that move atomically from one node of a cluster to another (Redis 8.4, Valkey 9.0 and
//! later).
//!
//! The keys of such a slot arrive at a *primary*, by a connection whose commands are entries of a
//! log. Until the node owns the slot, no client can reach them, but this module's timer can: it
//! must leave them alone. So it must where they have left and are about to be removed.
//!
//! | | Redis | Valkey |
//! | --- | --- | --- |
//! | the event | 18 | 19 |
//! | its numbers | `IMPORT_STARTED` 0, `_FAILED` 1, `_COMPLETED` 2 | `IMPORT_STARTED` 0, `_ABORTED` 2, `_COMPLETED` 4 |
//! | whose a slot is | the server tells | what isn't being imported is this node's own: the rest is removed in the same turn |
//! | opt-in | none | an option, else no slot of the cluster moves |

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};
use std::slice::from_raw_parts;
use std::sync::OnceLock;

use redis_module::{raw, Context, RedisValue};

use super::context;
use super::events;
use super::hooks;
use super::main_thread::MainThread;

const SLOTS: usize = 16_384;
/// Valkey's event, and its option that says that this module can bear such moves: not in the
/// bindings.
const VALKEY_EVENT: u64 = 19;
const VALKEY_OPTION: u32 = 1 << 5;

/// What becomes of some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    ImportBegun,
    /// They are this node's own now, or won't be.
    ImportEnded,
    /// They are another node's now.
    Left,
}

impl Step {
    fn of_redis(subevent: u64) -> Option<Step> {
        match subevent {
            raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_STARTED => {
                Some(Step::ImportBegun)
            }
            raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_FAILED
            | raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_IMPORT_COMPLETED => {
                Some(Step::ImportEnded)
            }
            raw::REDISMODULE_SUBEVENT_CLUSTER_SLOT_MIGRATION_MIGRATE_COMPLETED => Some(Step::Left),
            _ => None,
        }
    }

    fn of_valkey(subevent: u64) -> Option<Step> {
        match subevent {
            0 => Some(Step::ImportBegun),
            2 | 4 => Some(Step::ImportEnded),
            5 => Some(Step::Left),
            _ => None,
        }
    }
}

/// The slots that are on their way here.
static IMPORTED: MainThread<BTreeSet<usize>> = MainThread::new(BTreeSet::new());

fn note(imported: &mut BTreeSet<usize>, step: Step, (first, last): (usize, usize)) {
    (first..=last.min(SLOTS - 1)).for_each(|slot| {
        match step {
            Step::ImportBegun => imported.insert(slot),
            Step::ImportEnded | Step::Left => imported.remove(&slot),
        };
    });
}

/// Whether slots are on their way here.
pub fn is_importing() -> bool {
    IMPORTED.with(|slots| !slots.is_empty())
}

/// Whether the key is this node's own: its slot is neither on its way here nor another node's.
///
/// # Safety
/// On the main thread, with a valid name.
pub(super) unsafe fn is_own(name: *mut raw::RedisModuleString) -> bool {
    // SAFETY: the pointers were written before OnLoad goes on; the name is valid.
    unsafe {
        // Before Redis 7.4 and Valkey 8.0 no slot moves in this way.
        let Some(slot_of) = raw::RedisModule_ClusterKeySlot else {
            return true;
        };
        match raw::RedisModule_ClusterCanAccessKeysInSlot {
            Some(can_access) => can_access(slot_of(name) as c_int) != 0,
            None => {
                !is_importing() || !IMPORTED.with(|slots| slots.contains(&(slot_of(name) as usize)))
            }
        }
    }
}

/// Whether DQ can look by itself whether keys are of one slot: Redis 7.4, Valkey 8.0 and later.
///
/// There it has to. With `io-threads`, as nodes of a cluster, Redis 8 and Valkey 8.0 and later ask
/// a command for its keys on the thread that has read it, where a module's context isn't safe: they
/// crash, or send nothing to replicas any more.
pub(super) fn has_key_slots() -> bool {
    // SAFETY: the pointer was written before OnLoad goes on.
    unsafe { raw::RedisModule_ClusterKeySlot }.is_some()
}

/// The slot of a key, if [`has_key_slots`].
///
/// # Safety
/// On the main thread, with a valid name.
pub(super) unsafe fn slot_of(name: *mut raw::RedisModuleString) -> Option<u32> {
    // SAFETY: the pointer was written before OnLoad goes on; the name is valid.
    unsafe { raw::RedisModule_ClusterKeySlot.map(|slot_of| slot_of(name)) }
}

/// Whether this server is a node of a cluster.
pub fn is_in_cluster() -> bool {
    static IS_IN_CLUSTER: OnceLock<bool> = OnceLock::new();
    *IS_IN_CLUSTER.get_or_init(|| {
        // SAFETY: on the main thread, with the module's own context.
        let flags = unsafe { api!(RedisModule_GetContextFlags)(context::own()) };
        flags as u32 & raw::REDISMODULE_CTX_FLAGS_CLUSTER != 0
    })
}

/// Whether the slot of a key stays on this node: it is neither another node's nor on its way to
/// one, key by key. It asks the server as a client would, since the API doesn't tell.
pub fn is_staying(name: &[u8]) -> bool {
    let own = Context::new(context::own());
    let slot = match own.call("CLUSTER", &[&b"KEYSLOT"[..], name]) {
        Ok(RedisValue::Integer(slot)) => slot,
        _ => return true,
    };
    match own.call("CLUSTER", &["NODES"]) {
        Ok(RedisValue::SimpleString(nodes) | RedisValue::BulkString(nodes)) => {
            is_kept(&nodes, slot)
        }
        _ => true,
    }
}

/// What CLUSTER NODES says of a slot: `<id> <address> myself,master - … 0-5460 5462 [5461->-<id>]`.
fn is_kept(nodes: &str, slot: i64) -> bool {
    let mut own = nodes.lines().filter(|line| line.contains("myself"));
    let Some(line) = own.next() else {
        return false;
    };
    let words = || line.split(' ').skip(8);
    let is_here = words().any(|word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        let (first, last) = (first.parse::<i64>(), last.parse::<i64>());
        matches!((first, last), (Ok(first), Ok(last)) if (first..=last).contains(&slot))
    });
    let leaves = format!("[{slot}->-");
    is_here && !words().any(|word| word.starts_with(&leaves))
}

/// Subscribes to the event where the server has it. The options that the module has to set for
/// that.
pub(super) fn subscribe(ctx: *mut raw::RedisModuleCtx) -> u32 {
    let is_valkey = is_valkey();
    let (id, callback): (u64, raw::RedisModuleEventCallback) = match is_valkey {
        true => (VALKEY_EVENT, Some(on_valkey)),
        false => (raw::REDISMODULE_EVENT_CLUSTER_SLOT_MIGRATION, Some(on_redis)),
    };
    // SAFETY: `ctx` is the one of OnLoad; the callback has the type that this server's event wants.
    let is_done = unsafe { events::ask_for(ctx, id, callback) };
    if is_done && is_valkey {
        VALKEY_OPTION
    } else {
        0
    }
}

fn is_valkey() -> bool {
    // SAFETY: the module's own context; nothing is read of what is freed.
    unsafe {
        let info = api!(RedisModule_GetServerInfo)(context::own(), c"server".as_ptr());
        let version = api!(RedisModule_ServerInfoGetFieldC)(info, c"valkey_version".as_ptr());
        api!(RedisModule_FreeServerInfo)(context::own(), info);
        !version.is_null()
    }
}

fn on_step(step: Step, ranges: impl Iterator<Item = (usize, usize)>) {
    IMPORTED.with(|imported| ranges.for_each(|range| note(imported, step, range)));
    hooks::call(|hooks| (hooks.slots_moved)());
}

unsafe extern "C" fn on_redis(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    data: *mut c_void,
) {
    let Some(step) = Step::of_redis(subevent) else {
        return;
    };
    // SAFETY: this event's data is of this type on Redis, and so are the ranges in it.
    let ranges = unsafe {
        let Some(slots) = data.cast::<raw::RedisModuleClusterSlotMigrationInfoV1>().as_ref() else {
            return;
        };
        let Some(slots) = slots.slots.as_ref() else {
            return;
        };
        slots.ranges.as_slice(usize::try_from(slots.num_ranges).unwrap_or(0))
    };
    on_step(step, ranges.iter().map(|range| (range.start.into(), range.end.into())));
}

/// As Valkey 9 has it.
#[repr(C)]
struct ValkeyRange {
    first: c_int,
    last: c_int,
}

/// As Valkey 9 has it.
#[repr(C)]
struct ValkeyMove {
    version: u64,
    name: [c_char; 41],
    ranges: *const ValkeyRange,
    len: u32,
}

unsafe extern "C" fn on_valkey(
    _ctx: *mut raw::RedisModuleCtx,
    _event: raw::RedisModuleEvent,
    subevent: u64,
    data: *mut c_void,
) {
    let Some(step) = Step::of_valkey(subevent) else {
        return;
    };
    // SAFETY: this event's data is of this type on Valkey, and so are the ranges in it.
    let ranges = unsafe {
        match data.cast::<ValkeyMove>().as_ref() {
            Some(moved) if !moved.ranges.is_null() => {
                from_raw_parts(moved.ranges, moved.len as usize)
            }
            _ => return,
        }
    };
    let slot = |number: c_int| usize::try_from(number).unwrap_or(SLOTS);
    on_step(step, ranges.iter().map(|range| (slot(range.first), slot(range.last))));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_on_their_way_from_the_start_of_their_import_to_its_end() {
        let mut slots = BTreeSet::new();
        note(&mut slots, Step::ImportBegun, (60, 63));
        note(&mut slots, Step::ImportBegun, (16_383, 99_999));
        assert!(slots.iter().eq(&[60, 61, 62, 63, 16_383]));
        note(&mut slots, Step::ImportEnded, (60, 70));
        assert!(slots.iter().eq(&[16_383]));
        note(&mut slots, Step::Left, (16_000, 16_383));
        assert!(slots.is_empty());
    }

    #[test]
    fn a_slot_stays_that_is_here_and_not_on_its_way_elsewhere() {
        let nodes = "\
            07c3 127.0.0.1:30004@31004,host master - 0 1426238317239 4 connected 0-9999\n\
            e7d1 127.0.0.1:30001@31001,host myself,master - 0 0 1 connected 10000-10002 10004 \
            [10001->-07c3] [9999-<-07c3]\n";
        let kept: Vec<i64> = (9_998..10_006).filter(|slot| is_kept(nodes, *slot)).collect();
        assert_eq!(kept, [10_000, 10_002, 10_004]);
        assert!(!is_kept("", 0));
    }

    #[test]
    fn the_same_number_is_another_event_on_the_other_server() {
        let steps = [Step::ImportBegun, Step::ImportEnded, Step::Left].map(Some);
        assert_eq!([0, 1, 5].map(Step::of_redis), steps);
        assert_eq!([2, 3, 4, 6].map(Step::of_redis), [steps[1], None, None, None]);
        assert_eq!([0, 2, 5].map(Step::of_valkey), steps);
        assert_eq!([1, 3, 4, 6].map(Step::of_valkey), [None, None, steps[1], None]);
    }
}
