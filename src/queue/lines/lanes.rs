//! When jobs change their state. For each priority there is a lane of sorted buckets, in which its
//! jobs wait to become ready; the part of a lane whose time has come is that priority's ready list.
//! A leased job is in its lane at the time when it will be ready again: if no worker finishes the
//! job, it becomes ready at that time without any write.
//!
//! | line | its jobs | their time in it |
//! | --- | --- | --- |
//! | a lane | become ready | when they become ready |
//! | a second lane for each priority | become ready and have a group | when they become ready |
//! | `dying` | die instead | when they die |
//! | `dead` | were buried, or released after their last attempt | when they died |
//! | `done` | are finished and kept | until when they are kept |
//! | `expiring` | are in a lane and expire | when they expire |
//! | `leases` | are in a lane or `dying`, and wait once their lease is over | the end of the lease |
//! | `held` | wait for other jobs, or for a command | when they were added |
//! | `held.expiring` | are in `held` and expire | when they expire |
//!
//! So the number of jobs in each state is a sum of counts, also while a million jobs expire in one
//! millisecond. A job that has expired stays in its lane, where its window has closed: nothing
//! moves, and searches skip it by whole buckets.
//!
//! The horizon is only for counts and readers. An operation depends on its own time, never on the
//! horizon.

pub mod held;
pub mod order;
mod plain;

use super::buckets::{BucketListener, BucketNumber, Buckets, NewEntry};
use super::counts::{Counts, Passed, Uncounted};
use super::entry::JobCounts;
use super::window::Windows;
use crate::queue::lines::buckets::steps::Steps;
use crate::queue::lines::buckets::walk::Start;
use crate::queue::memory::defrag::Defragmenter;
use crate::queue::memory::slab::Slot;
use crate::queue::value::policy::Policy;
use crate::queue::value::state::Stage;
use crate::queue::value::time::Time;
use held::HeldLines;

/// The line in which a job waits. Each job has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainLine {
    /// It waits to become ready, with this priority.
    Lane(u8),
    /// It waits to become ready, and then for the turn of its group.
    Grouped(u8),
    /// It waits to die.
    Dying,
    /// It waits for an operator.
    Dead,
    /// It is kept until it is removed.
    Done,
    /// It waits for other jobs, or for a command.
    Held,
}

impl MainLine {
    /// The line of a job without a group. `dies_undelivered`: it dies before it would be delivered.
    #[inline]
    pub fn of(stage: Stage, dies_undelivered: bool, policy: &Policy) -> MainLine {
        match stage {
            Stage::Waiting | Stage::Leased if dies_undelivered => MainLine::Dying,
            Stage::Waiting | Stage::Leased => MainLine::Lane(policy.priority),
            Stage::Dead => MainLine::Dead,
            Stage::Done => MainLine::Done,
            Stage::Held => MainLine::Held,
        }
    }

    /// Whether a job in this line becomes ready.
    pub fn is_lane(self) -> bool {
        matches!(self, MainLine::Lane(_) | MainLine::Grouped(_))
    }

    /// The line of those of its jobs that expire.
    pub fn line_of_expiring(self) -> SideLine {
        match self {
            MainLine::Held => SideLine::HeldExpiring,
            MainLine::Lane(_)
            | MainLine::Grouped(_)
            | MainLine::Dying
            | MainLine::Dead
            | MainLine::Done => SideLine::Expiring,
        }
    }
}

/// A second line, which some jobs are in as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideLine {
    Expiring,
    Leases,
    HeldExpiring,
}

#[derive(Clone)]
struct Lane {
    priority: u8,
    jobs: Buckets,
}

#[derive(Clone, Default)]
pub struct Lanes {
    /// Sorted by priority. An empty lane stays: there are 256 at most.
    lanes: Vec<Lane>,
    /// The lanes of jobs with a group. Which group has its turn is in
    /// [`groups`](crate::queue::groups).
    grouped: Vec<Lane>,
    /// The lane used last: most calls use the same one again.
    recent_lane: usize,
    recent_grouped: usize,
    dying: Buckets,
    dead: Buckets,
    done: Buckets,
    expiring: Buckets,
    leases: Buckets,
    held: Option<Box<HeldLines>>,
    horizon: Time,
    /// No line has an earlier time after the horizon.
    next_at_earliest: Time,
}

/// The lane from which [`Lanes::first_ready`] searches: an index of a lane. In a queue with groups
/// it is a priority.
#[derive(Clone, Copy, Default)]
pub struct LaneCursor(usize);

impl LaneCursor {
    pub fn priority(self) -> Option<u8> {
        u8::try_from(self.0).ok()
    }

    pub fn continue_at(&mut self, priority: Option<u8>) {
        self.0 = priority.map_or(usize::MAX, usize::from);
    }
}

impl Lanes {
    /// The time of the last [`Lanes::advance`].
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    /// Moves the horizon to `now`, forward or back. Returns what time did, and of that what
    /// happened after `counted`. O(1) if nothing happened; otherwise O(lanes), and a few
    /// nanoseconds for each bucket whose time has come.
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
        (became_ready, self.died_between(from, to))
    }

    fn died_between(&self, from: Time, to: Time) -> usize {
        let held = self.held.iter().map(|held| &held.expiring);
        let lines = [&self.dying, &self.expiring].into_iter().chain(held);
        lines.map(|line| line.count_between(from, to).jobs).sum()
    }

    fn uncounted_between(&self, from: Time, to: Time) -> Uncounted {
        if from >= to {
            return Uncounted::default();
        }
        let dying = self.dying.count_between(from, to);
        let leased: usize = self.lanes().map(|lane| lane.count_between(from, to).leased).sum();
        let leased_then_waiting = self.leases.count_between(from, to).jobs;
        Uncounted {
            timed_out: dying.leased + leased + leased_then_waiting,
            died: self.died_between(from, to),
        }
    }

    pub fn insert(
        &mut self,
        main_line: MainLine,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) {
        self.wake_by(new_entry.time);
        self.line_mut(main_line).insert(new_entry, jobs);
    }

    /// Returns whether the job was there.
    pub fn remove(
        &mut self,
        main_line: MainLine,
        slot: Slot,
        bucket: BucketNumber,
        jobs: &mut impl BucketListener,
    ) -> bool {
        self.line_mut(main_line).remove(slot, bucket, jobs).is_some()
    }

    pub fn insert_in_side_line(
        &mut self,
        aside: SideLine,
        new_entry: &NewEntry,
        jobs: &mut impl BucketListener,
    ) {
        self.wake_by(new_entry.time);
        self.side_line_mut(aside).insert(new_entry, jobs);
    }

    /// Returns whether the job was there.
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

    /// The job to deliver at `now`, if one is ready. Searches from the lane `from` on, and leaves
    /// the lane where the search ended there: until another job becomes ready, the lanes before it
    /// have none. O(lanes).
    #[inline]
    pub fn first_ready(
        &self,
        now: Time,
        from: &mut LaneCursor,
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

    /// The first ready job without a group of this priority.
    pub fn first_in_lane(
        &self,
        priority: u8,
        now: Time,
        windows: &impl Windows,
    ) -> Option<(Time, Slot)> {
        lane_of(&self.lanes, priority)?.first_open(now, windows)
    }

    /// The time of the first job without a group of this priority, even if it has expired.
    pub fn first_time_in_lane(&self, priority: u8) -> Option<Time> {
        lane_of(&self.lanes, priority)?.first().map(|(time, _)| time)
    }

    /// The next priority that has a lane, with a group or without.
    pub fn next_priority(&self, priority: u8) -> Option<u8> {
        let next = |lanes: &[Lane]| {
            lanes
                .get(lanes.partition_point(|lane| lane.priority <= priority))
                .map(|lane| lane.priority)
        };
        next(&self.lanes).into_iter().chain(next(&self.grouped)).min()
    }

    /// Since when the job that is ready longest at `now` is ready. O(lanes).
    pub fn oldest_ready(&self, now: Time, windows: &impl Windows) -> Option<Time> {
        let firsts = self.lanes().filter_map(|lane| lane.first_open(now, windows));
        firsts.map(|(time, _)| time).min()
    }

    /// How many jobs are ready at `now`, whatever the horizon is. O(lanes) if `now` is the
    /// horizon.
    pub fn ready_at(&self, now: Time) -> usize {
        let up_to_now = |line: &Buckets| line.job_counts().0.jobs - line.count_after(now).jobs;
        // A job that has expired had come due before.
        self.lanes().map(up_to_now).sum::<usize>().saturating_sub(up_to_now(&self.expiring))
    }

    /// Until when the first done job is kept.
    pub fn first_done(&self) -> Option<Time> {
        self.done.first().map(|(time, _)| time)
    }

    /// The done jobs that have been kept long enough by `now`.
    pub fn done_by(&self, now: Time) -> impl Iterator<Item = Slot> + '_ {
        self.done.iter().take_while(move |(time, ..)| *time <= now).map(|(_, slot, _)| slot)
    }

    /// When the next job becomes ready, dies or has been kept long enough. O(lanes).
    pub fn next_change(&self) -> Option<Time> {
        // A dead job stays dead.
        let others = [&self.dying, &self.done, &self.expiring, &self.leases];
        let held = self.held.iter().map(|held| &held.expiring);
        self.lanes().chain(others).chain(held).filter_map(Buckets::next).min()
    }

    /// When the next job becomes ready. O(lanes).
    pub fn next_due(&self) -> Option<Time> {
        self.lanes().filter_map(Buckets::next).min()
    }

    /// How many jobs in lanes come due in each of these steps, as of the horizon. Jobs that die
    /// before aren't counted.
    pub fn come_due(&self, steps: &Steps) -> Vec<JobCounts> {
        let mut sums = vec![JobCounts::default(); steps.count()];
        self.lanes().for_each(|lane| lane.add_up_by_step(steps, self.horizon, &mut sums));
        sums
    }

    /// How many leases are live, as of the horizon, that a backoff would follow. O(1).
    pub fn leases_before_backoff(&self) -> usize {
        let (all, passed) = self.leases.job_counts();
        all.jobs - passed.jobs
    }

    /// The jobs counted by [`Lanes::leases_before_backoff`].
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
        let leased_then_waiting = all.jobs - passed.jobs;
        counts.reserved = to_come.leased + leased_then_waiting;
        counts.delayed = to_come.waiting() + to_come.leased_then_waiting - leased_then_waiting;
        let (held, expired) = self.held.as_ref().map_or((0, 0), |held| held.counts());
        (counts.held, counts.dead) = (held, counts.dead + expired);
        counts
    }

    /// How many leases are live at `now`, whatever the horizon is: this many jobs are reserved
    /// then. O(lanes) if `now` is the horizon.
    pub fn live_leases(&self, now: Time) -> usize {
        let in_lines: usize =
            self.lanes().chain([&self.dying]).map(|line| line.count_after(now).leased).sum();
        in_lines + self.leases.count_after(now).jobs
    }

    /// Every job: lane by lane, then the dying, dead, done and held ones; each line in its order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot)> + '_ {
        let others = [&self.dying, &self.dead, &self.done];
        let held = self.held.iter().map(|held| &held.jobs);
        let lines = self.lanes().chain(others).chain(held);
        lines.flat_map(|line| line.iter()).map(|(time, slot, _)| (time, slot))
    }

    pub fn memory(&self) -> usize {
        (self.lanes.capacity() + self.grouped.capacity()) * size_of::<Lane>()
            + self.lines().map(Buckets::memory).sum::<usize>()
    }

    fn lanes(&self) -> impl Iterator<Item = &Buckets> {
        self.lanes.iter().chain(&self.grouped).map(|lane| &lane.jobs)
    }

    fn lines(&self) -> impl Iterator<Item = &Buckets> {
        let others = [&self.dying, &self.dead, &self.done, &self.expiring, &self.leases];
        self.lanes().chain(others).chain(self.held.iter().flat_map(|held| held.iter()))
    }

    fn lines_mut(&mut self) -> impl Iterator<Item = &mut Buckets> {
        let lanes = self.lanes.iter_mut().chain(&mut self.grouped).map(|lane| &mut lane.jobs);
        let others =
            [&mut self.dying, &mut self.dead, &mut self.done, &mut self.expiring, &mut self.leases];
        lanes.chain(others).chain(self.held.iter_mut().flat_map(|held| held.iter_mut()))
    }

    pub fn line_count(&self) -> u32 {
        self.lines().count() as u32
    }

    /// Hands the memory of a line to a defragmenter: see
    /// [`Slab::defrag`](crate::queue::memory::slab::Slab::defrag).
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

    /// A job with this time is about to be inserted.
    fn wake_by(&mut self, time: Time) {
        if time > self.horizon {
            self.next_at_earliest = self.next_at_earliest.min(time);
        }
    }

    fn side_line_mut(&mut self, aside: SideLine) -> &mut Buckets {
        let line = match aside {
            SideLine::Expiring => &mut self.expiring,
            SideLine::Leases => &mut self.leases,
            SideLine::HeldExpiring => &mut self.held.get_or_insert_default().expiring,
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
            MainLine::Held => self.held.as_ref().map(|held| &held.jobs),
        }
    }

    /// The line, advanced to the horizon.
    fn line_mut(&mut self, main_line: MainLine) -> &mut Buckets {
        let line = match main_line {
            MainLine::Lane(priority) => lane_mut(&mut self.lanes, &mut self.recent_lane, priority),
            MainLine::Grouped(priority) => {
                lane_mut(&mut self.grouped, &mut self.recent_grouped, priority)
            }
            MainLine::Dying => &mut self.dying,
            MainLine::Dead => &mut self.dead,
            MainLine::Done => &mut self.done,
            MainLine::Held => &mut self.held.get_or_insert_default().jobs,
        };
        line.advance(self.horizon);
        line
    }
}

fn lane_of(lanes: &[Lane], priority: u8) -> Option<&Buckets> {
    let at = lanes.binary_search_by_key(&priority, |lane| lane.priority).ok()?;
    lanes.get(at).map(|lane| &lane.jobs)
}

/// The lane with this priority, created if there is none. Most calls use the same one as before.
#[inline]
#[allow(clippy::indexing_slicing, reason = "the place was found, or has just been made")]
fn lane_mut<'l>(lanes: &'l mut Vec<Lane>, recent: &mut usize, priority: u8) -> &'l mut Buckets {
    if lanes.get(*recent).is_none_or(|lane| lane.priority != priority) {
        *recent = position_of(lanes, priority);
    }
    &mut lanes[*recent].jobs
}

#[inline(never)]
fn position_of(lanes: &mut Vec<Lane>, priority: u8) -> usize {
    lanes.binary_search_by_key(&priority, |lane| lane.priority).unwrap_or_else(|at| {
        lanes.insert(at, Lane { priority, jobs: Buckets::default() });
        at
    })
}
