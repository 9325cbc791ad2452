//! A job's state, stage and progress.

use serde::{Deserialize, Serialize};

use super::ids::Lease;
use super::record::read_where_possible;
use super::time::Time;

/// The state of a job at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
    Done,
    /// It waits for other jobs, or for a command to resume it.
    Held,
}

impl State {
    pub const ALL: [State; 6] =
        [State::Delayed, State::Ready, State::Reserved, State::Dead, State::Done, State::Held];

    pub const fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Dead => "dead",
            State::Done => "done",
            State::Held => "held",
        }
    }
}

/// What commands made of a job. Its state follows from this, its stored times and the clock:
/// nothing is written when a job falls due, a lease ends or a TTL is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Stage {
    /// Delayed until its time, then ready.
    #[default]
    Waiting,
    /// Reserved until its time. Then it waits for its backoff and is ready again; after the last
    /// attempt it is dead.
    Leased,
    /// Dead since its time.
    Dead,
    /// Finished, and kept until its time.
    Done,
    /// It waits for other jobs, or for a command to resume it, since its time: that of its ADD.
    Held,
}

impl Stage {
    /// By which it is stored.
    pub const fn number(self) -> u8 {
        match self {
            Stage::Waiting => 0,
            Stage::Leased => 1,
            Stage::Dead => 2,
            Stage::Done => 3,
            Stage::Held => 4,
        }
    }

    pub const fn of(number: u8) -> Option<Stage> {
        match number {
            0 => Some(Stage::Waiting),
            1 => Some(Stage::Leased),
            2 => Some(Stage::Dead),
            3 => Some(Stage::Done),
            4 => Some(Stage::Held),
            _ => None,
        }
    }
}

read_where_possible!(Stage, u8, Stage::of);

impl From<Stage> for u8 {
    fn from(stage: Stage) -> u8 {
        stage.number()
    }
}

/// The progress of a job since ADD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    /// Deliveries so far.
    pub attempt: u32,
    /// The lease of the latest delivery, while a worker may use it.
    pub lease: Option<Lease>,
    /// When it expires, if it has a TTL: from then on it is dead, unless it was finished.
    pub expires_at: Option<Time>,
}
