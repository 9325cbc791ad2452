//! A queue's place in its log, and the circumstances that the log carries.

use serde::{Deserialize, Serialize};

use super::job::Job;
use crate::queue::value::ids::Lease;
use crate::queue::value::policy::{Attempts, Backoff};
use crate::queue::value::rate::TatParts;
use crate::queue::value::recurrence::RunState;
use crate::queue::value::state::Progress;
use crate::queue::value::time::{Millis, Time};

/// The server's defaults, used when neither ADD nor DQ.ALTER set a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Defaults {
    pub ttr: Millis,
    pub attempts: Attempts,
    #[serde(default, skip_serializing_if = "Backoff::is_none")]
    pub backoff: Backoff,
}

impl Default for Defaults {
    /// Of a new queue, whose log hasn't given any yet.
    fn default() -> Defaults {
        Defaults { ttr: Millis::ZERO, attempts: Attempts::new(0), backoff: Backoff::NONE }
    }
}

/// What an operation depends on besides the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Circumstances {
    pub now: Time,
    pub defaults: Defaults,
    /// Lease numbers up to this one were given by another queue, most often one that was at this
    /// key before. Zero: none were.
    pub lease_floor: Lease,
}

/// A running hash of what every operation did. A replica with another checksum has diverged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Checksum(pub u64);

/// Where a queue stands in its log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogState {
    /// The time of its last logged change.
    pub clock: Time,
    pub defaults: Defaults,
    pub check: Checksum,
}

impl LogState {
    /// Whether the entry can be logged as sent, because a replica already knows all inputs.
    pub fn implies(&self, circumstances: &Circumstances) -> bool {
        *circumstances
            == Circumstances {
                now: self.clock,
                defaults: self.defaults,
                lease_floor: Lease::default(),
            }
    }
}

impl Checksum {
    pub(in crate::queue) fn placement(&mut self, time: Time, progress: &Progress) {
        self.hash_in(time.unix_ms() | u64::from(progress.stage.number()) << 56);
        self.hash_in(
            progress.lease.unwrap_or_default().number() ^ u64::from(progress.attempt) << 32,
        );
    }

    /// Mixes in the creation time, too, as ENSURE keeps it when the job exists.
    pub(in crate::queue) fn run_state(&mut self, run_state: &RunState, created: Time) {
        self.hash_in(created.unix_ms());
        self.hash_in(run_state.occurrence.unix_ms());
        self.hash_in(run_state.next().unwrap_or_default().unix_ms());
        self.hash_in(
            u64::from(run_state.runs) << 32
                ^ u64::from(run_state.missed) << 16
                ^ u64::from(run_state.failed),
        );
    }

    pub(in crate::queue) fn departures(&mut self, (ms, parts): TatParts) {
        self.hash_in(ms);
        self.hash_in(parts.into());
    }

    /// Mixes in the turn of a group and the state of its rate.
    pub(in crate::queue) fn turn(&mut self, serial: u64, departures: TatParts) {
        self.hash_in(serial);
        self.departures(departures);
    }

    /// Mixes in the number of groups without jobs that were forgotten.
    pub(in crate::queue) fn forgotten(&mut self, groups: usize) {
        self.hash_in(groups as u64);
    }

    /// Mixes in a change that consists only of the clock going back.
    pub(in crate::queue) fn set_back(&mut self, now: Time) {
        self.hash_in(now.unix_ms());
    }

    /// A job has another body, note or result.
    pub(in crate::queue) fn attached(&mut self, text: &[u8]) {
        self.hash_in(text.len() as u64);
    }

    /// Edges were added, settled, or changed in a given way.
    pub(in crate::queue) fn edges(&mut self, edges: usize, change: u32) {
        self.hash_in(edges as u64 | u64::from(change) << 32);
    }

    pub(in crate::queue) fn removal(&mut self, job: &Job) {
        let (id, body) = job.id_and_body();
        self.hash_in(job.created().unix_ms() ^ ((id.bytes().len() + body.len()) as u64) << 48);
    }

    /// Each word changes all bits (one round of wyhash: W. Yi, "wyhash", 2019).
    fn hash_in(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ 0xa076_1d64_78bd_642f) * u128::from(word ^ 0xe703_7ed1_a0b4_28db);
        self.0 = product as u64 ^ (product >> u64::BITS) as u64;
    }
}
