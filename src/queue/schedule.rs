//! When jobs move: for each priority a lane of sorted buckets, in which its jobs wait to become ready, and
//! one more line of them in which jobs on their last attempt wait to die.
//!
//! The part of a lane whose time has come is that priority's ready list. A leased job stands in its lane
//! at the end of its lease: when nobody finishes it, it is ready again without anyone touching it.

use super::buckets::{BucketNumber, Buckets, Hold, Residents};
use super::job::State;
use super::slab::Slot;
use super::time::Time;

/// Where a job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// To become ready, with this priority.
    Lane(u8),
    /// To die.
    LastAttempt,
}

/// How many jobs are in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub delayed: usize,
    pub ready: usize,
    pub reserved: usize,
    pub dead: usize,
}

impl Counts {
    pub fn of(&self, state: State) -> usize {
        match state {
            State::Delayed => self.delayed,
            State::Ready => self.ready,
            State::Reserved => self.reserved,
            State::Dead => self.dead,
        }
    }
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
    last_attempts: Buckets,
    now: Time,
}

impl Schedule {
    /// The latest moment that [`Schedule::advance`] was told of.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets time pass up to `now`: it never runs backwards. O(lanes), and a few nanoseconds for each
    /// bucket whose time has come since.
    pub fn advance(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.lines_mut().for_each(|line| line.advance(now));
        }
    }

    pub fn insert(&mut self, home: Home, time: Time, slot: Slot, hold: Hold, residents: &mut impl Residents) {
        self.line_mut(home).insert(time, slot, hold, residents);
    }

    pub fn remove(
        &mut self,
        home: Home,
        slot: Slot,
        bucket: BucketNumber,
        residents: &mut impl Residents,
    ) -> Option<Time> {
        self.line_mut(home).remove(slot, bucket, residents)
    }

    pub fn time_of(&self, home: Home, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        match home {
            Home::Lane(priority) => {
                let at = self.lanes.binary_search_by_key(&priority, |lane| lane.priority).ok()?;
                self.lanes.get(at)?.jobs.time_of(slot, bucket)
            }
            Home::LastAttempt => self.last_attempts.time_of(slot, bucket),
        }
    }

    /// The job that is to be handed out next, if one is ready. O(lanes).
    pub fn first_ready(&self) -> Option<Slot> {
        let mut firsts = self.lanes.iter().filter_map(|lane| lane.jobs.first());
        firsts.find(|(time, _)| *time <= self.now).map(|(_, slot)| slot)
    }

    /// When the next job becomes ready or dies by itself. O(lanes).
    pub fn next_change(&self) -> Option<Time> {
        self.lines().filter_map(Buckets::next).min()
    }

    /// O(lanes).
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for lane in &self.lanes {
            let (all, passed) = lane.jobs.tallies();
            let reserved = all.leased - passed.leased;
            counts.reserved += reserved;
            counts.ready += passed.jobs;
            counts.delayed += all.jobs - passed.jobs - reserved;
        }
        let (all, passed) = self.last_attempts.tallies();
        counts.reserved += all.jobs - passed.jobs;
        counts.dead += passed.jobs;
        counts
    }

    /// Every job: lane by lane, then those at their last attempt; each line in its order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, Slot)> + '_ {
        self.lines().flat_map(|line| line.iter()).map(|(time, slot, _)| (time, slot))
    }

    pub fn memory(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>() + self.lines().map(Buckets::memory).sum::<usize>()
    }

    fn lines(&self) -> impl Iterator<Item = &Buckets> {
        let lanes = self.lanes.iter().map(|lane| &lane.jobs);
        lanes.chain(std::iter::once(&self.last_attempts))
    }

    fn lines_mut(&mut self) -> impl Iterator<Item = &mut Buckets> {
        let lanes = self.lanes.iter_mut().map(|lane| &mut lane.jobs);
        lanes.chain(std::iter::once(&mut self.last_attempts))
    }

    fn line_mut(&mut self, home: Home) -> &mut Buckets {
        let Home::Lane(priority) = home else {
            return &mut self.last_attempts;
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
            None => &mut self.last_attempts,
        }
    }
}
