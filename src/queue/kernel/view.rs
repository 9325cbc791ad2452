//! Reading a queue: what the core's other rooms and the services ask of it. Nothing is changed.

use super::details::Details;
use super::job::JobView;
use super::queue::Queue;
use super::totals::Totals;
use crate::queue::lines::counts::Counts;
use crate::queue::lines::lanes::order::Begin;
use crate::queue::memory::slab::Slot;
use crate::queue::value::ids::{Id, IdList, Lease};
use crate::queue::value::state::State;
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

impl Queue {
    pub fn get(&self, id: Id) -> Option<JobView<'_>> {
        self.view(self.store.find(id)?)
    }

    /// The job in a slot. O(bucket).
    pub fn view(&self, slot: Slot) -> Option<JobView<'_>> {
        let job = self.store.get(slot)?;
        let time = match self.store.details_of(slot) {
            Some(details) => details.time,
            None => self.lanes.time_of(self.store.placement(slot)?.main_line, slot, job.bucket)?,
        };
        self.view_at(slot, time)
    }

    /// Id and body of the job in a slot.
    pub fn id_and_body(&self, slot: Slot) -> Option<(Id<'_>, &[u8])> {
        self.store.get(slot).map(|job| job.id_and_body())
    }

    /// The ids of jobs in slots.
    pub fn ids_of(&self, slots: &[Slot]) -> IdList {
        IdList::of(slots.iter().filter_map(|slot| self.id_and_body(*slot)).map(|(id, _)| id))
    }

    /// The first of these jobs, up to so many bytes of bodies and results, and at least one. Also
    /// returns how many bytes they have.
    pub fn up_to_bytes(&self, mut slots: Vec<Slot>, at_most: usize) -> (Vec<Slot>, usize) {
        let size_of = |slot: &Slot| {
            let result = self.store.attachments().result(*slot).map_or(0, <[u8]>::len);
            self.store.get(*slot).map_or(0, |job| job.size()) + result
        };
        let mut bytes = 0;
        let end = slots.iter().position(|slot| {
            let is_full = bytes >= at_most;
            bytes += if is_full { 0 } else { size_of(slot) };
            is_full
        });
        slots.truncate(end.unwrap_or(slots.len()));
        (slots, bytes)
    }

    /// Every job, each priority in the order in which it is delivered. Queues with the same log
    /// have the same order.
    pub fn jobs(&self) -> impl Iterator<Item = JobView<'_>> {
        self.lanes.iter().filter_map(|(time, slot)| self.view_at(slot, time))
    }

    pub fn len(&self) -> usize {
        self.store.pool().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many jobs are in each state, as of the last [`Queue::advance`].
    pub fn counts(&self) -> Counts {
        self.lanes.counts()
    }

    /// How many jobs have a schedule.
    pub fn schedules(&self) -> usize {
        self.store.schedules() as usize
    }

    /// When time next changes a job's state, as of the horizon.
    pub fn next_change(&self) -> Option<Time> {
        self.lanes.next_change()
    }

    /// When the next job becomes ready by time alone, as of the horizon.
    pub fn next_due(&self) -> Option<Time> {
        self.lanes.next_due()
    }

    /// Since when the job that has been ready longest is ready.
    pub fn oldest_ready(&self) -> Option<Time> {
        self.lanes.oldest_ready(self.lanes.horizon(), &self.store)
    }

    /// The number of the latest lease, if there was one.
    pub fn last_lease(&self) -> Option<Lease> {
        Some(self.ledger.last_lease()).filter(|lease| *lease > Lease::default())
    }

    pub fn totals(&self) -> &Totals {
        self.ledger.totals()
    }

    /// Bytes that the queue requested from its allocator.
    pub fn memory(&self) -> usize {
        size_of::<Queue>()
            + self.store.memory()
            + self.lanes.memory()
            + self.limits.memory()
            + self.groups.as_ref().map_or(0, |groups| groups.memory())
            + self.edges.as_ref().map_or(0, |edges| edges.memory())
            + self.watch.memory()
    }

    /// Jobs in this state, in the order in which they leave it.
    pub(in crate::queue) fn in_state(&self, state: State) -> impl Iterator<Item = Slot> + '_ {
        self.in_state_since(state, Time::MAX)
    }

    /// As `in_state`, without jobs that became ready, dead or done after `since`.
    pub(in crate::queue) fn in_state_since(
        &self,
        state: State,
        since: Time,
    ) -> impl Iterator<Item = Slot> + '_ {
        self.lanes.in_order_of(&self.store, state, since, Begin::FIRST)
    }

    /// The group of a job, if it has one.
    pub(in crate::queue) fn group_of(&self, slot: Slot) -> Option<Id<'_>> {
        self.groups.as_ref()?.name(self.group_number_of(slot)?)
    }

    /// `time` is the time in its line, which is the job's own time if it has no details.
    fn view_at(&self, slot: Slot, time: Time) -> Option<JobView<'_>> {
        let job = self.store.get(slot)?;
        let details = self.store.details_of(slot);
        let (id, body) = job.id_and_body();
        Some(JobView {
            id,
            body,
            time: details.map_or(time, |details| details.time),
            created: job.created(),
            policy: self.store.terms_of(slot)?.policy,
            group: self.group_of(slot),
            progress: details.map(Details::progress).unwrap_or_default(),
            reason: details.and_then(Details::reason),
            tally: details.map_or(Tally::default(), Details::tally),
            schedule: details
                .and_then(Details::schedule)
                .and_then(|schedule| self.store.scheduled(schedule)),
            note: self.store.attachments().note(slot),
            result: self.store.attachments().result(slot),
        })
    }

    /// How many groups have jobs, or a state that must be kept.
    pub fn groups_len(&self) -> usize {
        self.groups.as_ref().map_or(0, |groups| groups.len())
    }
}
