//! Keyspace notifications: what a watcher of a queue acts on, one event a command or timer run, however many
//! jobs it is about. They are of the class `d` (module types) of `notify-keyspace-events`, and cost nothing
//! while that is off. A replica, where nothing happens by itself, tells nothing.

use std::ffi::CStr;

use redis_module::raw;

use super::effect::Effect;
use super::pacemaker;
use super::site::Site;
use crate::queue::{Cause, Leave, News, Queue};

const ADDED: &CStr = c"dq.added";
const READY: &CStr = c"dq.ready";
const FINISHED: &CStr = c"dq.finished";
const DEAD: &CStr = c"dq.dead";
const DELETED: &CStr = c"dq.deleted";
const PAUSED: &CStr = c"dq.paused";
const RESUMED: &CStr = c"dq.resumed";

/// Whether anybody asked for them.
fn is_on() -> bool {
    // SAFETY: needs nothing.
    unsafe { api!(RedisModule_GetNotifyKeyspaceEvents)() & raw::REDISMODULE_NOTIFY_MODULE != 0 }
}

/// Tells what has just been done to the queue, and what time did to it.
pub fn notify(site: &Site, queue: &mut Queue, effects: &[Effect]) {
    let News { is_any_ready, is_any_dead } = queue.take_news();
    if !is_on() || !pacemaker::is_acting() || effects.iter().any(|effect| matches!(effect, Effect::Applied)) {
        return;
    }
    for effect in effects {
        event_of(effect).into_iter().for_each(|event| site.notify(event));
    }
    if is_any_dead {
        site.notify(DEAD);
    }
    if is_any_ready {
        site.notify(READY);
    }
}

fn event_of(effect: &Effect) -> Option<&'static CStr> {
    match effect {
        Effect::Put { .. } => Some(ADDED),
        Effect::Finished(_) | Effect::Moved(Cause::Finished, _) => Some(FINISHED),
        Effect::Left(Leave::Finished, _) => Some(FINISHED),
        Effect::Deleted(_) | Effect::Left(Leave::Purged, _) => Some(DELETED),
        Effect::Paused => Some(PAUSED),
        Effect::Resumed => Some(RESUMED),
        Effect::Leased(_) | Effect::Moved(..) | Effect::Altered | Effect::Applied => None,
    }
}
