//! What is frozen: the bytes of records, and the numbers that the outcome of a logged command
//! depends on. All of it is in docs/format.md. When a test here fails, two versions of the module
//! would read a file or a log differently.
//!
//! The bytes are written by hand, field by field, from the tables there and the specification of
//! MessagePack.

// A test may panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod jobs;
mod outcomes;
mod queues;

use dq::queue::*;

const SEED: (u64, u64) = (1, 2);

const TOTALS: &[u8] = &[0x9c, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
/// TTR 30, no ATTEMPTS, BACKOFF 1 2, KEEP 3, LATE 4, MAXJOBS 1,000, DEADKEEP 9; no limits.
const SETTINGS: &[u8] =
    &[0x9b, 30, 0xc0, 0x92, 1, 2, 3, 4, 0xcd, 0x03, 0xe8, 9, 0xc0, 0xc0, 0xc0, 0xc0];

fn at(unix_ms: u64) -> Time {
    Time::new(unix_ms).unwrap()
}

fn ms(ms: u64) -> Millis {
    Millis::new(ms).unwrap()
}

fn id(name: &str) -> Id<'_> {
    Id::new(name.as_bytes()).unwrap()
}

fn told(now: u64) -> Circumstances {
    let defaults = Defaults { ttr: ms(500), attempts: Attempts::new(25), ..Defaults::default() };
    Circumstances { now: at(now), defaults, ..Circumstances::default() }
}

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn job<'a>(progress: Progress, time: u64, reason: Option<&'a [u8]>) -> JobView<'a> {
    let policy = Policy {
        ttr: ms(60_000),
        attempts: Attempts::new(25),
        priority: 128,
        backoff: Backoff { base: ms(1_000), max: ms(60_000) },
        ttl: ms(86_400_000),
        keep: ms(0),
        late: ms(0),
    };
    let (group, schedule) = (None, None);
    JobView {
        id: id("a"),
        body: b"body",
        time: at(time),
        created: at(100),
        policy,
        progress,
        reason,
        tally: Tally::default(),
        group,
        schedule,
        note: None,
        result: None,
    }
}
