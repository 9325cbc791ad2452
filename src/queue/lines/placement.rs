//! The lines of a job: they follow from its fate.

use super::entry::EntryKind;
use super::lanes::MainLine;
use super::window::Window;
use crate::queue::value::fate::Fate;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::Stage;
use crate::queue::value::time::Time;

/// The lines of a job, and its time in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub main_line: MainLine,
    pub time: Time,
    pub kind: EntryKind,
    pub window: Window,
    /// When the job expires, if it is in the line of jobs that expire.
    pub expiry: Option<Time>,
    /// The end of its lease, if it is in the line of leases.
    pub lease_end: Option<Time>,
}

impl Placement {
    /// The placement of a job that was never delivered, doesn't expire and can't be late.
    pub fn waiting(policy: &Policy, time: Time) -> Placement {
        Placement::in_one_line(MainLine::Lane(policy.priority), time)
    }

    /// It is in its main line alone, and in the state that this line is searched for at all times.
    fn in_one_line(main_line: MainLine, time: Time) -> Placement {
        Placement {
            main_line,
            time,
            kind: EntryKind::Waiting,
            window: Window::ALWAYS,
            expiry: None,
            lease_end: None,
        }
    }

    /// The placement of a job with this policy and fate.
    pub fn of(policy: &Policy, fate: &Fate) -> Placement {
        let dies_undelivered = fate.dies_undelivered();
        let main_line = MainLine::of(fate.stage(), dies_undelivered.is_some(), policy);
        // When it leaves its main line, or came into it. A job that dies first never becomes ready.
        let time = dies_undelivered.unwrap_or(fate.due);
        // A death after it is due finds it in its lane. There it stays: its window closes, and the
        // side line of jobs that expire has the time.
        let expiry = match fate.stage() {
            Stage::Waiting | Stage::Leased if dies_undelivered.is_some() => None,
            Stage::Waiting | Stage::Leased | Stage::Held => fate.death.map(|(time, _)| time),
            Stage::Dead | Stage::Done => None,
        };
        let (kind, opens, lease_end) = match fate.lease_end {
            // It is reserved, and then waits for its backoff or its next run: the side line of
            // leases has the time at which it stops being reserved and begins to be delayed.
            Some(end) if end < time => (EntryKind::LeasedThenWaiting, end, Some(end)),
            // It is reserved until it is ready, or dead.
            Some(_) => (EntryKind::Leased, time, None),
            // It is done since it was finished, and is kept until `time`.
            None if fate.stage() == Stage::Done => {
                (EntryKind::Waiting, time.saturating_sub(policy.keep), None)
            }
            None => (EntryKind::Waiting, Time::ZERO, None),
        };
        let window = Window { opens, closes: expiry.unwrap_or(Time::MAX) };
        Placement { kind, window, expiry, lease_end, ..Placement::in_one_line(main_line, time) }
    }
}

#[cfg(test)]
mod tests;
