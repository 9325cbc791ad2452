//! What one sees of the reference, at its horizon.

use std::collections::HashMap;

use dq::queue::{Counts, EndKind, State};

use crate::edges::Edge;
use crate::job::{Job, Stage};
use crate::reference::Reference;
use crate::told::{Bytes, LAST};

impl Reference {
    pub fn counts(&self) -> Counts {
        let count = |state| self.in_state(state).count();
        Counts {
            delayed: count(State::Delayed),
            ready: count(State::Ready),
            reserved: count(State::Reserved),
            dead: count(State::Dead),
            done: count(State::Done),
            held: count(State::Held),
        }
    }

    pub fn in_state(&self, state: State) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.state(self.horizon) == state)
    }

    /// Whether these are the first jobs of those that have been in this state for so long: as many
    /// as there are, but so many at most. Which of those that leave it at the same time is anyone's
    /// guess.
    pub fn are_the_first(&self, ids: &[Bytes], state: State, older: u64, at_most: usize) -> bool {
        let since = if older == 0 { LAST } else { self.horizon.saturating_sub(older) };
        let is_old = |job: &&Job| job.since(state).is_none_or(|time| time <= since);
        let mut all: Vec<&Job> = self.in_state(state).filter(is_old).collect();
        if state == State::Ready {
            all.sort_by_key(|job| (job.policy.priority, job.group.is_some(), job.due(), job.order));
            return ids.iter().eq(all.iter().take(at_most).map(|job| &job.id));
        }
        all.sort_by_key(|job| job.leaves(state));
        let mut times: HashMap<&Bytes, u64> =
            all.iter().map(|job| (&job.id, job.leaves(state))).collect();
        // Each may be named once.
        let seen: Vec<_> = ids.iter().map(|id| times.remove(id)).collect();
        seen.into_iter().eq(all.iter().take(at_most).map(|job| Some(job.leaves(state))))
    }

    /// When a state next changes by itself, or a job has been kept long enough.
    pub fn next_change(&self) -> Option<u64> {
        let changes = self.jobs.iter().flat_map(|job| {
            let moments = [Some(job.time), Some(job.due()), job.expires_at, job.late_at()];
            let moments = moments.into_iter().flatten().filter(|time| *time > self.horizon);
            moments
                .filter(|time| job.stage == Stage::Done || job.state(time - 1) != job.state(*time))
        });
        changes.min()
    }

    /// How many of those that are delayed come due in each step.
    pub fn forecast(&self, from: u64, step: u64, steps: usize) -> Vec<u64> {
        let lives = |job: &&Job| job.death().is_none_or(|death| death > job.due());
        let due: Vec<u64> = self.in_state(State::Delayed).filter(lives).map(Job::due).collect();
        let begins = (0..steps as u64).map(|n| from + n * step);
        let in_step =
            |begin: u64| due.iter().filter(|due| (begin..begin + step).contains(due)).count();
        begins.map(|begin| in_step(begin) as u64).collect()
    }

    /// The predecessor and its state, or what that was; its result, or why it is dead.
    pub fn see_edge(&self, edge: &Edge) -> (Bytes, &'static str, Option<Bytes>) {
        let (state, what) = match &edge.ending {
            Some((EndKind::Done, result)) => ("done", result.clone()),
            Some((EndKind::Dead, reason)) => ("dead", reason.clone()),
            Some((EndKind::Gone, _)) => ("gone", None),
            None => {
                let job = self.get(&edge.from).unwrap();
                let state = job.state(self.horizon);
                let reason = || job.reason_of_death(self.horizon);
                (state.name(), (state == State::Dead).then(reason).flatten())
            }
        };
        (edge.from.clone(), state, what)
    }

    /// Jobs that are to be forgotten.
    pub fn to_forget(&self) -> Vec<Bytes> {
        let is_old = |job: &&Job| self.kept_until(job).is_some_and(|until| until <= self.horizon);
        self.jobs.iter().filter(is_old).map(|job| job.id.clone()).collect()
    }

    /// Until when a job that is done or dead is kept, if there is such a time.
    fn kept_until(&self, job: &Job) -> Option<u64> {
        match job.state(self.horizon) {
            State::Done => Some(job.time),
            State::Dead if self.settings.dead_keep != 0 => {
                Some((job.death()? + self.settings.dead_keep).min(LAST))
            }
            State::Dead | State::Delayed | State::Ready | State::Reserved | State::Held => None,
        }
    }

    /// When the timer has to come.
    pub fn next_upkeep(&self) -> Option<u64> {
        let pause = (self.paused_until > self.horizon).then_some(self.paused_until);
        let forget = self.jobs.iter().filter_map(|job| self.kept_until(job));
        forget
            .chain(self.next_change())
            .chain(pause)
            .chain(self.next_by_rate())
            .chain(self.next_group())
            .chain(self.forgets_groups_at())
            .chain(self.settles_at())
            .min()
            .filter(|time| *time < LAST)
    }

    /// Every job, line by line.
    pub fn in_order(&self) -> Vec<&Job> {
        let mut jobs: Vec<&Job> = self.jobs.iter().collect();
        jobs.sort_by_key(|job| job.place());
        jobs
    }
}
