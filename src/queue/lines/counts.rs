//! How many jobs are in each state, and what the passing of time did to them.

use crate::queue::value::state::State;

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub delayed: usize,
    pub ready: usize,
    pub reserved: usize,
    pub dead: usize,
    pub done: usize,
    pub held: usize,
}

impl Counts {
    pub fn of(&self, state: State) -> usize {
        match state {
            State::Delayed => self.delayed,
            State::Ready => self.ready,
            State::Reserved => self.reserved,
            State::Dead => self.dead,
            State::Done => self.done,
            State::Held => self.held,
        }
    }
}

/// What the passing of time did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub became_ready: usize,
    pub died: usize,
    /// What was not counted before, in case the clock was set back and forward again.
    pub uncounted: Uncounted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Leases that ran out.
    pub timed_out: usize,
    pub died: usize,
}
