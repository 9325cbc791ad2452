//! What no client says: jobs that are forgotten, because they had been kept long enough or because a purge chose
//! them, and jobs that come back because nobody was there to get them. And when the timer has to come.

use super::buckets::Rank;
use super::door::{Changed, Operation};
use super::ids::{Id, Lease};
use super::job::{JobView, Stage, State};
use super::job_record::{Cause, JobRecord};
use super::produce::Naming;
use super::queue_record::count;
use super::shift::Counted;
use super::slab::Slot;
use super::time::{Millis, Time};
use super::{Claim, Queue, Shift};

/// Removes these jobs, whatever their state. O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct Forget<'a> {
    pub ids: &'a [Id<'a>],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    pub jobs: usize,
}

/// Removes groups without jobs of which nothing counts any more: of a bounded number, which follow those that were looked at
/// last. O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct ForgetGroups;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgottenGroups {
    pub groups: usize,
}

/// Puts a job back to where it was before it was handed out, as if that hadn't been: whoever was to have it has gone
/// away unheard. O(log n).
#[derive(Clone, Copy, Debug)]
pub struct Return<'a> {
    pub id: Id<'a>,
    pub lease: Lease,
    /// As it was.
    pub record: &'a JobRecord,
    /// Of a job that was finished by being handed out.
    pub body: Option<&'a [u8]>,
    /// So many occurrences the hand-out counted as missed: for the totals, where the job is not there any more.
    pub missed: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    Yes,
    /// Somebody else has to do with the job by now, or with its id.
    No,
}

impl Changed for Forgotten {
    fn has_changed(&self) -> bool {
        self.jobs > 0
    }
}

impl Changed for ForgottenGroups {
    fn has_changed(&self) -> bool {
        self.groups > 0
    }
}

impl Changed for Returned {
    fn has_changed(&self) -> bool {
        *self == Returned::Yes
    }
}

impl Operation for Forget<'_> {
    type Outcome = Forgotten;

    fn run(&self, queue: &mut Queue, _now: Time) -> Forgotten {
        let jobs = self.ids.iter().filter_map(|id| queue.remove_called(*id)).count();
        count(&mut queue.totals.purged, jobs);
        Forgotten { jobs }
    }
}

impl Operation for ForgetGroups {
    type Outcome = ForgottenGroups;

    fn run(&self, queue: &mut Queue, now: Time) -> ForgottenGroups {
        ForgottenGroups { groups: queue.forget_groups(now) }
    }
}

impl Operation for Return<'_> {
    type Outcome = Returned;

    fn run(&self, queue: &mut Queue, _now: Time) -> Returned {
        #[cfg(feature = "planted-faults")]
        if crate::planted::has(crate::planted::Fault::NotGivenBack) {
            return Returned::No;
        }
        let returned = match self.body {
            None => queue.give_back(self),
            Some(body) => queue.bring_back(self, body),
        };
        returned.map_or(Returned::No, |()| Returned::Yes)
    }
}

impl Queue {
    /// A job that is leased stands where it stood.
    fn give_back(&mut self, returned: &Return) -> Option<()> {
        let slot = self.held(&Claim { id: returned.id, lease: Some(returned.lease) })?;
        let job = returned.record.job(returned.id.bytes(), &[]).ok()?;
        if self.restore_round(slot, &job).is_some() {
            return Some(());
        }
        let shift = Shift::new(Cause::Returned, job.time, job.time, &job.progress);
        self.shift(slot, &Shift { counted: Counted::Is(job.tally), ..shift });
        Some(())
    }

    /// A job that was finished is there again.
    fn bring_back(&mut self, returned: &Return, body: &[u8]) -> Option<()> {
        let job = returned.record.job(returned.id.bytes(), body).ok()?;
        let found = self.pool.look_up(returned.id);
        let is_armed = |slot: &Slot| self.view(*slot).is_some_and(|other| Queue::is_armed_as(&job, &other));
        if let Some(slot) = found.slot.filter(is_armed) {
            self.totals.finished = self.totals.finished.saturating_sub(1);
            return self.restore_round(slot, &job);
        }
        let is_it = |slot| self.view(slot).is_some_and(|other| is_done_as(&job, &other));
        if !found.slot.is_none_or(is_it) {
            return None;
        }
        let totals = self.totals;
        self.put_job(&job, Naming::Given, found, Rank::First)?;
        self.totals = totals;
        self.totals.popped = totals.popped.saturating_sub(1);
        self.totals.finished = totals.finished.saturating_sub(1);
        self.totals.missed = totals.missed.saturating_sub(returned.missed.into());
        Some(())
    }

    /// Those that a purge would remove: up to so many jobs in this state, and in it for at least so long,
    /// in the order in which they leave it. OLDER says nothing of delayed and reserved ones.
    pub fn to_purge(&self, now: Time, state: State, older: Millis, at_most: usize) -> Vec<Slot> {
        // A replica that is promoted may have a slower clock: a job counts as dead also where
        // that happened in its future.
        let since = if older.is_zero() { Time::MAX } else { now.saturating_sub(older) };
        self.in_state_since(state, since).take(at_most).collect()
    }

    /// Jobs that are to be forgotten by `now`, at most so many: done ones that were kept long enough, and
    /// those that have been dead for as long as the queue keeps them.
    pub fn to_forget(&self, now: Time, at_most: usize) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.schedule.done_by(now).take(at_most).collect();
        if !self.settings.dead_keep.is_zero() {
            let is_over = |slot: &Slot| self.forgets_at(*slot).is_some_and(|time| time <= now);
            let dead = self.in_state(State::Dead).take_while(is_over);
            slots.extend(dead.take(at_most.saturating_sub(slots.len())));
        }
        slots
    }

    fn forgets_at(&self, dead: Slot) -> Option<Time> {
        let job = self.view(dead)?;
        self.settings.forgets_dead_at(job.since(self.schedule.horizon()))
    }

    /// The timer need not come earlier for this queue: until then no job changes its state by itself, no pause ends,
    /// nothing is to be forgotten, no groups without jobs are to be looked at, and the rate lets no ready job leave. It may turn
    /// out that it could have come later. O(1).
    pub fn wake_at(&self) -> Time {
        self.wake_at
    }

    /// Finds out when the timer really has to come. Time has passed up to now. O(lanes).
    pub fn find_wake_at(&mut self) -> Option<Time> {
        let now = self.schedule.horizon();
        let first_done = self.schedule.first_done();
        let oldest_dead =
            if self.settings.dead_keep.is_zero() { None } else { self.in_state(State::Dead).next() };
        let forget = oldest_dead.and_then(|slot| self.forgets_at(slot));
        // Whoever waits for a job that is ready waits for that.
        let by_rate = self.rate_opens().filter(|_| self.oldest_ready().is_some());
        let next = self
            .next_change()
            .into_iter()
            .chain(self.paused_until(now))
            .chain(first_done)
            .chain(by_rate)
            .chain(self.group_opens())
            .chain(self.forgets_groups_at(now))
            .chain(forget)
            .min();
        self.wake_at = next.unwrap_or(Time::MAX);
        next.filter(|next| *next < Time::MAX)
    }
}

/// Whether `other` is this job, kept since it was finished by being handed out.
fn is_done_as(job: &JobView, other: &JobView) -> bool {
    other.progress.stage == Stage::Done
        && (other.created, other.progress.attempt) == (job.created, job.progress.attempt.saturating_add(1))
}
