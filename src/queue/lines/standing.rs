//! In which lines a job stands: this follows from its policy, its stored time and its progress.

use super::entry::Hold;
use super::lanes::Home;
use super::window::Window;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::time::Time;

/// Where a job stands, in which lines and at which times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub home: Home,
    pub time: Time,
    pub hold: Hold,
    pub window: Window,
    /// In the line of those that expire: when.
    pub expiry: Option<Time>,
    /// In the line of leases: the end of its lease.
    pub lease_end: Option<Time>,
}

impl Standing {
    /// Of a job that nobody has had, that doesn't expire and can't be late.
    pub fn waiting(policy: &Policy, time: Time) -> Standing {
        let home = Home::Lane(policy.priority);
        Standing {
            home,
            time,
            hold: Hold::Waiting,
            window: Window::ALWAYS,
            expiry: None,
            lease_end: None,
        }
    }

    /// Of a job with this policy and progress, whose time is `time`; and which comes back, where it
    /// would be dead, for an occurrence that is decided.
    pub fn of(
        policy: &Policy,
        time: Time,
        progress: &Progress,
        comes_back: Option<Time>,
    ) -> Standing {
        let alone = |home, opens| {
            let window = Window { opens, closes: Time::MAX };
            Standing { home, time, hold: Hold::Waiting, window, expiry: None, lease_end: None }
        };
        let (lease_end, due, is_last) = match progress.stage {
            Stage::Dead => return alone(Home::Dead, Time::ZERO),
            Stage::Done => return alone(Home::Done, time.saturating_sub(policy.keep)),
            Stage::Waiting => (None, time, false),
            Stage::Leased if comes_back.is_some() && policy.attempts.end_with(progress.attempt) => {
                (Some(time), comes_back.map_or(time, |due| due.max(time)), false)
            }
            Stage::Leased => {
                let wait =
                    policy.backoff.after(progress.attempt, progress.lease.unwrap_or_default());
                (Some(time), time.saturating_add(wait), policy.attempts.end_with(progress.attempt))
            }
        };
        let death = match (is_last, progress.expires_at) {
            (true, expiry) => Some(expiry.map_or(time, |expiry| expiry.min(time))),
            (false, Some(expiry)) if expiry <= due => Some(expiry),
            (false, _) => None,
        };
        let until = death.unwrap_or(due);
        let (hold, opens) = match lease_end {
            None => (Hold::Waiting, Time::ZERO),
            Some(end) if end < until => (Hold::LeasedAtFirst, end),
            Some(_) => (Hold::Leased, until),
        };
        let late_at = policy.late_at(due).into_iter();
        let expiry = late_at.chain(progress.expires_at).min().filter(|_| death.is_none());
        Standing {
            home: if death.is_some() { Home::Dying } else { Home::Lane(policy.priority) },
            time: until,
            hold,
            window: Window { opens, closes: expiry.unwrap_or(Time::MAX) },
            expiry,
            lease_end: lease_end.filter(|_| hold == Hold::LeasedAtFirst),
        }
    }
}
