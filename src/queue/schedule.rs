//! When jobs move. For each priority a lane of sorted buckets, in which its jobs wait to become ready; the
//! part of a lane whose time has come is that priority's ready list. A leased job stands in its lane where
//! it will be ready again: when nobody finishes it, it is, without anyone touching it.
//!
//! | line | who stands in it | at which time |
//! | --- | --- | --- |
//! | a lane | who will be ready | when that is |
//! | `deaths` | who will die instead | when that is |
//! | `lives` | of those in lanes, who won't live for ever | the end of the life |
//! | `leases` | of those in lanes and `deaths`, who waits once the lease is over | the end of the lease |
//! | `graves` | who is dead for good | since when |
//! | `kept` | who is done | until when it is kept |
//!
//! So every state is a sum of counts, also while a million lives end in one millisecond: in a lane, those
//! stand among the ready ones until somebody comes by and buries them ([`Schedule::overdue`]).

use std::iter::Peekable;

use super::buckets::{BucketNumber, Buckets, Rank, Residents};
use super::entry::{Hold, Tally};
use super::job::State;
use super::slab::Slot;
use super::time::Time;

/// The line in which a job waits, of which each has exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// To become ready, with this priority.
    Lane(u8),
    /// To die.
    Deaths,
    /// For an operator.
    Graves,
    /// To be forgotten.
    Kept,
}

/// A line in which some jobs stand besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aside {
    Lives,
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
pub struct Schedule {
    /// By priority; a lane stays when it is empty, there are 256 at most.
    lanes: Vec<Lane>,
    deaths: Buckets,
    lives: Buckets,
    leases: Buckets,
    graves: Buckets,
    kept: Buckets,
    now: Time,
}

impl Schedule {
    /// The latest moment that [`Schedule::advance`] was told of.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets time pass up to `now`: it never runs backwards. Tells what that did after `counted`. O(lanes),
    /// and a few nanoseconds for each bucket whose time has come since.
    pub fn advance(&mut self, now: Time, counted: Time) -> Passed {
        if now <= self.now {
            return Passed::default();
        }
        let from = self.now.max(counted);
        let is_next_later = self.next_change().is_none_or(|next| next > now);
        let passed =
            if is_next_later || from >= now { Passed::default() } else { self.passed_between(from, now) };
        self.now = now;
        self.lines_mut().for_each(|line| line.advance(now));
        passed
    }

    fn passed_between(&self, from: Time, to: Time) -> Passed {
        let (deaths, lives) = (self.deaths.tally_between(from, to), self.lives.tally_between(from, to));
        let mut passed = Passed { became_ready: 0, timed_out: deaths.leased, died: deaths.jobs + lives.jobs };
        passed.timed_out += self.leases.tally_between(from, to).jobs;
        for lane in self.lanes() {
            let tally = lane.tally_between(from, to);
            passed.became_ready += tally.jobs;
            passed.timed_out += tally.leased;
        }
        passed
    }

    pub fn insert(
        &mut self,
        home: Home,
        time: Time,
        slot: Slot,
        hold: Hold,
        rank: Rank,
        jobs: &mut impl Residents,
    ) {
        self.line_mut(home).insert(time, slot, hold, rank, jobs);
    }

    pub fn remove(&mut self, home: Home, slot: Slot, bucket: BucketNumber, jobs: &mut impl Residents) {
        self.line_mut(home).remove(slot, bucket, jobs);
    }

    pub fn insert_aside(&mut self, aside: Aside, time: Time, slot: Slot, jobs: &mut impl Residents) {
        self.aside_mut(aside).insert(time, slot, Hold::Waiting, Rank::Last, jobs);
    }

    pub fn remove_aside(
        &mut self,
        aside: Aside,
        slot: Slot,
        bucket: BucketNumber,
        jobs: &mut impl Residents,
    ) {
        self.aside_mut(aside).remove(slot, bucket, jobs);
    }

    pub fn time_of(&self, home: Home, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        let line = match home {
            Home::Lane(priority) => {
                let at = self.lanes.binary_search_by_key(&priority, |lane| lane.priority).ok()?;
                &self.lanes.get(at)?.jobs
            }
            Home::Deaths => &self.deaths,
            Home::Graves => &self.graves,
            Home::Kept => &self.kept,
        };
        line.time_of(slot, bucket)
    }

    /// The job that is to be handed out next, if one is ready; unless its life is over. O(lanes).
    pub fn first_ready(&self) -> Option<(Time, Slot)> {
        let mut firsts = self.lanes.iter().filter_map(|lane| lane.jobs.first());
        firsts.find(|(time, _)| *time <= self.now)
    }

    /// Of those that are ready, since when the first one is. O(lanes).
    pub fn oldest_ready(&self) -> Option<Time> {
        let firsts = self.lanes.iter().filter_map(|lane| lane.jobs.first());
        firsts.map(|(time, _)| time).filter(|time| *time <= self.now).min()
    }

    /// One whose life is over and who stands in a lane all the same.
    pub fn overdue(&self) -> Option<Slot> {
        self.lives.first().filter(|(time, _)| *time <= self.now).map(|(_, slot)| slot)
    }

    /// The first that has been kept long enough.
    pub fn kept_long_enough(&self) -> Option<Slot> {
        self.kept.first().filter(|(time, _)| *time <= self.now).map(|(_, slot)| slot)
    }

    /// When the next job becomes ready, dies or has been kept long enough. O(lanes).
    pub fn next_change(&self) -> Option<Time> {
        self.lines().filter_map(Buckets::next).min()
    }

    /// When the next job becomes ready. O(lanes).
    pub fn next_due(&self) -> Option<Time> {
        self.lanes.iter().filter_map(|lane| lane.jobs.next()).min()
    }

    /// O(lanes).
    pub fn counts(&self) -> Counts {
        let mut counts = Counts { dead: self.graves.tallies().0.jobs, ..Counts::default() };
        counts.done = self.kept.tallies().0.jobs;
        let mut to_come = Tally::default();
        for lane in &self.lanes {
            let (all, passed) = lane.jobs.tallies();
            counts.ready += passed.jobs;
            to_come += all - passed;
        }
        let (all, passed) = self.deaths.tallies();
        counts.dead += passed.jobs;
        to_come += all - passed;
        let (_, overdue) = self.lives.tallies();
        counts.dead += overdue.jobs;
        counts.ready -= overdue.jobs;
        let (all, passed) = self.leases.tallies();
        let leased_at_first = all.jobs - passed.jobs;
        counts.reserved = to_come.leased + leased_at_first;
        counts.delayed = to_come.waiting() + to_come.leased_at_first - leased_at_first;
        counts
    }

    /// Every job: lane by lane, then those that die, are dead, are done; each line in its order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot)> + '_ {
        let others = [&self.deaths, &self.graves, &self.kept];
        self.lanes().chain(others).flat_map(|line| line.iter()).map(|(time, slot, _)| (time, slot))
    }

    /// All jobs in this state, and some in others, in the order in which they leave that state. Where that
    /// doesn't say who is first, as in the order of [`Schedule::iter`].
    /// Ready and dead ones that became so after `since` are left out.
    pub fn in_order_of(&self, state: State, since: Time) -> Box<dyn Iterator<Item = Slot> + '_> {
        let is_early = move |(time, ..): &(Time, Slot, Hold)| *time <= since;
        let waits = |tally: Tally| tally.waiting() + tally.leased_at_first > 0;
        let is_leased = |tally: Tally| tally.leased > 0;
        let to_come = self.lanes().chain([&self.deaths]);
        match state {
            State::Ready => {
                let ready = self.lanes().flat_map(move |line| line.passed().take_while(is_early));
                Box::new(ready.map(|(_, slot, _)| slot))
            }
            State::Delayed => {
                // Of those that are leased at first, most often none waits yet: then nobody is asked.
                let has_any_waiting = self.leases.tallies().1.jobs > 0;
                let may_wait = move |(_, _, hold): &(Time, Slot, Hold)| match hold {
                    Hold::Waiting => true,
                    Hold::LeasedAtFirst => has_any_waiting,
                    Hold::Leased => false,
                };
                merged(to_come.map(|line| boxed(line.to_come(waits).filter(may_wait))).collect())
            }
            State::Reserved => {
                // Who is leased at first stands in `leases` as well, and earlier.
                let is_leased_to_the_end = |(_, _, hold): &(Time, Slot, Hold)| *hold == Hold::Leased;
                let leased = |line| Buckets::to_come(line, is_leased).filter(is_leased_to_the_end);
                let mut lines: Vec<Line> = to_come.map(|line| boxed(leased(line))).collect();
                lines.push(boxed(self.leases.to_come(|_| true)));
                merged(lines)
            }
            State::Dead => {
                let by_time =
                    [&self.deaths, &self.lives].map(|line| boxed(line.passed().take_while(is_early)));
                let graves = boxed(self.graves.iter().take_while(is_early));
                merged(by_time.into_iter().chain([graves]).collect())
            }
            State::Done => Box::new(self.kept.iter().map(|(_, slot, _)| slot)),
        }
    }

    pub fn memory(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>() + self.lines().map(Buckets::memory).sum::<usize>()
    }

    fn lanes(&self) -> impl Iterator<Item = &Buckets> {
        self.lanes.iter().map(|lane| &lane.jobs)
    }

    fn lines(&self) -> impl Iterator<Item = &Buckets> {
        self.lanes().chain([&self.deaths, &self.lives, &self.leases, &self.graves, &self.kept])
    }

    fn lines_mut(&mut self) -> impl Iterator<Item = &mut Buckets> {
        let lanes = self.lanes.iter_mut().map(|lane| &mut lane.jobs);
        let others = [&mut self.deaths, &mut self.lives, &mut self.leases, &mut self.graves, &mut self.kept];
        lanes.chain(others)
    }

    fn aside_mut(&mut self, aside: Aside) -> &mut Buckets {
        match aside {
            Aside::Lives => &mut self.lives,
            Aside::Leases => &mut self.leases,
        }
    }

    fn line_mut(&mut self, home: Home) -> &mut Buckets {
        let priority = match home {
            Home::Lane(priority) => priority,
            Home::Deaths => return &mut self.deaths,
            Home::Graves => return &mut self.graves,
            Home::Kept => return &mut self.kept,
        };
        let found = self.lanes.binary_search_by_key(&priority, |lane| lane.priority);
        let at = found.unwrap_or_else(|at| {
            let mut jobs = Buckets::default();
            jobs.advance(self.now);
            self.lanes.insert(at, Lane { priority, jobs });
            at
        });
        match self.lanes.get_mut(at) {
            Some(lane) => &mut lane.jobs,
            // There is one: it was found or made.
            None => &mut self.deaths,
        }
    }
}

type Line<'l> = Peekable<Box<dyn Iterator<Item = (Time, Slot, Hold)> + 'l>>;

fn boxed<'l>(line: impl Iterator<Item = (Time, Slot, Hold)> + 'l) -> Line<'l> {
    let line: Box<dyn Iterator<Item = (Time, Slot, Hold)> + 'l> = Box::new(line);
    line.peekable()
}

/// Lines, each in the order of its times, as one. O(lines) a step: there are few.
fn merged<'l>(mut lines: Vec<Line<'l>>) -> Box<dyn Iterator<Item = Slot> + 'l> {
    Box::new(std::iter::from_fn(move || {
        let first = lines.iter_mut().filter_map(|line| line.peek().map(|(time, ..)| *time)).min()?;
        let is_first = |(time, ..): &(Time, Slot, Hold)| *time == first;
        lines.iter_mut().find_map(|line| line.next_if(is_first)).map(|(_, slot, _)| slot)
    }))
}
