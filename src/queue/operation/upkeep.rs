//! What no client says: jobs that are forgotten, because they had been kept long enough or because
//! a purge chose them. And when the timer has to come.

use crate::queue::kernel::operation::{Affected, Operation};
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::recurrence::Calendar;
use crate::queue::value::state::State;
use crate::queue::value::time::{Millis, Time};

/// Removes groups without jobs of which nothing counts any more: of a bounded number, which follow
/// those that were looked at last. O(log n) each.
#[derive(Clone, Copy, Debug)]
pub struct ForgetGroups;

impl Operation for ForgetGroups {
    type Outcome = Affected;

    fn run(&self, queue: &mut Queue, now: Time, _: &mut dyn Calendar) -> Affected {
        Affected(queue.forget_groups(now))
    }
}

/// What is removed at once waits, beyond the first job, for at most so many others together.
const EDGES_AT_ONCE: usize = 10_000;

impl Queue {
    /// Those that a purge would remove: up to so many jobs in this state, and in it for at least so
    /// long, in the order in which they leave it. OLDER says nothing of delayed and reserved ones.
    /// Fewer where they have many edges.
    pub fn to_purge(&self, now: Time, state: State, older: Millis, at_most: usize) -> Vec<Slot> {
        // A replica that is promoted may have a slower clock: a job counts as dead also where
        // that happened in its future.
        let since = if older.is_zero() { Time::MAX } else { now.saturating_sub(older) };
        let slots = self.in_state_since(state, since).take(at_most);
        self.up_to_edges(slots, EDGES_AT_ONCE).collect()
    }

    /// Jobs that are to be forgotten by `now`, at most so many: done ones that were kept long
    /// enough, and those that have been dead for as long as the queue keeps them.
    pub fn to_forget(&self, now: Time, at_most: usize) -> Vec<Slot> {
        let mut slots: Vec<Slot> = self.lanes.done_by(now).take(at_most).collect();
        if !self.limits.settings().dead_keep.is_zero() {
            let is_over = |slot: &Slot| self.forgets_at(*slot).is_some_and(|time| time <= now);
            let dead = self.in_state(State::Dead).take_while(is_over);
            slots.extend(dead.take(at_most.saturating_sub(slots.len())));
        }
        self.up_to_edges(slots.into_iter(), EDGES_AT_ONCE / 10).collect()
    }

    fn forgets_at(&self, dead: Slot) -> Option<Time> {
        let job = self.view(dead)?;
        self.limits.settings().forgets_dead_at(job.since(self.lanes.horizon()))
    }

    /// The timer need not come earlier for this queue: until then no job changes its state by
    /// itself, no pause ends, nothing is to be forgotten, no groups without jobs are to be looked
    /// at, and the rate lets no ready job leave. It may turn out that it could have come later.
    /// O(1).
    pub fn wake_at(&self) -> Time {
        self.ledger.wake_at()
    }

    /// Finds out when the timer really has to come. Time has passed up to now. O(lanes).
    pub fn find_wake_at(&mut self) -> Option<Time> {
        let now = self.lanes.horizon();
        let first_done = self.lanes.first_done();
        let oldest_dead = if self.limits.settings().dead_keep.is_zero() {
            None
        } else {
            self.in_state(State::Dead).next()
        };
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
            .chain(self.settles_at())
            .min();
        self.ledger.set_wake_at(next.unwrap_or(Time::MAX));
        next.filter(|next| *next < Time::MAX)
    }
}
