//! The services in simulated sessions: a primary, a replica and their clients in one process, under
//! one clock, in which everything that happens is drawn from a seed. The models are TigerBeetle's
//! VOPR and FoundationDB's simulator.
//!
//! | file | what it is |
//! | --- | --- |
//! | `world.rs` | a session: clients, and turns of the event loop |
//! | `draw.rs`, `troubles.rs` | what clients say; what happens to servers |
//! | `node.rs`, `key.rs` | a server as the services see it: the trait [`super::host::Host`] |
//! | `keyspace.rs`, `commands.rs`, `operation.rs` | what a server does to keys; commands and entries of the log |
//! | `account.rs`, `claims.rs`, `many.rs`, `groups.rs`, `edges.rs` | the world's own account of a queue, which shares no code with it; what workers say; many jobs in one step; groups; jobs that wait for others |
//! | `single/` | no session: one service at a time, on a server of these |
//! | `streams.rs` | jobs that go to streams |
//! | `watch.rs` | clients that wait for what becomes of a job or a lease |
//! | `judge.rs`, `follow.rs`, `inspect.rs` | what servers do, beside the accounts; how these follow keys; what must be so at the end of each turn |
//!
//! A session that finds something tells its seed:
//!
//! ```text
//! DQ_SIMULATE_SEED=17 cargo test --lib simulated -- --nocapture     # plays it again, and tells what happens
//! DQ_SIMULATE_SECONDS=600 cargo test --lib simulated -- --nocapture # other sessions each time: make simulate
//! ```

mod account;
mod claims;
mod commands;
mod draw;
mod edges;
mod follow;
mod groups;
mod inspect;
mod judge;
mod key;
mod keyspace;
mod many;
mod node;
mod operation;
mod single;
mod streams;
mod troubles;
mod watch;
mod world;

use std::any::Any;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use world::{Played, World};

/// Sessions of the normal tests: some seconds.
const SESSIONS: u64 = 10_000;

/// Plays a session; why it failed, if it did.
fn play(seed: u64, is_told: bool) -> Result<Played, String> {
    let why = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => {
            panic.downcast::<&str>().map_or_else(|_| "it panics".into(), |text| text.to_string())
        }
    };
    catch_unwind(AssertUnwindSafe(|| World::new(seed, is_told).play())).map_err(why)
}

/// Plays sessions until one fails, the time is over, or there are no more.
fn play_all(seeds: impl Iterator<Item = u64>, time: Duration) {
    let begun = Instant::now();
    let (mut sessions, mut all) = (0_u64, Played::default());
    for seed in seeds.take_while(|_| begun.elapsed() < time) {
        match play(seed, false) {
            Ok(played) => {
                sessions += 1;
                all.turns += played.turns;
                all.entries += played.entries;
            }
            Err(why) => panic!("session {seed}: {why}\nDQ_SIMULATE_SEED={seed} plays it again"),
        }
    }
    let (took, Played { turns, entries }) = (begun.elapsed().as_secs_f64(), all);
    let a_second = sessions as f64 / took;
    println!(
        "{sessions} sessions, {turns} turns, {entries} entries in {took:.1} s: {a_second:.0} sessions a second"
    );
}

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn simulated_sessions_keep_all_promises() {
    if let Some(seed) = number_in("DQ_SIMULATE_SEED") {
        let played = play(seed, true);
        assert!(played.is_ok(), "session {seed}: {played:?}");
    } else if let Some(seconds) = number_in("DQ_SIMULATE_SECONDS") {
        let by_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() << 24;
        let first = number_in("DQ_SIMULATE_FROM").unwrap_or(by_clock);
        println!("sessions from {first} on");
        play_all(first.., Duration::from_secs(seconds));
    } else {
        play_all(0..SESSIONS, Duration::MAX);
    }
}
