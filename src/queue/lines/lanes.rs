//! When jobs move. For each priority a lane of sorted buckets, in which its jobs wait to become
//! ready; the part of a lane whose time has come is that priority's ready list. A leased job stands
//! in its lane where it will be ready again: when nobody finishes it, it is, without anyone
//! touching it.
//!
//! | line | what stands in it | at which time |
//! | --- | --- | --- |
//! | a lane | what will be ready | when that is |
//! | a second lane for each | of those, what has a group | likewise |
//! | `dying` | what will be dead instead | when that is |
//! | `dead` | what was buried, or released after its last attempt | since when |
//! | `done` | what is finished and kept | until when it is kept |
//! | `expiring` | of those in lanes, what expires | when that is |
//! | `leases` | of those in lanes and `dying`, what waits once the lease is over | the end of the lease |
//!
//! So every state is a sum of counts, also while a million jobs expire in one millisecond. A job
//! that has expired still stands in its lane, where its window has closed: nothing moves, whoever
//! looks steps over it by the bucket.
//!
//! The horizon, up to which time has passed here, is only for counts and for those who look. What a
//! command does depends on its own time, never on the horizon.

pub mod order;

use super::buckets::{BucketListener, BucketNumber, Buckets, NewEntry};
use super::entry::JobCounts;
use super::window::Windows;
use crate::queue::lines::buckets::steps::Steps;
use crate::queue::lines::buckets::walk::Start;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// The line in which a job waits, of which each has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainLine {
    /// To become ready, with this priority.
    Lane(u8),
    /// The same, when it is the turn of its group.
    Grouped(u8),
    /// To die.
    Dying,
    /// For an operator.
    Dead,
    /// To be forgotten.
    Done,
}

impl MainLine {
    /// Whether what waits here becomes ready.
    pub fn is_lane(self) -> bool {
        matches!(self, MainLine::Lane(_) | MainLine::Grouped(_))
    }
}

/// A line in which some jobs stand besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideLine {
    Expiring,
    Leases,
}

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub delayed: usize,
    pub ready: usize,
    pub reserved: usize,
    pub dead: usize,
    pub done: usize,
}

impl Counts {
    pub fn of(&self, state: State) -> usize {
        match state {
            State::Delayed => self.delayed,
            State::Ready => self.ready,
            State::Reserved => self.reserved,
            State::Dead => self.dead,
            State::Done => self.done,
        }
    }
}

/// What the passing of time did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub became_ready: usize,
    pub died: usize,
    /// What hadn't been counted before, when the clock was set back.
    pub uncounted: Uncounted,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Leases that ran out.
    pub timed_out: usize,
    pub died: usize,
}

#[derive(Clone)]
struct Lane {
    priority: u8,
    jobs: Buckets,
}

#[derive(Clone, Default)]
pub struct Lanes {
    /// By priority; a lane stays when it is empty, there are 256 at most.
    lanes: Vec<Lane>,
    /// Those of jobs that have a group; who has the turn is in [`super::groups`].
    grouped: Vec<Lane>,
    /// The lane that was asked for last: most often it is asked for again.
    recent_lane: usize,
    recent_grouped: usize,
    dying: Buckets,
    dead: Buckets,
    done: Buckets,
    expiring: Buckets,
    leases: Buckets,
    horizon: Time,
    /// No line has a time beyond the horizon that is earlier.
    next_at_earliest: Time,
}

/// What a lane is searched from: see [`Lanes::first_ready`]. A place among the lanes; in a queue
/// with groups, a priority.
#[derive(Clone, Copy, Default)]
pub struct FromLane(usize);

impl FromLane {
    pub fn priority(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }

    pub fn continue_at(&mut self, priority: Option<u8>) {
        self.0 = priority.map_or(usize::MAX, usize::from);
    }
}

impl Lanes {
    /// The moment that [`Lanes::advance`] was told of last.
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    /// Lets time pass up to `now`, or takes it back. Tells what it did after `counted`. O(1) while
    /// nothing happens; O(lanes) otherwise, and a few nanoseconds for each bucket whose time has
    /// come.
    pub fn advance(&mut self, now: Time, counted: Time) -> Passed {
        let is_quiet = (self.horizon..self.next_at_earliest).contains(&now);
        if is_quiet {
            self.horizon = now;
            return Passed::default();
        }
        let mut passed = Passed::default();
        if self.horizon < now {
            (passed.became_ready, passed.died) = self.news_between(self.horizon, now);
            passed.uncounted = self.uncounted_between(self.horizon.max(counted), now);
        }
        self.horizon = now;
        self.lines_mut().for_each(|line| line.advance(now));
        self.next_at_earliest = self.next_change().unwrap_or(Time::MAX);
        passed
    }

    /// How many jobs became ready, and how many died.
    fn news_between(&self, from: Time, to: Time) -> (usize, usize) {
        let became_ready = self.lanes().map(|lane| lane.count_between(from, to).jobs).sum();
        let (dying, expiring) =
            (self.dying.count_between(from, to), self.expiring.count_between(from, to));
        (became_ready, dying.jobs + expiring.jobs)
    }

    fn uncounted_between(&self, from: Time, to: Time) -> Uncounted {
        if from >= to {
            return Uncounted::default();
        }
        let (dying, expiring) =
            (self.dying.count_between(from, to), self.expiring.count_between(from, to));
        let leased: usize = self.lanes().map(|lane| lane.count_between(from, to).leased).sum();
        let leased_at_first = self.leases.count_between(from, to).jobs;
        Uncounted {
            timed_out: dying.leased + leased + leased_at_first,
            died: dying.jobs + expiring.jobs,
        }
    }

    pub fn insert(
        &mut self,
        main_line: MainLine,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) {
        self.expect(new_entry.time);
        self.line_mut(main_line).insert(new_entry, jobs);
    }

    /// Whether it was there.
    pub fn remove(
        &mut self,
        main_line: MainLine,
        slot: Slot,
        bucket: BucketNumber,
        jobs: &mut impl BucketListener,
    ) -> bool {
        self.line_mut(main_line).remove(slot, bucket, jobs).is_some()
    }

    /// Gives a job that stays in its lane another time and kind. Whether it was there.
    pub fn move_in_lane(
        &mut self,
        priority: u8,
        bucket: BucketNumber,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) -> bool {
        self.expect(new_entry.time);
        let line = lane_mut(&mut self.lanes, &mut self.recent_lane, priority);
        line.advance(self.horizon);
        let removed = line.remove(new_entry.slot, bucket, jobs);
        line.insert_here(new_entry, jobs);
        removed.is_some()
    }

    pub fn insert_in_side_line(
        &mut self,
        aside: SideLine,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) {
        self.expect(new_entry.time);
        self.side_line_mut(aside).insert(new_entry, jobs);
    }

    /// Whether it was there.
    pub fn remove_from_side_line(
        &mut self,
        aside: SideLine,
        slot: Slot,
        bucket: BucketNumber,
        jobs: &mut impl BucketListener,
    ) -> bool {
        self.side_line_mut(aside).remove(slot, bucket, jobs).is_some()
    }

    pub fn time_of(&self, main_line: MainLine, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        self.line(main_line)?.time_of(slot, bucket)
    }

    /// The job to be handed out at `now`, if one is ready. O(lanes) from the lane on in which the
    /// search begins, which then is the one where it ended: as long as nothing becomes ready
    /// meanwhile, nothing is before it.
    pub fn first_ready(
        &self,
        now: Time,
        from: &mut FromLane,
        windows: &impl Windows,
    ) -> Option<(Time, Slot)> {
        while let Some(lane) = self.lanes.get(from.0) {
            let first = lane.jobs.first_open(now, windows);
            if first.is_some() {
                return first;
            }
            from.0 += 1;
        }
        None
    }

    /// As [`Lanes::first_ready`], of those without a group that have this priority.
    pub fn first_in_lane(
        &self,
        priority: u8,
        now: Time,
        windows: &impl Windows,
    ) -> Option<(Time, Slot)> {
        lane_of(&self.lanes, priority)?.first_open(now, windows)
    }

    /// The time of the first of them, also of one that has expired.
    pub fn first_time_in_lane(&self, priority: u8) -> Option<Time> {
        lane_of(&self.lanes, priority)?.first().map(|(time, _)| time)
    }

    /// The priority behind this one, with a group or without.
    pub fn next_priority(&self, priority: u8) -> Option<u8> {
        let next = |lanes: &[Lane]| {
            lanes
                .get(lanes.partition_point(|lane| lane.priority <= priority))
                .map(|lane| lane.priority)
        };
        next(&self.lanes).into_iter().chain(next(&self.grouped)).min()
    }

    /// Of those that are ready, since when the first one is. O(lanes).
    pub fn oldest_ready(&self, windows: &impl Windows) -> Option<Time> {
        let firsts = self.lanes().filter_map(|lane| lane.first_open(self.horizon, windows));
        firsts.map(|(time, _)| time).min()
    }

    /// Whether anything is ready at `now`, whatever has passed here. O(lanes) at the horizon.
    pub fn is_any_ready(&self, now: Time) -> bool {
        let up_to_now = |line: &Buckets| line.job_counts().0.jobs - line.count_after(now).jobs;
        // What has expired had come due before.
        self.lanes().map(up_to_now).sum::<usize>() > up_to_now(&self.expiring)
    }

    /// Until when the first of the done ones is kept.
    pub fn first_done(&self) -> Option<Time> {
        self.done.first().map(|(time, _)| time)
    }

    /// The done ones that have been kept long enough by `now`.
    pub fn done_by(&self, now: Time) -> impl Iterator<Item = Slot> + '_ {
        self.done.iter().take_while(move |(time, ..)| *time <= now).map(|(_, slot, _)| slot)
    }

    /// When the next job becomes ready, dies or has been kept long enough. O(lanes).
    pub fn next_change(&self) -> Option<Time> {
        // What is dead stays so.
        let others = [&self.dying, &self.done, &self.expiring, &self.leases];
        self.lanes().chain(others).filter_map(Buckets::next).min()
    }

    /// When the next job becomes ready. O(lanes).
    pub fn next_due(&self) -> Option<Time> {
        self.lanes().filter_map(Buckets::next).min()
    }

    /// What comes due in each of these steps, in lanes; that is, not what dies before. As of the
    /// horizon.
    pub fn come_due(&self, steps: &Steps) -> Vec<JobCounts> {
        let mut sums = vec![JobCounts::default(); steps.count()];
        self.lanes().for_each(|lane| lane.add_up_by_step(steps, self.horizon, &mut sums));
        sums
    }

    /// How many leases are running that a backoff would follow, as of the horizon. O(1).
    pub fn running_at_first(&self) -> usize {
        let (all, passed) = self.leases.job_counts();
        all.jobs - passed.jobs
    }

    /// Their jobs.
    pub fn leases_to_come(&self) -> impl Iterator<Item = Slot> + '_ {
        self.leases.to_come(Start::FIRST, |_| true).map(|(_, slot, _)| slot)
    }

    /// As of the horizon. O(lanes).
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { dead: self.dead.job_counts().0.jobs, ..Counts::default() };
        counts.done = self.done.job_counts().0.jobs;
        let mut to_come = JobCounts::default();
        for lane in self.lanes() {
            let (all, passed) = lane.job_counts();
            counts.ready += passed.jobs;
            to_come += all - passed;
        }
        let (all, passed) = self.dying.job_counts();
        counts.dead += passed.jobs;
        to_come += all - passed;
        let (_, expired) = self.expiring.job_counts();
        counts.dead += expired.jobs;
        counts.ready -= expired.jobs;
        let (all, passed) = self.leases.job_counts();
        let leased_at_first = all.jobs - passed.jobs;
        counts.reserved = to_come.leased + leased_at_first;
        counts.delayed = to_come.waiting() + to_come.leased_at_first - leased_at_first;
        counts
    }

    /// How many leases haven't run out at `now`, whatever has passed here: so many jobs are
    /// reserved then. O(lanes) at the horizon.
    pub fn live_leases(&self, now: Time) -> usize {
        let in_lines: usize =
            self.lanes().chain([&self.dying]).map(|line| line.count_after(now).leased).sum();
        in_lines + self.leases.count_after(now).jobs
    }

    /// Every job: lane by lane, then those that die, are dead, are done; each line in its order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot)> + '_ {
        let others = [&self.dying, &self.dead, &self.done];
        self.lanes().chain(others).flat_map(|line| line.iter()).map(|(time, slot, _)| (time, slot))
    }

    pub fn memory(&self) -> usize {
        (self.lanes.capacity() + self.grouped.capacity()) * size_of::<Lane>()
            + self.lines().map(Buckets::memory).sum::<usize>()
    }

    fn lanes(&self) -> impl Iterator<Item = &Buckets> {
        self.lanes.iter().chain(&self.grouped).map(|lane| &lane.jobs)
    }

    fn lines(&self) -> impl Iterator<Item = &Buckets> {
        self.lanes().chain([&self.dying, &self.dead, &self.done, &self.expiring, &self.leases])
    }

    fn lines_mut(&mut self) -> impl Iterator<Item = &mut Buckets> {
        let lanes = self.lanes.iter_mut().chain(&mut self.grouped).map(|lane| &mut lane.jobs);
        let others =
            [&mut self.dying, &mut self.dead, &mut self.done, &mut self.expiring, &mut self.leases];
        lanes.chain(others)
    }

    pub fn line_count(&self) -> u32 {
        self.lines().count() as u32
    }

    /// Hands the memory of a line to a defragmenter, as [`super::slab::Slab::defrag`].
    pub fn defrag(
        &mut self,
        line: u32,
        from: Slot,
        defragmenter: &mut impl Defragmenter,
    ) -> Option<Slot> {
        if line == 0 && from == 0 {
            defragmenter.vec(&mut self.lanes);
            defragmenter.vec(&mut self.grouped);
        }
        self.lines_mut().nth(line as usize)?.defrag(from, defragmenter)
    }

    /// A job comes with this time.
    fn expect(&mut self, time: Time) {
        if time > self.horizon {
            self.next_at_earliest = self.next_at_earliest.min(time);
        }
    }

    fn side_line_mut(&mut self, aside: SideLine) -> &mut Buckets {
        let line = match aside {
            SideLine::Expiring => &mut self.expiring,
            SideLine::Leases => &mut self.leases,
        };
        line.advance(self.horizon);
        line
    }

    fn line(&self, main_line: MainLine) -> Option<&Buckets> {
        match main_line {
            MainLine::Lane(priority) => lane_of(&self.lanes, priority),
            MainLine::Grouped(priority) => lane_of(&self.grouped, priority),
            MainLine::Dying => Some(&self.dying),
            MainLine::Dead => Some(&self.dead),
            MainLine::Done => Some(&self.done),
        }
    }

    /// The line, with time passed in it as it has here.
    fn line_mut(&mut self, main_line: MainLine) -> &mut Buckets {
        let line = match main_line {
            MainLine::Lane(priority) => lane_mut(&mut self.lanes, &mut self.recent_lane, priority),
            MainLine::Grouped(priority) => {
                lane_mut(&mut self.grouped, &mut self.recent_grouped, priority)
            }
            MainLine::Dying => &mut self.dying,
            MainLine::Dead => &mut self.dead,
            MainLine::Done => &mut self.done,
        };
        line.advance(self.horizon);
        line
    }
}

fn lane_of(lanes: &[Lane], priority: u8) -> Option<&Buckets> {
    let at = lanes.binary_search_by_key(&priority, |lane| lane.priority).ok()?;
    lanes.get(at).map(|lane| &lane.jobs)
}

/// The lane with this priority, made if there is none. Most often it is the one that was asked for
/// last.
#[inline]
#[allow(clippy::indexing_slicing, reason = "the place was found, or has just been made")]
fn lane_mut<'l>(lanes: &'l mut Vec<Lane>, recent: &mut usize, priority: u8) -> &'l mut Buckets {
    if lanes.get(*recent).is_none_or(|lane| lane.priority != priority) {
        *recent = place_of(lanes, priority);
    }
    &mut lanes[*recent].jobs
}

#[inline(never)]
fn place_of(lanes: &mut Vec<Lane>, priority: u8) -> usize {
    lanes.binary_search_by_key(&priority, |lane| lane.priority).unwrap_or_else(|at| {
        lanes.insert(at, Lane { priority, jobs: Buckets::default() });
        at
    })
}
