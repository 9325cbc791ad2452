//! What a job is and where it has got to.

use serde::{Deserialize, Serialize};

use super::ids::Lease;
use super::record::read_where_possible;
use super::time::Time;

/// What a job is, seen at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Delayed,
    Ready,
    Reserved,
    Dead,
    Done,
}

impl State {
    pub const ALL: [State; 5] =
        [State::Delayed, State::Ready, State::Reserved, State::Dead, State::Done];

    pub const fn name(self) -> &'static str {
        match self {
            State::Delayed => "delayed",
            State::Ready => "ready",
            State::Reserved => "reserved",
            State::Dead => "dead",
            State::Done => "done",
        }
    }
}

/// What commands made of a job. The states follow from this, the stored times and the clock:
/// nothing has to be written when a job falls due, a lease ends or a life is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Stage {
    /// Delayed until its time, then ready.
    #[default]
    Waiting,
    /// Reserved until its time; then it waits for its backoff and is ready again, or dead when that
    /// was its last attempt.
    Leased,
    /// Dead since its time.
    Dead,
    /// Finished, and kept until its time.
    Done,
}

impl Stage {
    /// By which it is stored.
    pub const fn number(self) -> u8 {
        match self {
            Stage::Waiting => 0,
            Stage::Leased => 1,
            Stage::Dead => 2,
            Stage::Done => 3,
        }
    }

    pub const fn of(number: u8) -> Option<Stage> {
        match number {
            0 => Some(Stage::Waiting),
            1 => Some(Stage::Leased),
            2 => Some(Stage::Dead),
            3 => Some(Stage::Done),
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

/// Where a job has got to since ADD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    pub stage: Stage,
    /// Deliveries so far.
    pub attempt: u32,
    /// Of the latest delivery, while it is good for something.
    pub lease: Option<Lease>,
    /// When it expires, if its ADD said so: from then on it is dead, unless it was finished.
    pub expires_at: Option<Time>,
}
