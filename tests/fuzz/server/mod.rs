//! A server in this process: as much of the module API as the module uses, with keys, time, timers,
//! blocked clients, a log and an RDB in memory. The module is loaded into it by its own `OnLoad`,
//! as into any server, so that what is tested is the module as it is, from the words of a command
//! to its reply.
//!
//! It is simple and never slow: no network, no threads, no clock but the one that a test sets.
//!
//! | file | what it is |
//! | --- | --- |
//! | `mod.rs` | the server as a test sees it |
//! | `world.rs` | what there is |
//! | `api.rs` | the functions by name; loading, configs, time, INFO |
//! | `calls.rs` | strings, replies and the log of a command |
//! | `keys.rs` | keys and their values |
//! | `defrag.rs` | memory that gets other addresses |
//! | `files.rs` | RDB, AOF and digest |
//! | `streams.rs` | commands of the server that the module runs: it adds to streams |
//! | `waiting.rs` | blocked clients and timers |

mod api;
mod calls;
mod defrag;
mod files;
mod keys;
mod streams;
mod waiting;
mod world;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

pub use calls::Replied;
pub use files::{Item, ENCODING_VERSION};
pub use keys::Place;
pub use world::{Database, Word};

use calls::Ctx;
use world::{with, Role};

/// When a session begins.
pub const BEGIN_MS: u64 = 1_763_725_200_000;

/// After so many runs of its timer the module has looked at all keys that are gone.
const TURNS_TO_REST: usize = 5;

/// The one server of this process. The module keeps its state in statics, so there can't be two.
pub struct Server {
    _alone: MutexGuard<'static, ()>,
}

/// What has become of a command.
#[derive(Debug)]
pub enum Answer {
    Replied(Replied),
    /// The client waits.
    Waits,
    /// The server itself refuses: there is no such command, or it takes another number of words.
    Unknown,
}

impl Server {
    /// Empty, a primary, at [`BEGIN_MS`].
    pub fn begin() -> Server {
        static ALONE: Mutex<()> = Mutex::new(());
        static LOADED: OnceLock<()> = OnceLock::new();
        // A test that failed has said so already.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        LOADED.get_or_init(api::load_module);
        let server = Server { _alone: alone };
        server.set_clock(BEGIN_MS);
        server
    }

    pub fn clock(&self) -> u64 {
        with(|world| world.clock_ms)
    }

    pub fn set_clock(&self, unix_ms: u64) {
        with(|world| world.clock_ms = unix_ms);
    }

    /// A command of a client. Its turn of the event loop ends with it.
    pub fn run(&self, database: Database, words: &[Word]) -> Answer {
        let answer = self.run_in_turn(database, words);
        self.end_turn();
        answer
    }

    /// The same; others may follow in this turn.
    pub fn run_in_turn(&self, database: Database, words: &[Word]) -> Answer {
        let Some(command) = words.first().and_then(|name| calls::command(name, words.len())) else {
            return Answer::Unknown;
        };
        let ctx = Ctx::of_command(database, words);
        let answer = command(ctx);
        waiting::tell_of_ready_keys();
        answer
    }

    /// Timers whose time has come, then the ends of clients that waited.
    pub fn end_turn(&self) {
        waiting::run_timers();
        waiting::free_those_who_left();
    }

    /// Which of those who wait leaves without an answer, by its place in the line; none when nobody
    /// waits.
    pub fn disconnect(&self, which: usize) {
        waiting::disconnect(which);
    }

    /// What was logged since this was asked last: databases and words.
    pub fn take_log(&self) -> Vec<(Database, Vec<Word>)> {
        with(|world| std::mem::take(&mut world.log))
    }

    /// Every key with the digest of its value.
    pub fn digests(&self) -> Vec<(Place, Vec<u8>)> {
        let values = with(|world| world.keys.clone());
        values.into_iter().map(|(place, value)| (place, files::digest(value))).collect()
    }

    pub fn has(&self, database: Database, key: &[u8]) -> bool {
        keys::value_at(&(database, key.to_vec())).is_some()
    }

    /// What a DUMP holds of the value; `None` without one.
    pub fn dump(&self, database: Database, key: &[u8]) -> Option<Vec<u8>> {
        Some(files::save(keys::value_at(&(database, key.to_vec()))?))
    }

    /// The words of an AOF that makes the value.
    pub fn rewrite(&self, database: Database, key: &[u8]) -> Vec<Vec<Word>> {
        let place = (database, key.to_vec());
        keys::value_at(&place).map(|value| files::rewrite(&place, value)).unwrap_or_default()
    }

    /// RESTORE … REPLACE of such a value; false when the module refuses it.
    pub fn restore(
        &self,
        database: Database,
        key: &[u8],
        encoding_version: i32,
        value: &[u8],
    ) -> bool {
        let place = (database, key.to_vec());
        let Some(value) = files::load(&place, encoding_version, value) else {
            return false;
        };
        keys::put(place, value);
        waiting::tell_of_ready_keys();
        true
    }

    pub fn delete(&self, database: Database, key: &[u8]) {
        keys::delete(&(database, key.to_vec()));
    }

    pub fn rename(&self, database: Database, from: &[u8], to: &[u8]) {
        keys::rename(&(database, from.to_vec()), (database, to.to_vec()));
        waiting::tell_of_ready_keys();
    }

    pub fn copy(&self, from: (Database, &[u8]), to: (Database, &[u8])) {
        keys::copy(&(from.0, from.1.to_vec()), (to.0, to.1.to_vec()));
        waiting::tell_of_ready_keys();
    }

    pub fn flush(&self) {
        keys::flush();
    }

    /// Writes all keys to a file, and loads it instead of them.
    pub fn reload(&self) {
        let files: Vec<_> = with(|world| world.keys.clone()).into_iter().collect();
        let files: Vec<_> =
            files.into_iter().map(|(place, value)| (place, files::save(value))).collect();
        keys::flush();
        api::tell_of_loading(true);
        for (place, file) in files {
            let value = files::load(&place, files::ENCODING_VERSION, &file);
            keys::put(place, value.expect("the module reads what it has written"));
        }
        api::tell_of_loading(false);
        waiting::tell_of_ready_keys();
    }

    /// Every value's memory is put elsewhere: at once, or in slices of so many allocations.
    pub fn defrag(&self, slice: Option<usize>) {
        defrag::defrag(slice);
    }

    /// A number that some reply had and that may be a lease: the last one, the last but one …
    pub fn lease(&self, from_last: usize) -> Option<u64> {
        with(|world| world.leases.iter().rev().nth(from_last).copied())
    }

    /// The server becomes a replica that follows a log, or a primary again.
    pub fn follow(&self, follows: bool) {
        let role = if follows { Role::Replica } else { Role::Primary };
        with(|world| world.role = role);
        api::tell_of_role();
        self.end_turn();
    }

    /// The fields of its section in INFO.
    pub fn info(&self) -> Vec<(String, String)> {
        api::info()
    }
}

impl Drop for Server {
    /// As it was at the beginning, for whoever comes next.
    fn drop(&mut self) {
        waiting::disconnect_all();
        self.flush();
        self.end_turn();
        // The module counts on its timers: while it waits for one, it starts no other.
        for _ in 0..TURNS_TO_REST {
            waiting::let_timers_come();
            self.end_turn();
        }
        let has_timers = with(|world| !world.timers.is_empty());
        assert!(!has_timers || std::thread::panicking(), "there is nothing, and yet a timer");
        with(|world| {
            world.log.clear();
            world.leases.clear();
            world.timers.clear();
        });
        self.set_clock(BEGIN_MS);
    }
}
