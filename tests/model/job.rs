//! A job of the reference: its stored times, and what follows from them at a moment. The length of a backoff
//! is the core's, which has tests of its own for that.

use dq::queue::{Backoff, Lease, Millis, State};

use crate::told::{Policy, LAST};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Leased,
    Dead,
    Done,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub created: u64,
    pub policy: Policy,
    pub stage: Stage,
    /// Deliveries so far.
    pub attempt: u32,
    pub lease: Option<u64>,
    /// Due time, end of the lease, moment of death or end of being kept: by stage.
    pub time: u64,
    pub dies: Option<u64>,
    pub reason: Option<Vec<u8>>,
    /// When it was given that time, among all events of the queue; below zero for one that was put back to
    /// where it was, the later the further.
    pub order: i64,
}

impl Job {
    pub fn state(&self, now: u64) -> State {
        match self.stage {
            Stage::Dead => State::Dead,
            Stage::Done => State::Done,
            Stage::Waiting | Stage::Leased => {
                if self.death().is_some_and(|time| time <= now) {
                    State::Dead
                } else if self.stage == Stage::Leased && now < self.time {
                    State::Reserved
                } else if now < self.due() {
                    State::Delayed
                } else {
                    State::Ready
                }
            }
        }
    }

    /// When it is ready, if it lives to see that.
    pub fn due(&self) -> u64 {
        (self.time + self.lease.map_or(0, |lease| self.backoff(lease))).min(LAST)
    }

    pub fn backoff(&self, lease: u64) -> u64 {
        let millis = |ms| Millis::new(ms).unwrap();
        let backoff =
            Backoff { base: millis(self.policy.backoff_base), max: millis(self.policy.backoff_max) };
        backoff.after(self.attempt, Lease::new(lease)).as_u64()
    }

    /// When it dies or has died.
    pub fn death(&self) -> Option<u64> {
        let is_last = self.policy.attempts != 0 && self.attempt >= self.policy.attempts;
        match self.stage {
            Stage::Done => None,
            Stage::Dead => Some(self.time),
            Stage::Leased if is_last => Some(self.dies.map_or(self.time, |dies| dies.min(self.time))),
            Stage::Waiting | Stage::Leased => self.dies,
        }
    }

    /// When a lease that nobody finishes is over.
    pub fn end_of_lease(&self) -> Option<u64> {
        let end = self.dies.map_or(self.time, |dies| dies.min(self.time));
        (self.stage == Stage::Leased).then_some(end)
    }

    /// It won't be ready any more, unless somebody does something.
    pub fn is_dying(&self) -> bool {
        self.death().is_some_and(|death| death <= self.due())
    }

    /// When it leaves the state in which it is, or has come to it if it doesn't leave.
    pub fn leaves(&self, state: State) -> u64 {
        match state {
            State::Ready => self.due(),
            State::Delayed => self.death().map_or(self.due(), |death| death.min(self.due())),
            State::Reserved => self.end_of_lease().unwrap(),
            State::Dead => self.death().unwrap(),
            State::Done => self.time,
        }
    }

    /// Since when it is ready, dead or done; since ADD, otherwise.
    pub fn since(&self, now: u64) -> u64 {
        match self.state(now) {
            State::Ready => self.due(),
            State::Dead => self.death().unwrap(),
            State::Done => self.time.saturating_sub(self.policy.keep),
            State::Delayed | State::Reserved => self.created,
        }
    }

    pub fn is_over(&self, now: u64) -> bool {
        self.stage == Stage::Done && self.time <= now
    }

    /// Ready jobs leave by (priority, due time, order of scheduling).
    pub fn rank(&self) -> (u8, u64, i64) {
        (self.policy.priority, self.due(), self.order)
    }
}
