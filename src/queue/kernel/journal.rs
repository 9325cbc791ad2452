//! The journal: each change of a job's place is recorded here once, with its cause. From that follow the
//! totals, the events, what watchers hear, when the timer must come, and what the checksum has of the
//! place; so no operation can forget one of them.
//!
//! [`Queue::record_change`] is called by what gives a job its place (`place`, `put_plain`,
//! `put_all_plain`, `lease_plain`), by what removes one (`remove`, `finish_plain`), and by nothing else.
//!
//! The journal doesn't see what a job carries. A body, a note or a result is set in the store, and the
//! operation that sets it adds it to the checksum (`attached`). A run state is set before the job gets
//! its next place, with which the journal adds it. Edges, turns of groups, the rate and forgotten
//! groups are no changes of a job: what changes them adds them to the checksum.

use super::change::{Cause, Change, Former, Standing};
use super::queue::Queue;
use super::totals::count;
use super::watch::{FinalResult, JobNews};
use crate::queue::lines::lanes::MainLine;
use crate::queue::lines::placement::Placement;
use crate::queue::memory::impossible::OrImpossible;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;
use crate::queue::value::state::Stage;
use crate::queue::value::time::Time;

impl Placement {
    fn is_dead_at(&self, now: Time) -> bool {
        match self.main_line {
            MainLine::Dead => true,
            MainLine::Dying => self.time <= now,
            MainLine::Lane(_) | MainLine::Grouped(_) | MainLine::Held => {
                self.expiry.is_some_and(|expiry| expiry <= now)
            }
            MainLine::Done => false,
        }
    }
}

impl Queue {
    /// Records a change of a job, after it was made. O(1); O(log n) in a queue with edges.
    #[inline(always)]
    pub(in crate::queue) fn record_change(&mut self, change: &Change) {
        let Change { slot, cause, before, after } = *change;
        self.count(cause);
        match after {
            Some(after) => self.record_place(slot, cause, before, &after),
            None => self.record_removal(slot),
        }
        if self.watch.is_on() {
            self.record_news(change);
        }
        #[cfg(test)]
        self.heard.push((slot, after.map(|after| (after.time, *after.progress))));
    }

    #[inline(always)]
    fn count(&mut self, cause: Cause) {
        let (totals, events) = self.ledger.counters_mut();
        let total = match cause {
            Cause::Added => {
                events.added += 1;
                &mut totals.added
            }
            Cause::Replaced => {
                events.added += 1;
                &mut totals.replaced
            }
            Cause::Delivered => {
                events.delivered += 1;
                &mut totals.popped
            }
            Cause::Finished { .. } => {
                events.finished += 1;
                &mut totals.finished
            }
            Cause::Released | Cause::Unbegun => &mut totals.released,
            Cause::Buried => &mut totals.buried,
            Cause::Kicked => &mut totals.kicked,
            Cause::Deleted => {
                events.removed += 1;
                &mut totals.deleted
            }
            Cause::Purged => {
                events.removed += 1;
                &mut totals.purged
            }
            Cause::Loaded
            | Cause::Displaced
            | Cause::ById
            | Cause::Touched
            | Cause::Resumed
            | Cause::Orphaned
            | Cause::PassedOver => return,
        };
        count(total, 1);
    }

    #[inline(always)]
    fn record_place(&mut self, slot: Slot, cause: Cause, before: Former, after: &Standing) {
        let Standing { time, progress, placement } = *after;
        self.ledger.checksum_mut().placement(time, progress);
        if self.store.schedules() > 0 {
            self.record_run_state(slot);
        }
        self.ledger.raise_lease(progress.lease.unwrap_or_default());
        let horizon = self.lanes.horizon();
        // Deaths by time are counted as it passes; but a held job may be let go too late for that: what
        // it waited for ended before a slice got to it.
        let is_dead = if matches!(cause, Cause::Resumed) {
            placement.is_dead_at(horizon)
        } else {
            progress.stage == Stage::Dead && !matches!(cause, Cause::Loaded)
        };
        let has_died = is_dead && !before.was_dead;
        // A job that comes to a lane at a time that has passed is ready now, unless it has expired.
        let is_ready = placement.main_line.is_lane() && placement.time <= horizon && !is_dead;
        if is_ready || has_died {
            let (totals, events) = self.ledger.counters_mut();
            // A job that is delivered by its id is ready for no other client.
            events.is_any_ready |= is_ready && !matches!(cause, Cause::ById);
            if has_died {
                events.is_any_dead = true;
                count(&mut totals.died, 1);
            }
        }
        self.wake_for(placement);
        if self.edges.is_some() {
            self.record_life(self.ledger.clock(), slot);
        }
    }

    /// When the timer has something to do about a job in this place: it becomes ready, its lease
    /// ends, it dies, or it has been kept for long enough.
    #[inline(always)]
    fn wake_for(&mut self, placement: &Placement) {
        let Placement { main_line, time, expiry, lease_end, .. } = *placement;
        let is_to_come = time > self.lanes.horizon();
        self.ledger.wake_by(match main_line {
            MainLine::Lane(_) | MainLine::Grouped(_) | MainLine::Dying if is_to_come => {
                lease_end.unwrap_or(time)
            }
            MainLine::Lane(_) | MainLine::Grouped(_) => Time::MAX,
            MainLine::Dying | MainLine::Dead => {
                self.limits.settings().forgets_dead_at(time).unwrap_or(Time::MAX)
            }
            MainLine::Done => time,
            MainLine::Held => Time::MAX,
        });
        self.ledger.wake_by(expiry.unwrap_or(Time::MAX));
        // Ready, but the rate may let it go only later: then the timer must come for it.
        if main_line.is_lane() && !is_to_come {
            self.wake_for_rate();
        }
    }

    #[inline(never)]
    fn record_run_state(&mut self, slot: Slot) {
        let job = self.store.get(slot).or_impossible("a job with another place is there");
        if let (Some(schedule), Some(job)) = (self.store.schedule_of(slot), job) {
            self.ledger.checksum_mut().run_state(&schedule.run_state, job.created());
        }
    }

    fn record_removal(&mut self, slot: Slot) {
        if let Some(job) = self.store.get(slot).or_impossible("a job to remove is there") {
            self.ledger.checksum_mut().removal(job);
        }
    }

    #[cold]
    #[inline(never)]
    fn record_news(&mut self, change: &Change) {
        let Change { slot, cause, before, after } = *change;
        if !self.watch.has(slot) {
            return;
        }
        let comes_back = after.is_some_and(|after| after.progress.stage != Stage::Done);
        let finished = if let Cause::Finished { result } = cause {
            (!comes_back).then(|| FinalResult { result: result.map(Box::from) })
        } else {
            None
        };
        if let Some((id, _)) = self.store.get(slot).map(|job| job.id_and_body()) {
            let news = JobNews { id: id.bytes().into(), lease: before.lease, finished };
            self.watch.note(slot, news);
        }
        if after.is_none() {
            self.watch.forget(slot);
        }
    }

    /// The next change of this job is told, once: see [`Queue::take_news`]. False if there is no
    /// such job.
    pub fn watch(&mut self, id: Id) -> bool {
        let slot = self.store.find(id);
        if let Some(slot) = slot {
            self.watch.add(slot);
        }
        slot.is_some()
    }

    /// Whether [`Queue::take_news`] returns anything.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.watch.has_news()
    }

    /// What was done to watched jobs since the last call, in its order. These jobs aren't watched
    /// any more. What time does isn't told: see [`JobView::dies_at`](super::job::JobView::dies_at).
    pub fn take_news(&mut self) -> Vec<JobNews> {
        self.watch.take_news()
    }
}
