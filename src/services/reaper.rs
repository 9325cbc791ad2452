//! Frees large queues on a thread of its own.
//!
//! A plain DEL frees in the server's main thread unless the server was told otherwise
//! (`lazyfree-lazy-user-del`), and a million jobs take it 50 ms and more.

use std::sync::mpsc::{channel, Sender};
use std::sync::{Mutex, OnceLock};
use std::thread;

use crate::queue::Queue;

/// Freed at once up to here: about half a millisecond.
const FREED_AT_ONCE_JOBS: usize = 4_096;

type Outbox = Mutex<Sender<Queue>>;

pub fn free(queue: Queue) {
    if queue.len() <= FREED_AT_ONCE_JOBS {
        return;
    }
    static REAPER: OnceLock<Option<Outbox>> = OnceLock::new();
    let reaper = REAPER.get_or_init(|| start().map(Mutex::new));
    if let Some(outbox) = reaper.as_ref().and_then(|reaper| reaper.lock().ok()) {
        // Without the thread the queue comes back with the error, and is freed here and now.
        drop(outbox.send(queue));
    }
}

fn start() -> Option<Sender<Queue>> {
    let (outbox, queues) = channel();
    let reaper = thread::Builder::new().name("dq-reaper".into());
    reaper.spawn(move || queues.iter().for_each(drop)).ok()?;
    Some(outbox)
}
