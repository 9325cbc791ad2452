//! Reading a queue.

use crate::queue::kernel::details::Details;
use crate::queue::kernel::job::JobView;
use crate::queue::kernel::queue::Queue;
use crate::queue::kernel::totals::Totals;
use crate::queue::lines::counts::Counts;
use crate::queue::lines::lanes::order::{Begin, LinePlace, Position};
use crate::queue::lines::lanes::SideLine;
use crate::queue::memory::slab::Slot;
use crate::queue::value::glob::Glob;
use crate::queue::value::ids::{Id, IdList, Lease};
use crate::queue::value::state::State;
use crate::queue::value::tally::Tally;
use crate::queue::value::time::Time;

/// A scan looks at up to this many slots for each job that it may return.
const PLACES_A_JOB: usize = 16;

/// A part of a scan ends after comparing this many bytes with a glob: some milliseconds, whatever
/// the glob.
const COMPARED_BYTES_MAX: usize = 2_000_000;

/// Which of the jobs that a scan looks at it returns.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanFilter<'p> {
    pub state: Option<State>,
    pub glob: Option<&'p Glob>,
    /// Only jobs with a schedule.
    pub is_scheduled: bool,
}

/// Where a read of the jobs of a state continues.
#[derive(Clone, Copy, Debug, Default)]
pub struct After<'a> {
    /// After this job …
    pub id: Option<Id<'a>>,
    /// … if it is still at this time; otherwise at the first job of this time or a later one.
    pub time: Option<Time>,
}

/// Part of a scan.
pub struct Scanned {
    pub slots: Vec<Slot>,
    /// Where the next part begins; `None` if this was the last.
    pub next: Option<Slot>,
}

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

    /// Every job, each priority in the order in which it is handed out. Queues with the same log
    /// have the same order.
    pub fn jobs(&self) -> impl Iterator<Item = JobView<'_>> {
        self.lanes.iter().filter_map(|(time, slot)| self.view_at(slot, time))
    }

    /// At most `at_most` jobs in this state, in the order in which they leave it; dead jobs in the
    /// order in which they died. As of the last [`Queue::advance`].
    pub fn peek(&self, state: State, at_most: usize) -> Vec<Slot> {
        self.in_state(state).take(at_most).collect()
    }

    /// As [`Queue::peek`], from a given place in that order on. `None` if that place isn't known:
    /// no such job is in this state, and no time is given. O(log n); after a job, O(buckets that
    /// begin in its millisecond) more.
    pub fn peek_after(&self, state: State, after: &After, at_most: usize) -> Option<Vec<Slot>> {
        let position = after.id.and_then(|id| self.position_of(id, state));
        let begin = match (position, after.time) {
            (Some(position), None) => Begin::Behind(position),
            (Some(position), Some(time)) if position.time == time => Begin::Behind(position),
            (_, Some(time)) => Begin::At(time),
            (None, None) if after.id.is_some() => return None,
            (None, None) => Begin::FIRST,
        };
        Some(self.lanes.in_order_of(&self.store, state, Time::MAX, begin).take(at_most).collect())
    }

    /// The position of a job in the order of this state, if it is in the state.
    fn position_of(&self, id: Id, state: State) -> Option<Position> {
        let slot = self.store.find(id)?;
        self.view(slot).filter(|job| job.state(self.lanes.horizon()) == state)?;
        let main_line = self.store.placement(slot)?.main_line;
        let details = self.store.details_of(slot);
        let in_leases =
            details.and_then(Details::lease_bucket).filter(|_| state == State::Reserved);
        let in_expiring = details.and_then(Details::expiry_bucket).filter(|_| state == State::Dead);
        let (place, bucket) = match (in_leases, in_expiring) {
            (Some(bucket), _) => (LinePlace::SideLine(SideLine::Leases), bucket),
            (None, Some(bucket)) => (LinePlace::SideLine(main_line.line_of_expiring()), bucket),
            (None, None) => (LinePlace::MainLine(main_line), self.store.get(slot)?.bucket),
        };
        let time = self.lanes.time_in(place, slot, bucket)?;
        Some(Position { place, slot, bucket, time })
    }

    /// Some jobs of the pool, from the slot `from` on. Every job that the filter takes, and that
    /// stays in the queue during a whole scan, is in one of its parts.
    pub fn scan(&self, from: Slot, filter: &ScanFilter, at_most: usize) -> Scanned {
        let (mut slots, mut next) =
            self.store.pool().scan(from, at_most, at_most.saturating_mul(PLACES_A_JOB));
        if filter.is_scheduled {
            slots.retain(|slot| self.store.details_of(*slot).and_then(Details::schedule).is_some());
        }
        if let Some(glob) = filter.glob {
            (slots, next) = self.matching(glob, slots, next);
        }
        let now = self.lanes.horizon();
        slots.retain(|slot| match filter.state {
            None => true,
            Some(state) => self.view(*slot).is_some_and(|job| job.state(now) == state),
        });
        Scanned { slots, next }
    }

    /// The slots whose job has a matching id. Also returns where to continue, if comparing took too
    /// long.
    fn matching(
        &self,
        glob: &Glob,
        slots: Vec<Slot>,
        next: Option<Slot>,
    ) -> (Vec<Slot>, Option<Slot>) {
        let (mut found, mut steps) = (Vec::new(), 0);
        for slot in slots {
            if steps > COMPARED_BYTES_MAX {
                return (found, Some(slot));
            }
            let Some((id, _)) = self.id_and_body(slot) else {
                continue;
            };
            let compared = glob.compare(id);
            steps += compared.steps;
            if compared.is_match {
                found.push(slot);
            }
        }
        (found, next)
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
        self.lanes.oldest_ready(&self.store)
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
}
