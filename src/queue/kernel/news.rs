//! What a queue tells of jobs that are watched.

use super::queue::Queue;
use super::watch::{FinalResult, JobNews};
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::Id;

impl Queue {
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

    /// This job is about to be removed.
    #[inline]
    pub(in crate::queue) fn record_removal(&mut self, slot: Slot) {
        if self.watch.is_on() {
            self.note(slot, None);
            self.watch.forget(slot);
        }
    }

    /// This job is about to be changed.
    #[inline]
    pub(in crate::queue) fn record_change(&mut self, slot: Slot) {
        if self.watch.is_on() {
            self.note(slot, None);
        }
    }

    /// This job is about to be finished, and comes back no more.
    #[inline]
    pub(in crate::queue) fn record_finish(&mut self, slot: Slot, result: Option<&[u8]>) {
        if self.watch.is_on() {
            self.note(slot, Some(FinalResult { result: result.map(Box::from) }));
        }
    }

    #[cold]
    #[inline(never)]
    fn note(&mut self, slot: Slot, finished: Option<FinalResult>) {
        if !self.watch.has(slot) {
            return;
        }
        let Some((id, _)) = self.store.get(slot).map(|job| job.id_and_body()) else {
            return;
        };
        let lease = self.store.progress(slot).lease;
        self.watch.note(slot, JobNews { id: id.bytes().into(), lease, finished });
    }
}
