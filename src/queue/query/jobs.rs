//! Pages of jobs, and scans over all of them.

use crate::queue::kernel::details::Details;
use crate::queue::kernel::queue::Queue;
use crate::queue::lines::lanes::order::{Begin, LineName, Position};
use crate::queue::lines::lanes::SideLine;
use crate::queue::memory::slab::Slot;
use crate::queue::value::glob::Glob;
use crate::queue::value::ids::Id;
use crate::queue::value::state::State;
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
        let (line, bucket) = match (in_leases, in_expiring) {
            (Some(bucket), _) => (LineName::SideLine(SideLine::Leases), bucket),
            (None, Some(bucket)) => (LineName::SideLine(main_line.line_of_expiring()), bucket),
            (None, None) => (LineName::MainLine(main_line), self.store.get(slot)?.bucket),
        };
        let time = self.lanes.time_in(line, slot, bucket)?;
        Some(Position { line, slot, bucket, time })
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
}
