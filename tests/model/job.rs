//! A job of the reference: its stored times, and what follows from them at a moment. The length of
//! a backoff is the core's, which has tests of its own for that.

use dq::queue::{Backoff, Lease, Millis, State};

use crate::edges::Waits;
use crate::run_state::RunState;
use crate::told::{Bytes, Policy, LAST};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Waiting,
    Leased,
    Dead,
    Done,
    /// It waits for others, or for a command.
    Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    pub id: Bytes,
    pub body: Bytes,
    pub created: u64,
    pub policy: Policy,
    pub stage: Stage,
    /// Deliveries so far.
    pub attempt: u32,
    pub lease: Option<u64>,
    /// Due time, end of the lease, moment of death or end of being kept: by stage.
    pub time: u64,
    pub expires_at: Option<u64>,
    pub reason: Option<Bytes>,
    /// When it was given that time, among all events of the queue; below zero for one that was put
    /// back to where it was, the later the further.
    pub order: i64,
    pub tally: Tally,
    pub group: Option<crate::groups::Name>,
    /// Where it is in its schedule, if it has one.
    pub round: Option<RunState>,
    /// How far it is.
    pub note: Option<Bytes>,
    /// Of a job that is done; or of the last run.
    pub result: Option<Bytes>,
    pub waits: Option<Waits>,
    /// To the log: where others wait for it.
    pub is_known_dead: bool,
}

/// How often a job had what happen to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub timed_out: u16,
    pub released: u16,
    pub buried: u16,
    pub kicked: u16,
}

/// The lines in which jobs stand, in this order; and in each by its time, then by order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    Lane(u8),
    Grouped(u8),
    Dying,
    Dead,
    Done,
    Held,
}

impl Job {
    pub fn state(&self, now: u64) -> State {
        match self.stage {
            Stage::Dead => State::Dead,
            Stage::Done => State::Done,
            Stage::Held if self.death().is_some_and(|time| time <= now) => State::Dead,
            Stage::Held => State::Held,
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
        if let Some(due) = self.comes_back() {
            return due;
        }
        (self.time + self.lease.map_or(0, |lease| self.backoff(lease))).min(LAST)
    }

    pub fn backoff(&self, lease: u64) -> u64 {
        let millis = |ms| Millis::new(ms).unwrap();
        let backoff = Backoff {
            base: millis(self.policy.backoff.base),
            max: millis(self.policy.backoff.max),
        };
        backoff.after(self.attempt, Lease::new(lease)).as_u64()
    }

    pub fn is_at_its_last_attempt(&self) -> bool {
        self.policy.attempts != 0 && self.attempt >= self.policy.attempts
    }

    /// When it dies or has died.
    pub fn death(&self) -> Option<u64> {
        match self.stage {
            Stage::Done => None,
            Stage::Held => self.expires_at,
            Stage::Dead => Some(self.time),
            Stage::Leased if self.is_at_its_last_attempt() && self.comes_back().is_none() => {
                self.end_of_lease()
            }
            Stage::Waiting | Stage::Leased => {
                self.late_at().into_iter().chain(self.expires_at).min()
            }
        }
    }

    /// When nobody need take it any more.
    pub fn late_at(&self) -> Option<u64> {
        let may_be = self.policy.late != 0 && matches!(self.stage, Stage::Waiting | Stage::Leased);
        may_be.then(|| self.due() + self.policy.late).filter(|time| *time < LAST)
    }

    /// When a lease that nobody finishes is over.
    pub fn end_of_lease(&self) -> Option<u64> {
        let end = self.expires_at.map_or(self.time, |expiry| expiry.min(self.time));
        (self.stage == Stage::Leased).then_some(end)
    }

    /// As somebody sees it who looks.
    pub fn tally_at(&self, now: u64) -> Tally {
        let has_timed_out = self.end_of_lease().is_some_and(|end| end <= now);
        Tally { timed_out: self.tally.timed_out + u16::from(has_timed_out), ..self.tally }
    }

    /// Where it stands.
    pub fn place(&self) -> (Line, u64, i64) {
        let (line, time) = match self.stage {
            Stage::Dead => (Line::Dead, self.time),
            Stage::Done => (Line::Done, self.time),
            Stage::Held => (Line::Held, self.time),
            // It won't be ready any more, unless somebody does something.
            Stage::Waiting | Stage::Leased => match self
                .death()
                .filter(|death| *death <= self.due())
            {
                Some(death) => (Line::Dying, death),
                None if self.group.is_some() => (Line::Grouped(self.policy.priority), self.due()),
                None => (Line::Lane(self.policy.priority), self.due()),
            },
        };
        (line, time, self.order)
    }

    /// When it leaves the state in which it is, or has come to it if it doesn't leave.
    pub fn leaves(&self, state: State) -> u64 {
        match state {
            State::Ready => self.due(),
            State::Delayed => self.death().map_or(self.due(), |death| death.min(self.due())),
            State::Reserved => self.end_of_lease().unwrap(),
            State::Dead => self.death().unwrap(),
            State::Done | State::Held => self.time,
        }
    }

    /// Since when it is in this state; of the others, nobody asks.
    pub fn since(&self, state: State) -> Option<u64> {
        match state {
            State::Ready => Some(self.due()),
            State::Dead => self.death(),
            State::Done => Some(self.time.saturating_sub(self.policy.keep)),
            State::Held => Some(self.time),
            State::Delayed | State::Reserved => None,
        }
    }

    /// A finished job that was kept for long enough.
    pub fn is_over(&self, now: u64) -> bool {
        self.stage == Stage::Done && self.time <= now
    }
}
