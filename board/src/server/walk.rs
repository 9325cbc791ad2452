//! Going through all jobs of a state, a batch at a time.
//!
//! DQ.PEEK goes from the first job of a state to the last one. The other way round, it is asked for
//! ever smaller or larger windows of time until one holds a batch: jobs stand in the order of their
//! times, so each job comes once, the newest first, however many there are. Jobs of one millisecond
//! come in the server's order both ways.
//!
//! Ready jobs leave from the front while one looks at them, so these are gone through by DQ.SCAN, in
//! no order.

use redis::Pipeline;

use super::deployment::outcome;
use super::job::Job;
use super::jobs::{reach, Begin, Peeked, Place};
use super::queue::State;
use super::replies::scanned;
use super::{now_ms, Result};

/// How many ready jobs one DQ.SCAN looks for: a page that is full takes all that this found.
const SCAN: usize = 500;
/// The last time there is in DQ.
const TIME_MAX: u64 = 1 << 48;
/// A server's clock may be ahead of ours by so much before the search for the newest jobs takes
/// longer.
const AHEAD_MS: u64 = 60_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they leave their state.
    Oldest,
    /// The other way round. Ready jobs have no such order.
    Newest,
}

/// Where a walk goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    Begin(Begin),
    /// Of DQ.SCAN; 0 is the beginning.
    Cursor(u64),
}

impl Mark {
    pub fn first(state: State) -> Mark {
        match state {
            State::Ready => Mark::Cursor(0),
            _ => Mark::Begin(Begin::First),
        }
    }
}

pub struct Walk<'a> {
    place: &'a Place<'a>,
    state: State,
    order: Order,
    /// `None` at the end.
    pub mark: Option<Mark>,
    size: usize,
    /// How wide the last window was that held a batch: the next one is about as wide.
    width_ms: u64,
}

impl Walk<'_> {
    /// `size`: how many jobs in a batch, where they aren't too large for that.
    pub fn new<'a>(
        place: &'a Place<'a>,
        state: State,
        order: Order,
        mark: Mark,
        size: usize,
    ) -> Walk<'a> {
        let size = size.clamp(1, reach(place.info));
        Walk { place, state, order, mark: Some(mark), size, width_ms: 60_000 }
    }

    /// The next jobs; none at the end.
    pub async fn batch(&mut self) -> Result<Vec<Job>> {
        let (jobs, mark) = match self.mark.take() {
            None => return Ok(Vec::new()),
            Some(Mark::Cursor(cursor)) => self.scan(cursor).await?,
            Some(Mark::Begin(begin)) => {
                let (jobs, next) = match self.order {
                    Order::Oldest => {
                        let peeked = self.place.peek_at_most(self.state, &begin, self.size).await?;
                        (peeked.jobs, peeked.next)
                    }
                    Order::Newest => self.back(&begin).await?,
                };
                (jobs, next.map(Mark::Begin))
            }
        };
        self.mark = mark;
        Ok(jobs)
    }

    /// Cursors may pass many jobs of other states: then there are none, and a mark.
    async fn scan(&self, cursor: u64) -> Result<(Vec<Job>, Option<Mark>)> {
        let mut command = redis::cmd("DQ.SCAN");
        command.arg(self.place.queue).arg(cursor).arg("STATE").arg(self.state.name());
        command.arg("COUNT").arg(SCAN.min(self.size));
        let (next, ids) = scanned(self.place.ask(command).await?)?;
        let jobs = self.place.get(&ids).await?;
        let jobs = jobs.into_iter().filter(|job| job.state == self.state).collect();
        Ok((jobs, (next != 0).then_some(Mark::Cursor(next))))
    }

    /// The jobs before this one, the newest first.
    async fn back(&mut self, begin: &Begin) -> Result<(Vec<Job>, Option<Begin>)> {
        let Some(oldest) = self.oldest().await? else { return Ok((Vec::new(), None)) };
        let mut end = self.end().await?;
        if let Begin::After { time: Some(time), .. } = begin {
            let rest = self.rest_of_millisecond(begin, *time).await?;
            if !rest.is_empty() {
                let next = rest.last().map(Begin::behind);
                return Ok((rest, next));
            }
            end = *time;
        }
        if oldest >= end {
            return Ok((Vec::new(), None));
        }
        let jobs = self.window(oldest, end).await?;
        let next = jobs.last().map(Begin::behind);
        Ok((jobs, next))
    }

    async fn oldest(&self) -> Result<Option<u64>> {
        let first = self.place.peek_at_most(self.state, &Begin::First, 1).await?;
        Ok(first.jobs.first().and_then(Job::time_in_order))
    }

    /// A time behind the newest job.
    async fn end(&self) -> Result<u64> {
        let soon = now_ms().saturating_add(AHEAD_MS);
        let later = self.place.peek_from(self.state, soon, 1).await?;
        Ok(if later.jobs.is_empty() { soon } else { TIME_MAX })
    }

    async fn rest_of_millisecond(&self, begin: &Begin, time: u64) -> Result<Vec<Job>> {
        let peeked = self.place.peek_at_most(self.state, begin, self.size).await?;
        let is_of_it = |job: &Job| job.time_in_order() == Some(time);
        Ok(peeked.jobs.into_iter().take_while(is_of_it).collect())
    }

    /// Some jobs of the time from `oldest` to `end`, the last ones, newest first. At `oldest` there
    /// is one.
    async fn window(&mut self, oldest: u64, end: u64) -> Result<Vec<Job>> {
        let is_before = |job: &Job| job.time_in_order().is_some_and(|time| time < end);
        // None is from `high` on; from `low` on there are too many, or that hasn't been tried.
        let (mut low, mut high) = (oldest, end);
        let mut at = end.saturating_sub(self.width_ms).clamp(oldest, end - 1);
        loop {
            let peeked = self.place.peek_from(self.state, at, self.size).await?;
            let has_all = peeked.next.is_none() || !peeked.jobs.iter().all(is_before);
            let mut jobs: Vec<Job> = peeked.jobs.into_iter().filter(is_before).collect();
            if has_all && jobs.is_empty() {
                if at == oldest {
                    // All have left meanwhile.
                    return Ok(jobs);
                }
                high = at;
                low = if at == low { oldest } else { low };
            } else if has_all || high - at <= 1 {
                // Of one millisecond there may be any number: the others come in the next batch.
                let factor = if jobs.len() < self.size / 2 { 2 } else { 1 };
                self.width_ms = (end - at).saturating_mul(factor);
                jobs.sort_by_key(|job| std::cmp::Reverse(job.time_in_order()));
                return Ok(jobs);
            } else {
                low = at;
            }
            at = low + (high - low) / 2;
        }
    }
}

impl Place<'_> {
    async fn peek_from(&self, state: State, time: u64, size: usize) -> Result<Peeked> {
        self.peek_at_most(state, &Begin::From { time }, size).await
    }

    /// Jobs by their ids; those that have gone are left out.
    pub async fn get(&self, ids: &[Vec<u8>]) -> Result<Vec<Job>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut commands = Pipeline::new();
        ids.iter().for_each(|id| {
            commands.add_command(Job::command(self.queue, id));
        });
        let (_, replies) = self.deployment.ask(self.node.clone(), &mut commands).await?;
        let mut jobs = Vec::with_capacity(ids.len());
        for reply in replies {
            jobs.extend(Job::read(outcome(Some(reply))?)?);
        }
        Ok(jobs)
    }
}
