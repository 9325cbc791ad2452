//! The lines of a job: they follow from its policy, its stored time and its progress.

use super::entry::EntryKind;
use super::lanes::MainLine;
use super::window::Window;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::{Progress, Stage};
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

    /// The placement of a job with this policy and progress, whose stored time is `time`.
    /// `next_run` is set for a job that a schedule brings back instead of letting it die.
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
            Stage::Held => {
                let closes = progress.expires_at.unwrap_or(Time::MAX);
                return Placement {
                    window: Window { opens: Time::ZERO, closes },
                    expiry: progress.expires_at,
                    ..alone(MainLine::Held, Time::ZERO)
                };
            }
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
