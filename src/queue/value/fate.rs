//! What becomes of a job if no command changes it: the heart of "a job's state is not stored"
//! (ARCHITECTURE.md). All that depends on the passing of time is derived from a [`Fate`]: a job's
//! state, its lines, when it is delivered, when and of what it dies.

use super::policy::Policy;
use super::state::{Progress, Stage, State};
use super::time::Time;

/// What time does to a job that no command changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    stage: Stage,
    /// When its lease runs out, if a worker has it.
    pub lease_end: Option<Time>,
    /// From when on it may be delivered, if it lives until then. Of a job that is dead, done or
    /// held: its stored time.
    pub due: Time,
    /// When it dies, or died, and of what.
    pub death: Option<(Time, Why)>,
}

/// Of what a job dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A command made it dead; the job has the reason, if there is one.
    Command,
    /// The lease of its last attempt runs out.
    LastAttempt,
    /// Its TTL is over.
    Expired,
    /// It was ready for as long as its LATE allows, and no worker took it.
    Late,
}

impl Fate {
    /// The fate of a job with this policy and progress, whose stored time (see [`Stage`]) is `time`.
    /// `next_run` is when a job with a schedule is due again, if there is another run. O(1).
    pub fn of(policy: &Policy, time: Time, progress: &Progress, next_run: Option<Time>) -> Fate {
        let Progress { stage, attempt, lease, expires_at } = *progress;
        let expiry = expires_at.map(|time| (time, Why::Expired));
        let stays = Fate { stage, lease_end: None, due: time, death: None };
        // A job that waits to be delivered dies of its TTL, or of being late, whichever is first.
        let waits_until = |due| {
            let lateness = policy.late_at(due).map(|time| (time, Why::Late));
            Fate { due, death: earlier(expiry, lateness), ..stays }
        };
        match stage {
            // Only a command brings it back.
            Stage::Dead => Fate { death: Some((time, Why::Command)), ..stays },
            Stage::Done => stays,
            // It may be late only once it is due, and nothing but a command makes it so.
            Stage::Held => Fate { death: expiry, ..stays },
            Stage::Waiting => waits_until(time),
            Stage::Leased => {
                let is_last = policy.attempts.end_with(attempt);
                let after_lease = match next_run.filter(|_| is_last) {
                    // The run has failed. The job isn't dead: its schedule goes on.
                    Some(next_run) => waits_until(next_run.max(time)),
                    // No attempt is left. A TTL that is over before the lease is another reason.
                    None if is_last => {
                        let death = earlier(Some((time, Why::LastAttempt)), expiry);
                        Fate { death, ..stays }
                    }
                    // It waits for its backoff, and then for another attempt.
                    None => {
                        let backoff = policy.backoff.after(attempt, lease.unwrap_or_default());
                        waits_until(time.saturating_add(backoff))
                    }
                };
                Fate { lease_end: Some(time), ..after_lease }
            }
        }
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The job's state at `now`.
    pub fn state(&self, now: Time) -> State {
        match self.stage {
            Stage::Done => State::Done,
            Stage::Dead => State::Dead,
            _ if self.death.is_some_and(|(time, _)| time <= now) => State::Dead,
            Stage::Held => State::Held,
            _ if self.lease_end.is_some_and(|end| now < end) => State::Reserved,
            Stage::Waiting | Stage::Leased if now < self.due => State::Delayed,
            Stage::Waiting | Stage::Leased => State::Ready,
        }
    }

    /// When it dies, if that is before it would be delivered again.
    pub fn dies_undelivered(&self) -> Option<Time> {
        let is_on_its_way = matches!(self.stage, Stage::Waiting | Stage::Leased);
        let (time, _) = self.death.filter(|_| is_on_its_way)?;
        (time <= self.due).then_some(time)
    }
}

/// The first of two deaths; of two at the same time, the one named first.
fn earlier(one: Option<(Time, Why)>, other: Option<(Time, Why)>) -> Option<(Time, Why)> {
    one.into_iter().chain(other).min_by_key(|(time, _)| *time)
}
