//! What operators do: remove, revive, pause, set.

use super::job::{Id, Progress, Stage, State};
use super::job_record::Cause;
use super::queue_record::count;
use super::settings::Settings;
use super::slab::Slot;
use super::time::{Millis, Time};
use super::Queue;

impl Queue {
    /// Takes a job from the queue, whatever its state. O(log n).
    pub fn delete(&mut self, id: Id) -> bool {
        let found = self.pool.find(id);
        if let Some(slot) = found {
            self.remove(slot);
            count(&mut self.totals.deleted, 1);
        }
        found.is_some()
    }

    /// Makes up to so many dead jobs ready, those first that died first: their attempts begin anew, and so
    /// does their life. O(log n) for each.
    pub fn kick(&mut self, now: Time, at_most: usize) -> Vec<Slot> {
        let now = self.advance(now);
        let dead = self.peek(State::Dead, at_most);
        for slot in &dead {
            self.revive(*slot, now);
        }
        dead
    }

    /// Makes a dead job ready as [`Queue::kick`] does, or a delayed one, which keeps its attempts. O(log n).
    pub fn kick_job(&mut self, now: Time, id: Id) -> Option<Slot> {
        let now = self.advance(now);
        let slot = self.pool.find(id)?;
        match self.view(slot)?.state(now) {
            State::Dead => self.revive(slot, now),
            State::Delayed => {
                let waiting = Progress { stage: Stage::Waiting, lease: None, ..self.progress(slot)? };
                self.shift(slot, Cause::Kicked, now, &waiting, None);
            }
            State::Ready | State::Reserved | State::Done => return None,
        }
        Some(slot)
    }

    fn revive(&mut self, slot: Slot, now: Time) {
        let policy = self.pool.get(slot).and_then(|job| self.policies.get(job.policy));
        let dies = policy.and_then(|policy| policy.death(now));
        let anew = Progress { dies, ..Progress::default() };
        self.shift(slot, Cause::Kicked, now, &anew, None);
    }

    /// Until then nothing is handed out. A pause that is over, or none, is [`Time::ZERO`].
    pub fn pause(&mut self, until: Time) {
        self.paused_until = until;
    }

    /// Until when nothing is handed out, if that is so `now`.
    pub fn paused_until(&self, now: Time) -> Option<Time> {
        (self.paused_until > now).then_some(self.paused_until)
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn alter(&mut self, settings: Settings) {
        self.settings = settings;
    }

    /// Those that a purge would remove: up to so many jobs in this state, and in it for at least so long,
    /// in the order in which they leave it. (Delayed and reserved ones: added at least so long ago.)
    pub fn to_purge(&self, now: Time, state: State, older: Millis, at_most: usize) -> Vec<Slot> {
        let is_old = |slot: &Slot| {
            self.view(*slot).is_some_and(|job| now.since(job.since(now)) >= older && job.since(now) <= now)
        };
        let since = now.saturating_sub(older);
        self.in_state_since(state, since).filter(is_old).take(at_most).collect()
    }

    /// Removes jobs that [`Queue::to_purge`] named. O(log n) for each.
    pub fn purge(&mut self, slots: &[Slot]) {
        for slot in slots {
            self.remove(*slot);
        }
        count(&mut self.totals.purged, slots.len());
    }

    /// Jobs that are to be forgotten by `now`, at most so many: done ones that were kept long enough, and
    /// those that have been dead for as long as the queue keeps them.
    pub fn to_forget(&self, now: Time, at_most: usize) -> Vec<Slot> {
        let kept = self.schedule.kept_long_enough().into_iter().flat_map(|_| self.in_state(State::Done));
        let is_over = |slot: &Slot| self.view(*slot).is_some_and(|job| job.time <= now);
        let mut slots: Vec<Slot> = kept.take_while(is_over).take(at_most).collect();
        if !self.settings.dead_keep.is_zero() {
            let is_old = |slot: &Slot| {
                let since = self.view(*slot).map(|job| job.since(now));
                since.is_some_and(|since| since.saturating_add(self.settings.dead_keep) <= now)
            };
            let dead = self.in_state(State::Dead).take_while(is_old);
            slots.extend(dead.take(at_most - slots.len()));
        }
        slots
    }

    /// When the timer has to come for this queue: a job changes its state by itself, a pause ends, a job
    /// is to be forgotten or buried.
    pub fn next_upkeep(&self) -> Option<Time> {
        let now = self.schedule.now();
        let pause = self.paused_until(now);
        let overdue = self.schedule.overdue().or(self.schedule.kept_long_enough()).map(|_| now);
        let oldest_dead = || self.in_state(State::Dead).next();
        let forget = (!self.settings.dead_keep.is_zero()).then(oldest_dead).flatten();
        let forget = forget
            .and_then(|slot| self.view(slot))
            .map(|job| job.since(now).saturating_add(self.settings.dead_keep));
        self.next_change().into_iter().chain(pause).chain(overdue).chain(forget).min()
    }
}
