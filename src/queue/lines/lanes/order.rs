//! The jobs in a state, in the order in which they leave it, from a given place on.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::{Lanes, MainLine, SideLine};
use crate::queue::lines::buckets::walk::Start;
use crate::queue::lines::buckets::{BucketNumber, Buckets};
use crate::queue::lines::entry::EntryKind;
use crate::queue::lines::window::Windows;
use crate::queue::memory::slab::Slot;
use crate::queue::value::state::State;
use crate::queue::value::time::Time;

/// One of the lines that a job may be in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineName {
    MainLine(MainLine),
    SideLine(SideLine),
}

/// A job's position in the order of its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: LineName,
    pub slot: Slot,
    pub bucket: BucketNumber,
    /// When the job leaves that state or, for a state it doesn't leave, when it got into it.
    pub time: Time,
}

/// Where in the order of a state to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At the first job of this time or a later one; for ready jobs, in each priority.
    At(Time),
    Behind(Position),
}

impl Begin {
    pub const FIRST: Begin = Begin::At(Time::ZERO);
}

impl Lanes {
    /// All jobs in this state at the horizon, in the order in which they leave the state; dead jobs
    /// in the order in which they died. Leaves out jobs that became ready, dead or done after
    /// `since`. Skips by whole buckets.
    ///
    /// Jobs that leave in the same millisecond come in the order of their line. The order of the
    /// side lines isn't saved, so jobs that expire together may change their order by a load.
    /// Nothing in the log depends on it: operations that choose jobs by this order are logged by
    /// id.
    pub fn in_order_of<'s>(
        &'s self,
        windows: &'s dyn Windows,
        state: State,
        since: Time,
        begin: Begin,
    ) -> Box<dyn Iterator<Item = Slot> + 's> {
        let now = self.horizon;
        let lines = begun(self.lines_of(state), state, begin);
        match state {
            // Priority by priority, each by time.
            State::Ready => {
                let until = since.min(now);
                let open =
                    move |line: LineFrom<'s>| line.jobs.open_up_to(line.start, until, now, windows);
                Box::new(lines.flat_map(open).map(|(_, slot)| slot))
            }
            // All lines together, by the time at which they become ready, or die instead.
            State::Delayed => merged(
                lines.map(|line| boxed(line.jobs.open_after(line.start, now, windows))).collect(),
            ),
            State::Reserved => {
                // A job that is leased at first is also in `leases`, at an earlier time.
                let leased = |line: LineFrom<'s>| {
                    let is_aside = line.line == LineName::SideLine(SideLine::Leases);
                    let jobs =
                        line.jobs.to_come(line.start, move |tally| is_aside || tally.leased > 0);
                    let jobs =
                        jobs.filter(move |(_, _, kind)| is_aside || *kind == EntryKind::Leased);
                    boxed(jobs.map(|(time, slot, _)| (time, slot)))
                };
                merged(lines.map(leased).collect())
            }
            State::Dead => {
                let died = |line: LineFrom<'s>| {
                    // What a command made dead is dead at all times, also before its stored time
                    // (the clock was set back). What dies by time is dead from that time on.
                    let is_for_ever = line.line == LineName::MainLine(MainLine::Dead);
                    let until = if is_for_ever { since } else { since.min(now) };
                    let jobs = line.jobs.iter_from(line.start).map(|(time, slot, _)| (time, slot));
                    boxed(jobs.take_while(move |(time, _)| *time <= until))
                };
                merged(lines.map(died).collect())
            }
            State::Held => {
                let held =
                    move |line: LineFrom<'s>| line.jobs.open_up_to(line.start, since, now, windows);
                Box::new(lines.flat_map(held).map(|(_, slot)| slot))
            }
            // Stored by the time until which they are kept; the window opened when they were done.
            State::Done => {
                let kept = move |line: LineFrom<'s>| {
                    line.jobs.open_up_to(line.start, Time::MAX, since, windows)
                };
                Box::new(lines.flat_map(kept).map(|(_, slot)| slot))
            }
        }
    }

    /// The time at which a line has the job.
    pub fn time_in(&self, line: LineName, slot: Slot, bucket: BucketNumber) -> Option<Time> {
        match line {
            LineName::MainLine(main_line) => self.time_of(main_line, slot, bucket),
            LineName::SideLine(SideLine::Expiring) => self.expiring.time_of(slot, bucket),
            LineName::SideLine(SideLine::Leases) => self.leases.time_of(slot, bucket),
            LineName::SideLine(SideLine::HeldExpiring) => {
                self.held.as_ref()?.expiring.time_of(slot, bucket)
            }
        }
    }

    /// The lines that hold jobs of this state. At equal times, jobs of an earlier line come first.
    fn lines_of(&self, state: State) -> Vec<(LineName, &Buckets)> {
        let alone = self
            .lanes
            .iter()
            .map(|each| (LineName::MainLine(MainLine::Lane(each.priority)), &each.jobs));
        let grouped = self
            .grouped
            .iter()
            .map(|each| (LineName::MainLine(MainLine::Grouped(each.priority)), &each.jobs));
        let lanes = alone.chain(grouped);
        let dying = (LineName::MainLine(MainLine::Dying), &self.dying);
        match state {
            State::Ready => {
                let mut lanes: Vec<_> = lanes.collect();
                // Jobs with a group come after those without: their real turn isn't known yet.
                lanes.sort_by_key(|(line, _)| match line {
                    LineName::MainLine(MainLine::Lane(priority) | MainLine::Grouped(priority)) => {
                        *priority
                    }
                    LineName::MainLine(_) | LineName::SideLine(_) => u8::MAX,
                });
                lanes
            }
            State::Delayed => lanes.chain([dying]).collect(),
            State::Reserved => {
                lanes.chain([dying, (LineName::SideLine(SideLine::Leases), &self.leases)]).collect()
            }
            State::Dead => {
                let expiring = (LineName::SideLine(SideLine::Expiring), &self.expiring);
                let held = self
                    .held
                    .iter()
                    .map(|held| (LineName::SideLine(SideLine::HeldExpiring), &held.expiring));
                let dead = (LineName::MainLine(MainLine::Dead), &self.dead);
                [dying, expiring].into_iter().chain(held).chain([dead]).collect()
            }
            State::Held => {
                let held = self.held.iter();
                held.map(|held| (LineName::MainLine(MainLine::Held), &held.jobs)).collect()
            }
            State::Done => vec![(LineName::MainLine(MainLine::Done), &self.done)],
        }
    }
}

/// A line, and where in it to begin.
struct LineFrom<'s> {
    line: LineName,
    jobs: &'s Buckets,
    start: Start,
}

/// To continue after a job: in its own line start after it; in earlier lines after its time; in
/// later lines at its time. Ready jobs are listed line by line: for them, earlier lines are
/// skipped, and later lines start at their first job.
fn begun<'s>(
    lines: Vec<(LineName, &'s Buckets)>,
    state: State,
    begin: Begin,
) -> impl Iterator<Item = LineFrom<'s>> + 's {
    let mut is_passed = false;
    lines.into_iter().filter_map(move |(line, jobs)| {
        let start = match begin {
            Begin::At(time) => Start::At(time),
            Begin::Behind(position) if position.line == line => {
                is_passed = true;
                Start::Behind(position.slot, position.bucket)
            }
            Begin::Behind(_) if state == State::Ready && !is_passed => return None,
            Begin::Behind(_) if state == State::Ready => Start::FIRST,
            Begin::Behind(position) if is_passed => Start::At(position.time),
            Begin::Behind(position) => Start::After(position.time),
        };
        Some(LineFrom { line, jobs, start })
    })
}

type Ordered<'l> = Box<dyn Iterator<Item = (Time, Slot)> + 'l>;

fn boxed<'l>(line: impl Iterator<Item = (Time, Slot)> + 'l) -> Ordered<'l> {
    Box::new(line)
}

/// Merges lines, each sorted by time, into one order. At equal times, an earlier line comes first.
/// O(log lines) a step, and O(lines) before the first.
fn merged<'l>(mut lines: Vec<Ordered<'l>>) -> Box<dyn Iterator<Item = Slot> + 'l> {
    let mut first_of_lines = BinaryHeap::with_capacity(lines.len());
    // The lines whose next job isn't known: at first all, then the one whose job was returned last.
    let mut unknown = 0..lines.len();
    Box::new(std::iter::from_fn(move || {
        for line in unknown.clone() {
            let next = lines.get_mut(line).and_then(Iterator::next);
            first_of_lines.extend(next.map(|(time, slot)| Reverse((time, line, slot))));
        }
        let Reverse((_, line, slot)) = first_of_lines.pop()?;
        unknown = line..line + 1;
        Some(slot)
    }))
}
