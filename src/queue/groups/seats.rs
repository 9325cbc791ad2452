//! The groups of a lane in the order of the times from which on each may deliver a job: sorted
//! runs, each with the least turn in it. So a search for the first group with a turn left skips
//! whole runs without one. Searches store what they find out in `Cell`s: that makes later searches
//! faster and never changes what they find.

use crate::queue::memory::impossible::OrImpossible;
use std::cell::Cell;
use std::collections::VecDeque;

use crate::queue::memory::defrag::{defrag_each, Defragmenter};
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// Groups in a run, at most. (Few in tests, so that they have many runs.)
const RUN_MAX: usize = if cfg!(test) { 16 } else { 128 };
/// A run with at most this many groups is merged with a neighbour …
const MERGE_BELOW: usize = RUN_MAX / 8;
/// … if both together have at most this many.
const MERGED_AT_MOST: usize = RUN_MAX / 2;

/// The place of a group in the seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The group may deliver no job before this time.
    pub opens: Time,
    /// The serial of its group. At equal times, the group that was created first goes first.
    pub number: u64,
    /// The round in which it may leave next.
    pub turn: u64,
}

/// From `since` on, before `until`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub since: Time,
    pub until: Time,
}

impl Interval {
    pub const ALWAYS: Interval = Interval { since: Time::ZERO, until: Time::MAX };

    fn and(self, other: Interval) -> Interval {
        Interval { since: self.since.max(other.since), until: self.until.min(other.until) }
    }

    fn holds(self, now: Time) -> bool {
        self.since <= now && now < self.until
    }
}

/// When a group has no ready job: all due jobs have expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingReady {
    /// Nothing is ready in `span`, which may be empty …
    pub span: Interval,
    /// … nor from `closed` on, when every job has expired.
    pub closed: Time,
}

impl NothingReady {
    /// Of a line without jobs.
    pub const ALWAYS: NothingReady = NothingReady { span: Interval::ALWAYS, closed: Time::ZERO };

    /// The span without ready jobs that contains `now`, if any.
    fn at(self, now: Time) -> Option<Interval> {
        let closed = Interval { since: self.closed, until: Time::MAX };
        [closed, self.span].into_iter().find(|span| span.holds(now))
    }

    fn holds(self, now: Time) -> bool {
        self.at(now).is_some()
    }

    /// Updates the spans for a job added `now`, due at `time`, expiring at `expires`. So a search
    /// needn't look at most groups that have nothing ready.
    pub fn with(self, time: Time, expires: Time, now: Time) -> NothingReady {
        let closed = self.closed.max(expires);
        let is_over = self.span.until <= now;
        let span =
            if is_over { Interval { since: self.closed, until: Time::MAX } } else { self.span };
        let span = if time >= span.until || expires <= span.since {
            span
        } else if time > span.since.max(now) {
            // The job is not due yet: the span ends when it is.
            Interval { until: time, ..span }
        } else {
            Interval { since: expires, ..span }
        };
        NothingReady { span, closed }
    }
}

#[derive(Clone)]
struct Seated {
    seat: Seat,
    member: Slot,
    nothing_ready: Cell<NothingReady>,
}

type Key = (Time, u64, Slot);

impl Seated {
    fn key(&self) -> Key {
        (self.seat.opens, self.seat.number, self.member)
    }
}

#[derive(Clone)]
struct Run {
    /// The key of its first entry.
    first: Key,
    /// A lower bound of `turn` over the entries that have a job to deliver. It is valid while the
    /// time is in `holds`.
    least_turn: Cell<u64>,
    holds: Cell<Interval>,
    /// Groups mostly leave at the front and are added at the back.
    entries: VecDeque<Seated>,
}

impl Run {
    fn new(entries: VecDeque<Seated>) -> Run {
        let least_turn = entries.iter().map(|entry| entry.seat.turn).min().unwrap_or(u64::MAX);
        let first = entries.front().map_or((Time::MAX, 0, 0), Seated::key);
        Run {
            first,
            least_turn: Cell::new(least_turn),
            holds: Cell::new(Interval::ALWAYS),
            entries,
        }
    }

    /// The index of the entry with this key, or where to insert it. Keys are unique.
    fn position_of(&self, key: Key) -> Result<usize, usize> {
        match (self.entries.front(), self.entries.back()) {
            (Some(front), _) if front.key() == key => Ok(0),
            (_, Some(back)) if back.key() < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by_key(&key, Seated::key),
        }
    }

    /// Whether no group of this run has a turn left in this round.
    fn is_over(&self, now: Time, round: u64) -> bool {
        self.least_turn.get() > round && self.holds.get().holds(now)
    }

    /// Stores why a search found no group here.
    fn note(&self, now: Time) {
        let (mut least_turn, mut holds) = (u64::MAX, Interval::ALWAYS);
        for entry in &self.entries {
            match entry.nothing_ready.get().at(now) {
                Some(span) => holds = holds.and(span),
                None => least_turn = least_turn.min(entry.seat.turn),
            }
        }
        self.least_turn.set(least_turn);
        self.holds.set(holds);
    }
}

/// What a search found.
pub struct Candidate<T> {
    pub member: Slot,
    pub seat: Seat,
    pub found: T,
}

/// In the first `runs` runs, no group has a turn left in this round. Valid while the time is in
/// `holds`.
#[derive(Clone, Copy)]
struct FinishedRuns {
    runs: usize,
    holds: Interval,
}

impl Default for FinishedRuns {
    fn default() -> FinishedRuns {
        FinishedRuns { runs: 0, holds: Interval::ALWAYS }
    }
}

/// Later than any turn.
const ANY_ROUND: u64 = u64::MAX - 1;

#[derive(Clone, Default)]
pub struct Seats {
    /// Sorted, as the entries of a run are.
    runs: VecDeque<Run>,
    len: usize,
    /// The last round that has begun.
    round: u64,
    over: Cell<FinishedRuns>,
}

impl Seats {
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn memory(&self) -> usize {
        let entries: usize = self.runs.iter().map(|run| run.entries.capacity()).sum();
        self.runs.capacity() * size_of::<Run>() + entries * size_of::<Seated>()
    }

    /// Hands the runs to a defragmenter: see
    /// [`Slab::defrag`](crate::queue::memory::slab::Slab::defrag).
    pub fn defrag(&mut self, from: Slot, defragmenter: &mut impl Defragmenter) -> Option<Slot> {
        let mut runs = Vec::from(std::mem::take(&mut self.runs));
        let next = defrag_each(&mut runs, from, defragmenter, |run, defragmenter| {
            let mut entries = Vec::from(std::mem::take(&mut run.entries));
            defragmenter.vec(&mut entries);
            run.entries = entries.into();
        });
        self.runs = runs.into();
        next
    }

    /// Begins another round.
    pub fn begin_round(&mut self, round: u64) {
        self.round = round;
        self.over.set(FinishedRuns::default());
    }

    /// The first group that is open at `now`, was open when this round began, has a turn left in
    /// it, and for which `find` finds a job.
    pub fn first_in_round<T>(
        &self,
        now: Time,
        (round, began): (u64, Time),
        find: &mut impl FnMut(Slot) -> Result<T, NothingReady>,
    ) -> Option<Candidate<T>> {
        // What an earlier search learned of the front counts only while the time is one for which it
        // holds; else this search begins at the first run.
        let mut over =
            Some(self.over.get()).filter(|over| over.holds.holds(now)).unwrap_or_default();
        // Whether all runs so far were finished: only then does the note grow.
        let mut is_in_front = true;
        let runs = self.runs.iter().skip(over.runs);
        // A group that opened after the round had begun waits for the next one.
        let last = now.min(began);
        for run in runs.take_while(|run| run.first.0 <= last) {
            if !run.is_over(now, round) {
                if let Some(met) = first_in(run, now, (round, last), find) {
                    self.over.set(over);
                    return Some(met);
                }
            }
            // The search itself may have found out that the run is finished.
            is_in_front &= run.is_over(now, round);
            if is_in_front {
                over = FinishedRuns { runs: over.runs + 1, holds: over.holds.and(run.holds.get()) };
            }
        }
        self.over.set(over);
        None
    }

    /// The first group that is open at `now` and for which `find` finds a job, whether it has a
    /// turn left or not.
    pub fn first<T>(
        &self,
        now: Time,
        find: &mut impl FnMut(Slot) -> Result<T, NothingReady>,
    ) -> Option<Candidate<T>> {
        let runs = self.runs.iter().take_while(|run| run.first.0 <= now);
        let mut runs = runs.filter(|run| !run.is_over(now, ANY_ROUND));
        runs.find_map(|run| first_in(run, now, (ANY_ROUND, now), find))
    }

    /// The first time after `now` at which a group opens. O(log n).
    pub fn opens_after(&self, now: Time) -> Option<Time> {
        let at = self.runs.partition_point(|run| run.first.0 <= now);
        let last = at.checked_sub(1).and_then(|at| self.runs.get(at));
        let in_last = last.and_then(|run| {
            run.entries.get(run.entries.partition_point(|entry| entry.seat.opens <= now))
        });
        in_last.map(|entry| entry.seat.opens).or(self.runs.get(at).map(|run| run.first.0))
    }

    /// O(log n), and a shift within a run.
    pub fn insert(&mut self, member: Slot, seat: Seat, nothing_ready: NothingReady) {
        let entry = Seated { seat, member, nothing_ready: Cell::new(nothing_ready) };
        let key = entry.key();
        self.len += 1;
        let at = self.run_of(key);
        let Some(run) = self.runs.get_mut(at) else {
            self.runs.push_back(Run::new(VecDeque::from([entry])));
            return;
        };
        let (Ok(position) | Err(position)) = run.position_of(key);
        run.least_turn.set(run.least_turn.get().min(seat.turn));
        run.first = run.first.min(key);
        run.entries.insert(position, entry);
        if run.entries.len() > RUN_MAX {
            let upper = Run::new(run.entries.split_off(RUN_MAX / 2));
            run.entries.shrink_to(RUN_MAX * 3 / 4);
            self.runs.insert(at + 1, upper);
        }
        self.reopen(at, seat.turn);
    }

    /// Returns whether the group was there.
    pub fn remove(&mut self, member: Slot, seat: &Seat) -> bool {
        let key = (seat.opens, seat.number, member);
        let at = self.run_of(key);
        let Some(run) = self.runs.get_mut(at) else {
            return false;
        };
        let Ok(position) = run.position_of(key) else {
            return false;
        };
        run.entries.remove(position);
        self.len -= 1;
        match run.entries.front() {
            None => {
                self.runs.remove(at);
                self.reopen(at, 0);
            }
            Some(first) => {
                run.first = first.key();
                if run.entries.len() <= MERGE_BELOW {
                    self.merge(at);
                }
            }
        }
        true
    }

    /// Replaces all entries with these sorted ones, reusing the runs' memory.
    pub fn fill(&mut self, entries: impl Iterator<Item = (Slot, Seat, NothingReady)>) {
        let mut entries = entries
            .map(|(member, seat, nothing_ready)| Seated {
                seat,
                member,
                nothing_ready: Cell::new(nothing_ready),
            })
            .peekable();
        let mut emptied = std::mem::take(&mut self.runs).into_iter().map(|run| run.entries);
        self.len = 0;
        while entries.peek().is_some() {
            let mut run = emptied.next().unwrap_or_else(|| VecDeque::with_capacity(RUN_MAX));
            run.clear();
            run.extend(entries.by_ref().take(RUN_MAX * 3 / 4));
            self.len += run.len();
            self.runs.push_back(Run::new(run));
        }
        self.over.set(FinishedRuns::default());
    }

    /// Sets another turn or another span without ready jobs; the entry keeps its place.
    pub fn change(&mut self, member: Slot, seat: &Seat, nothing_ready: NothingReady) {
        let key = (seat.opens, seat.number, member);
        let at = self.run_of(key);
        let Some(run) = self.runs.get_mut(at).or_impossible("a group is at its seat") else {
            return;
        };
        if let Ok(position) = run.position_of(key) {
            if let Some(entry) = run.entries.get_mut(position) {
                entry.seat.turn = seat.turn;
                entry.nothing_ready.set(nothing_ready);
            }
        }
        run.least_turn.set(run.least_turn.get().min(seat.turn));
        self.reopen(at, seat.turn);
    }

    /// The index of the run to which this key belongs.
    fn run_of(&self, key: Key) -> usize {
        let (second, last) = (self.runs.get(1), self.runs.back());
        if second.is_none_or(|second| key < second.first) {
            0
        } else if last.is_none_or(|last| last.first <= key) {
            self.runs.len().saturating_sub(1)
        } else {
            self.runs.partition_point(|run| run.first <= key).saturating_sub(1)
        }
    }

    /// A group with this turn is in this run now.
    fn reopen(&mut self, at: usize, turn: u64) {
        let over = self.over.get_mut();
        if turn <= self.round {
            over.runs = over.runs.min(at);
        }
    }

    fn merge(&mut self, at: usize) {
        let len = |at: usize| self.runs.get(at).map(|run| run.entries.len());
        let fits =
            |at: usize| len(at).zip(len(at + 1)).is_some_and(|(a, b)| a + b <= MERGED_AT_MOST);
        let Some(at) = [Some(at), at.checked_sub(1)].into_iter().flatten().find(|at| fits(*at))
        else {
            return;
        };
        let next = self.runs.remove(at + 1);
        if let (Some(run), Some(next)) = (self.runs.get_mut(at), next) {
            run.least_turn.set(run.least_turn.get().min(next.least_turn.get()));
            run.holds.set(run.holds.get().and(next.holds.get()));
            run.entries.extend(next.entries);
        }
        self.reopen(at, 0);
    }
}

fn first_in<T>(
    run: &Run,
    now: Time,
    (round, last): (u64, Time),
    find: &mut impl FnMut(Slot) -> Result<T, NothingReady>,
) -> Option<Candidate<T>> {
    let open = run.entries.iter().take_while(|entry| entry.seat.opens <= last);
    for entry in
        open.filter(|entry| entry.seat.turn <= round && !entry.nothing_ready.get().holds(now))
    {
        match find(entry.member) {
            Ok(found) => return Some(Candidate { member: entry.member, seat: entry.seat, found }),
            Err(nothing_ready) => entry.nothing_ready.set(nothing_ready),
        }
    }
    run.note(now);
    None
}

#[cfg(test)]
mod tests;
