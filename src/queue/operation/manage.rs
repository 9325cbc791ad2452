//! What operators do: remove, revive, pause, set.

use std::num::{NonZeroU32, NonZeroU64};

use crate::queue::kernel::change::Cause;
use crate::queue::kernel::operation::{Affected, Changed, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::transition::{Reason, Transition};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Id, Ids};
use crate::queue::value::policy::{Attempts, Backoff};
use crate::queue::value::rate::Rate;
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::settings::Settings;
use crate::queue::value::sink::Sink;
use crate::queue::value::state::{Progress, Stage, State};
use crate::queue::value::time::{Millis, Time};

/// Takes jobs from the queue, whatever their state. O(log n) each.
#[derive(Clone, Debug)]
pub struct Remove<'a> {
    pub ids: Ids<'a>,
    pub counted_as: Removal,
}

/// Among which totals a job counts that is removed.
#[derive(Clone, Copy, Debug)]
pub enum Removal {
    Deleted,
    /// It had been kept long enough, or a purge chose it.
    Purged,
}

/// Makes dead jobs ready: their attempts begin anew, and so does their time to live. Delayed ones
/// are ready now, and keep their attempts. O(log n) each.
#[derive(Clone, Debug)]
pub struct KickJob<'a> {
    pub ids: Ids<'a>,
}

/// Makes dead jobs due evenly over `span`, in this order; the rest is as with [`KickJob`]. O(log n)
/// each.
#[derive(Clone, Debug)]
pub struct KickSpread<'a> {
    pub ids: Ids<'a>,
    pub span: Millis,
}

/// Nothing is delivered for so long, or nothing of a group; `None` is until [`Resume`].
#[derive(Clone, Copy, Debug)]
pub struct Pause<'a> {
    pub group: Option<Id<'a>>,
    pub span: Option<Millis>,
}

/// Ends what a command began. O(1); O(log n) for a group, and for each job.
#[derive(Clone, Debug)]
pub enum Resume<'a> {
    /// The pause of the queue.
    Queue,
    /// The pause of this group.
    Group(Id<'a>),
    /// The HOLD of these jobs.
    Jobs(Ids<'a>),
}

/// What a [`Resume`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Whether there was a pause.
    Pause(bool),
    /// How many jobs were on hold.
    Jobs(usize),
}

impl Changed for Resumed {
    fn has_changed(&self) -> bool {
        match self {
            Resumed::Pause(has_ended) => *has_ended,
            Resumed::Jobs(jobs) => *jobs > 0,
        }
    }
}

/// Sets what jobs get that are added from now on, and limits. What isn't named stays as it was.
#[derive(Clone, Debug, Default)]
pub struct Alter {
    pub ttr: Option<Millis>,
    pub attempts: Option<Attempts>,
    pub backoff: Option<Backoff>,
    pub keep: Option<Millis>,
    pub late: Option<Millis>,
    /// 0 is no limit.
    pub max_jobs: Option<u64>,
    pub dead_keep: Option<Millis>,
    /// 0 is no limit.
    pub concurrency: Option<u32>,
    /// `Some(None)`: as fast as they are wanted.
    pub rate: Option<Option<Rate>>,
    /// 0 is no limit.
    pub group_concurrency: Option<u32>,
    pub group_rate: Option<Option<Rate>>,
    /// `Some(None)`: jobs wait for clients.
    pub sink: Option<Option<Sink>>,
}

/// The outcome of a pause, or of other settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Altered {
    Yes,
    /// Nothing was paused.
    No,
    /// It would be a group without jobs, of which as many are paused as may be.
    TooManyPaused,
}

impl Changed for Altered {
    fn has_changed(&self) -> bool {
        *self == Altered::Yes
    }
}

impl Operation for Remove<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        let cause = match self.counted_as {
            Removal::Deleted => Cause::Deleted,
            Removal::Purged => Cause::Purged,
        };
        Affected(self.ids.iter().filter_map(|id| queue.remove_by_id(now, *id, cause)).count())
    }
}

impl Operation for KickJob<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        queue.kick_by_id(now, &self.ids, |_| now)
    }
}

impl Operation for KickSpread<'_> {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        let share = |position| self.span.share(position, self.ids.len());
        queue.kick_by_id(now, &self.ids, |position| now.saturating_add(share(position)))
    }
}

impl Operation for Pause<'_> {
    type Outcome = Altered;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Altered {
        let until = self.span.map_or(Time::MAX, |span| now.saturating_add(span));
        if let Some(group) = self.group {
            if !queue.may_pause_group(group, now) {
                return Altered::TooManyPaused;
            }
            queue.pause_group(group, until);
        } else {
            queue.limits.pause(until);
            queue.ledger.wake_by(until);
        }
        queue.ledger.add_pause(true);
        Altered::Yes
    }
}

impl Operation for Resume<'_> {
    type Outcome = Resumed;

    /// Ends a pause that is over, too: by a clock that is behind, as after a failover, it would go
    /// on.
    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Resumed {
        let resumed = match self {
            Resume::Queue => {
                let was_paused = queue.limits.paused_until() > Time::ZERO;
                queue.limits.pause(Time::ZERO);
                Resumed::Pause(was_paused)
            }
            Resume::Group(group) => {
                let was_paused = queue.is_group_paused(*group);
                if was_paused {
                    queue.pause_group(*group, Time::ZERO);
                }
                Resumed::Pause(was_paused)
            }
            Resume::Jobs(ids) => {
                Resumed::Jobs(ids.iter().filter(|id| queue.resume_held(now, **id)).count())
            }
        };
        if resumed == Resumed::Pause(true) {
            queue.ledger.add_pause(false);
        }
        resumed
    }
}

impl Operation for Alter {
    type Outcome = Altered;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Altered {
        let before = *queue.limits.settings();
        let settings = Settings {
            ttr: self.ttr.or(before.ttr),
            attempts: self.attempts.or(before.attempts),
            backoff: self.backoff.or(before.backoff),
            keep: self.keep.unwrap_or(before.keep),
            late: self.late.unwrap_or(before.late),
            max_jobs: self.max_jobs.map_or(before.max_jobs, NonZeroU64::new),
            dead_keep: self.dead_keep.unwrap_or(before.dead_keep),
            concurrency: self.concurrency.map_or(before.concurrency, NonZeroU32::new),
            rate: self.rate.unwrap_or(before.rate),
            group_concurrency: self
                .group_concurrency
                .map_or(before.group_concurrency, NonZeroU32::new),
            group_rate: self.group_rate.unwrap_or(before.group_rate),
        };
        queue.limits.alter(settings, now);
        queue.limit_groups(&before, now);
        if let Some(sink) = &self.sink {
            queue.limits.set_sink(sink.clone());
        }
        // Dead jobs may have to be forgotten earlier, ready ones may leave.
        queue.ledger.wake_now();
        Altered::Yes
    }
}

impl Queue {
    fn remove_by_id(&mut self, now: Time, id: Id, cause: Cause) -> Option<()> {
        let slot = self.store.find(id)?;
        if self.edges.is_some() {
            self.settle_as_gone(now, slot);
        }
        self.discard(slot, cause)
    }

    /// Each that was dead is due as `due` says of its position.
    fn kick_by_id(&mut self, now: Time, ids: &Ids, due: impl Fn(usize) -> Time) -> Affected {
        let kicked = ids.iter().enumerate().filter_map(|(position, id)| {
            let slot = self.store.find(*id)?;
            self.kick_job(now, slot, due(position), Cause::Kicked)
        });
        Affected(kicked.count())
    }

    /// Makes a job ready that is delayed, or dead: that one at this due time. It is kicked, or about
    /// to be delivered all the same.
    pub(in crate::queue) fn kick_job(
        &mut self,
        now: Time,
        slot: Slot,
        due: Time,
        cause: Cause,
    ) -> Option<()> {
        let job = self.view(slot)?;
        if job.schedule.is_some() {
            return self.kick_scheduled(now, slot, due, cause);
        }
        match job.state(now) {
            State::Dead => self.revive(now, slot, due, cause),
            State::Delayed => {
                let waiting =
                    Progress { stage: Stage::Waiting, lease: None, ..self.store.progress(slot) };
                self.transition(slot, &Transition::new(cause, now, now, &waiting));
            }
            State::Held => self.kick_held(now, slot, cause),
            State::Ready | State::Reserved | State::Done => return None,
        }
        Some(())
    }

    fn revive(&mut self, now: Time, slot: Slot, due: Time, cause: Cause) {
        self.drop_open_edges(slot);
        let expires_at = self.store.policy_of(slot).and_then(|policy| policy.expiry(now));
        let anew = Progress { expires_at, ..Progress::default() };
        self.transition(slot, &Transition::new(cause, now, due, &anew).because(Reason::None));
    }

    /// Until when nothing is delivered, if that is so `now`.
    pub fn paused_until(&self, now: Time) -> Option<Time> {
        self.limits.is_paused(now).then(|| self.limits.paused_until())
    }

    pub fn settings(&self) -> &Settings {
        self.limits.settings()
    }
}
