//! In which lines a job stands: this follows from its policy, its stored time and its progress.

use super::entry::EntryKind;
use super::lanes::MainLine;
use super::window::Window;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::{Progress, Stage};
use crate::queue::value::time::Time;

/// Where a job stands, in which lines and at which times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    pub main_line: MainLine,
    pub time: Time,
    pub kind: EntryKind,
    pub window: Window,
    /// In the line of those that expire: when.
    pub expiry: Option<Time>,
    /// In the line of leases: the end of its lease.
    pub lease_end: Option<Time>,
}

impl Placement {
    /// Of a job that nobody has had, that doesn't expire and can't be late.
    pub fn waiting(policy: &Policy, time: Time) -> Placement {
        let main_line = MainLine::Lane(policy.priority);
        Placement {
            main_line,
            time,
            kind: EntryKind::Waiting,
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
        next_run: Option<Time>,
    ) -> Placement {
        let alone = |main_line, opens| {
            let window = Window { opens, closes: Time::MAX };
            Placement {
                main_line,
                time,
                kind: EntryKind::Waiting,
                window,
                expiry: None,
                lease_end: None,
            }
        };
        let (lease_end, due, is_last) = match progress.stage {
            Stage::Dead => return alone(MainLine::Dead, Time::ZERO),
            Stage::Done => return alone(MainLine::Done, time.saturating_sub(policy.keep)),
            Stage::Waiting => (None, time, false),
            Stage::Leased if next_run.is_some() && policy.attempts.end_with(progress.attempt) => {
                (Some(time), next_run.map_or(time, |due| due.max(time)), false)
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
        let (kind, opens) = match lease_end {
            None => (EntryKind::Waiting, Time::ZERO),
            Some(end) if end < until => (EntryKind::LeasedAtFirst, end),
            Some(_) => (EntryKind::Leased, until),
        };
        let late_at = policy.late_at(due).into_iter();
        let expiry = late_at.chain(progress.expires_at).min().filter(|_| death.is_none());
        Placement {
            main_line: if death.is_some() {
                MainLine::Dying
            } else {
                MainLine::Lane(policy.priority)
            },
            time: until,
            kind,
            window: Window { opens, closes: expiry.unwrap_or(Time::MAX) },
            expiry,
            lease_end: lease_end.filter(|_| kind == EntryKind::LeasedAtFirst),
        }
    }
}
