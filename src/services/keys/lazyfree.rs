//! Frees large values on a thread of its own.
//!
//! A plain DEL frees in the server's main thread unless `lazyfree-lazy-user-del` is set, and so
//! would DQ.FINISH. A million jobs take 50 ms and more, a thousand bodies of 1 MiB take 100 ms.

use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock};
use std::thread;

use crate::queue::{Queue, Removed};
use crate::services::timer::hints::Hints;

/// Up to these limits values are freed at once, in some microseconds: waking a thread takes as
/// long. The server's own lazy freeing has the same limit.
const FREED_AT_ONCE_JOBS: usize = 64;
const FREED_AT_ONCE_BYTES: usize = 64 << 10;

enum Garbage {
    Queue { _queue: Box<Queue> },
    Jobs { _jobs: Removed },
    Hints { _hints: Hints },
}

type Outbox = Mutex<Sender<Garbage>>;

/// Frees a queue whose key is gone.
pub fn free(queue: Queue) {
    if queue.len() > FREED_AT_ONCE_JOBS || queue.memory() > FREED_AT_ONCE_BYTES {
        hand_over(Garbage::Queue { _queue: Box::new(queue) });
    }
}

/// Frees hints of queues that are all gone.
pub fn free_hints(hints: Hints) {
    if hints.len() > FREED_AT_ONCE_JOBS {
        hand_over(Garbage::Hints { _hints: hints });
    }
}

/// Frees the jobs that an operation has just removed from a queue.
#[inline]
pub fn free_removed(queue: &mut Queue) {
    if queue.has_removed() {
        free_jobs(queue);
    }
}

#[cold]
fn free_jobs(queue: &mut Queue) {
    let jobs = queue.take_removed();
    if jobs.bytes() > FREED_AT_ONCE_BYTES {
        hand_over(Garbage::Jobs { _jobs: jobs });
    }
}

fn hand_over(waste: Garbage) {
    static LAZYFREE: OnceLock<Option<Outbox>> = OnceLock::new();
    let lazyfree = LAZYFREE.get_or_init(|| start().map(Mutex::new));
    if let Some(outbox) = lazyfree.as_ref().and_then(|lazyfree| lazyfree.lock().ok()) {
        // If there is no thread, `send` returns it with the error, and it is freed here.
        drop(outbox.send(waste));
    }
}

fn start() -> Option<Sender<Garbage>> {
    let (outbox, waste) = channel();
    let lazyfree = thread::Builder::new().name("dq-lazyfree".into());
    lazyfree.spawn(move || waste.iter().for_each(drop)).ok()?;
    Some(outbox)
}
