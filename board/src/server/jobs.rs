//! Pages of a queue's jobs.
//!
//! DQ.PEEK gives them in the order in which they leave their state, and goes on behind the last one
//! of a page, wherever that is: so every job is reached, in order, and each page costs the same.
//! DQ.SCAN finds jobs by their ids, in no order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Pipeline};

use super::deployment::{outcome, Deployment};
use super::filter::{Filter, Needle};
use super::job::Job;
use super::node::Node;
use super::queue::{Info, State};
use super::replies::{array, scanned};
use super::{Result, Trouble};

pub const PAGE: usize = 50;
/// What DQ.PEEK shows at most, less the one that tells whether there are more.
const PEEK_MAX: usize = 999;
/// DQ.PEEK ends before its COUNT when it has shown so many bytes: see [`bytes_of`].
const PEEK_BYTES_MAX: usize = 16 << 20;
/// Both commands send bodies whole: fewer jobs at a time when they are large.
const BYTES_MAX: u64 = 16 << 20;
/// How many jobs one DQ.SCAN looks at, at first and at most.
const LOOK_MIN: usize = PAGE;
const LOOK_MAX: usize = 10_000;
/// A page of few jobs among very many others is shown unfinished after so long.
pub const SEEK_WITHIN: Duration = Duration::from_millis(500);

/// Which server to ask, and about which queue.
pub struct Place<'a> {
    pub deployment: &'a Deployment,
    pub node: Option<Arc<Node>>,
    pub queue: &'a [u8],
    pub info: &'a Info,
}

/// Where a page begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Begin {
    #[default]
    First,
    /// Behind this job, which was at this time in the order of its state.
    After { id: Vec<u8>, time: Option<u64> },
    /// With the first job of this time or a later one.
    From { time: u64 },
}

impl Begin {
    pub fn behind(job: &Job) -> Begin {
        Begin::After { id: job.id.clone(), time: job.time_in_order() }
    }
}

/// A page of jobs in order.
#[derive(Default)]
pub struct Peeked {
    pub jobs: Vec<Job>,
    /// `None` at the end.
    pub next: Option<Begin>,
    /// The job that the page was to begin behind has left, and nothing says where it was: these are
    /// the first ones.
    pub is_anew: bool,
}

/// What DQ.PEEK counts of a job: all that clients wrote.
fn bytes_of(job: &Job) -> usize {
    let others = [&job.reason, &job.group, &job.note, &job.result].into_iter().flatten();
    job.id.len() + job.body.len() + others.map(Vec::len).sum::<usize>()
}

/// How many jobs DQ.PEEK may be asked for, by the size of the queue's jobs.
pub fn reach(info: &Info) -> usize {
    let bytes_a_job = info.memory / info.jobs.max(1);
    usize::try_from(BYTES_MAX / bytes_a_job.max(1)).unwrap_or(PEEK_MAX).clamp(10, PEEK_MAX)
}

pub fn page_size(info: &Info) -> usize {
    reach(info).min(PAGE)
}

impl Place<'_> {
    pub async fn peek(&self, state: State, begin: &Begin) -> Result<Peeked> {
        let size = page_size(self.info);
        match self.peek_at_most(state, begin, size).await {
            Err(trouble) if is_lost(&trouble) => {
                let first = self.peek_at_most(state, &Begin::First, size).await?;
                Ok(Peeked { is_anew: true, ..first })
            }
            peeked => peeked,
        }
    }

    /// The first ones of a state.
    pub async fn first(&self, state: State, many: usize) -> Result<Vec<Job>> {
        Ok(self.peek_at_most(state, &Begin::First, many).await?.jobs)
    }

    pub async fn peek_at_most(&self, state: State, begin: &Begin, size: usize) -> Result<Peeked> {
        let mut command = redis::cmd("DQ.PEEK");
        // One more tells whether there are more.
        command.arg(self.queue).arg("STATE").arg(state.name()).arg("COUNT").arg(size + 1);
        let time = match begin {
            Begin::First => None,
            Begin::From { time } => Some(*time),
            Begin::After { id, time } => {
                command.arg("AFTER").arg(id);
                *time
            }
        };
        if let Some(time) = time {
            command.arg("FROM").arg(time);
        }
        let mut jobs = Vec::new();
        for job in array(self.ask(command).await?)? {
            jobs.extend(Job::read(job)?);
        }
        let bytes: usize = jobs.iter().map(bytes_of).sum();
        let has_more = jobs.len() > size || bytes >= PEEK_BYTES_MAX;
        jobs.truncate(size);
        let next = jobs.last().filter(|_| has_more).map(Begin::behind);
        Ok(Peeked { jobs, next, is_anew: false })
    }

    /// How many jobs of a state are such, and whether all were looked at. Of a state whose order
    /// puts them first, the first other one is the end.
    pub async fn count(&self, state: State, is_such: impl Fn(&Job) -> bool) -> Result<(u64, bool)> {
        let began = Instant::now();
        let (mut many, mut begin) = (0, Begin::First);
        loop {
            let peeked = self.peek_at_most(state, &begin, reach(self.info)).await?;
            let such = peeked.jobs.iter().filter(|job| is_such(job)).count();
            many += such as u64;
            let is_end = state == State::Dead && such < peeked.jobs.len();
            match peeked.next {
                Some(_) if is_end => return Ok((many, true)),
                Some(_) if began.elapsed() > SEEK_WITHIN => return Ok((many, false)),
                Some(next) => begin = next,
                None => return Ok((many, true)),
            }
        }
    }

    /// A page of what is sought, from a cursor on.
    pub async fn seek(&self, sought: &Sought, from: u64) -> Result<Found> {
        match sought {
            Sought::Group(group) => {
                return self.look_at_each(from, |job| job.group.as_ref() == Some(group)).await
            }
            Sought::Text(text) => {
                let filter = Filter { find: Needle::new(text), why: None };
                return self.look_at_each(from, |job| filter.fits(job)).await;
            }
            Sought::Ids(_) | Sought::Schedules => {}
        }
        let (ids, next) = self.seek_ids(sought, from, page_size(self.info)).await?;
        Ok(Found { jobs: self.get(&ids).await?, next, looked: 0 })
    }

    /// Looks at the jobs themselves, a page or more of them at a time.
    async fn look_at_each(&self, from: u64, fits: impl Fn(&Job) -> bool) -> Result<Found> {
        let (size, most) = (page_size(self.info), reach(self.info));
        let (mut jobs, mut cursor, mut looked) = (Vec::new(), from, 0);
        let began = Instant::now();
        loop {
            // Near the end of a page few, so that it doesn't get too many.
            let look = if jobs.is_empty() { most } else { size };
            let (next, ids) = scanned(self.ask(all(self.queue, cursor, look)).await?)?;
            looked += ids.len() as u64;
            let read = self.get(&ids).await?;
            jobs.extend(read.into_iter().filter(&fits));
            cursor = next;
            if cursor == 0 || jobs.len() >= size || began.elapsed() > SEEK_WITHIN {
                return Ok(Found { jobs, next: (cursor != 0).then_some(cursor), looked });
            }
        }
    }

    /// Looks at ever more jobs while there is nothing to be found; at few at a time when there is,
    /// so that a page doesn't get too many.
    async fn seek_ids(
        &self,
        sought: &Sought,
        from: u64,
        size: usize,
    ) -> Result<(Vec<Vec<u8>>, Option<u64>)> {
        let (mut ids, mut cursor, mut look) = (Vec::new(), from, LOOK_MIN.min(size));
        let began = Instant::now();
        loop {
            let (next, found) = scanned(self.ask(sought.command(self.queue, cursor, look)).await?)?;
            if found.len() + ids.len() > size && look > LOOK_MIN.min(size) {
                look = LOOK_MIN.min(size);
                continue;
            }
            if found.is_empty() {
                look = (look * 4).min(LOOK_MAX);
            }
            ids.extend(found);
            cursor = next;
            if cursor == 0 || ids.len() >= size || began.elapsed() > SEEK_WITHIN {
                return Ok((ids, (cursor != 0).then_some(cursor)));
            }
        }
    }

    pub async fn ask(&self, command: Cmd) -> Result<redis::Value> {
        ask_one(self.deployment, self.node.clone(), command).await
    }
}

/// Of ready jobs only the id says where a page begins, and workers take from the front.
fn is_lost(trouble: &Trouble) -> bool {
    matches!(trouble, Trouble::Refused(words) if words.starts_with("ERR AFTER names no job"))
}

/// Jobs in any state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sought {
    /// Those whose ids match a pattern.
    Ids(Vec<u8>),
    /// Those that have a schedule.
    Schedules,
    /// Those of a group. No command finds them: each job is looked at.
    Group(Vec<u8>),
    /// Those in which a text is found: of these, too, each is looked at.
    Text(Vec<u8>),
}

fn all(queue: &[u8], cursor: u64, look: usize) -> Cmd {
    let mut command = redis::cmd("DQ.SCAN");
    command.arg(queue).arg(cursor).arg("COUNT").arg(look);
    command
}

impl Sought {
    /// Ids that have this in them.
    pub fn containing(part: &[u8]) -> Sought {
        let mut pattern = vec![b'*'];
        for byte in part {
            if b"*?[]\\^-".contains(byte) {
                pattern.push(b'\\');
            }
            pattern.push(*byte);
        }
        pattern.push(b'*');
        Sought::Ids(pattern)
    }

    /// Whether this is more than an id: something in it stands for other bytes.
    pub fn is_pattern(typed: &[u8]) -> bool {
        typed.iter().any(|byte| b"*?[".contains(byte))
    }

    fn command(&self, queue: &[u8], cursor: u64, look: usize) -> Cmd {
        let mut command = all(queue, cursor, look);
        match self {
            Sought::Ids(pattern) => command.arg("MATCH").arg(pattern),
            Sought::Schedules => command.arg("SCHEDULED"),
            Sought::Group(_) | Sought::Text(_) => &mut command,
        };
        command
    }
}

/// Jobs in no order, and the cursor of those behind them; `None` at the end.
pub struct Found {
    pub jobs: Vec<Job>,
    pub next: Option<u64>,
    /// Jobs that were read for it.
    pub looked: u64,
}

pub async fn ask_one(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    command: Cmd,
) -> Result<redis::Value> {
    let mut commands = Pipeline::new();
    commands.add_command(command);
    let (_, replies) = deployment.ask(node, &mut commands).await?;
    outcome(replies.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_of_large_bodies_are_peeked_at_in_smaller_parts() {
        let queue = |jobs, memory| Info { jobs, memory, ..Info::default() };
        assert_eq!(reach(&queue(0, 500)), 999);
        assert_eq!(reach(&queue(1_000_000, 100_000_000)), 999);
        assert_eq!(reach(&queue(1_000, 1_000 << 20)), 16);
        assert_eq!(reach(&queue(1, 512 << 20)), 10);
        assert_eq!(page_size(&queue(1_000, 1_000 << 20)), 16);
    }

    #[test]
    fn a_search_for_typed_text_escapes_its_wildcards() {
        assert_eq!(Sought::containing(b"a*[b]\\"), Sought::Ids(b"*a\\*\\[b\\]\\\\*".into()));
        assert!(Sought::is_pattern(b"customer:7:*") && Sought::is_pattern(b"job-?"));
        assert!(!Sought::is_pattern(b"customer:7"));
    }
}
