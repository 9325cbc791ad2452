//! Pages of a queue's jobs.
//!
//! DQ.PEEK gives them in the order in which they leave their state, from the first, at most a thousand.
//! DQ.SCAN reaches every job, but in no order. So the first thousand are paged in order, and behind
//! them, or on demand, all of them in no order.

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::{Cmd, Pipeline};

use super::deployment::{outcome, Deployment};
use super::job::Job;
use super::node::Node;
use super::queue::{Info, State};
use super::replies::{array, scanned};
use super::Result;

pub const PAGE: usize = 50;
/// What DQ.PEEK shows at most.
const PEEK_MAX: usize = 1_000;
/// Both commands send bodies whole: fewer jobs at a time when they are large.
const BYTES_MAX: u64 = 16 << 20;
/// How many jobs one DQ.SCAN looks at, at first and at most.
const LOOK_MIN: usize = PAGE;
const LOOK_MAX: usize = 10_000;
/// A page of few jobs among very many others is shown unfinished after so long.
const SCAN_WITHIN: Duration = Duration::from_millis(500);

/// Jobs in order, and whether DQ.PEEK can show the ones behind them.
pub struct Peeked {
    pub jobs: Vec<Job>,
    pub has_more: bool,
}

/// How many jobs DQ.PEEK may be asked for, by the size of the queue's jobs.
pub fn reach(info: &Info) -> usize {
    let bytes_a_job = info.memory / info.jobs.max(1);
    usize::try_from(BYTES_MAX / bytes_a_job.max(1)).unwrap_or(PEEK_MAX).clamp(10, PEEK_MAX)
}

fn page_size(info: &Info) -> usize {
    reach(info).min(PAGE)
}

/// Page 0 is the first.
pub async fn peek(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
    info: &Info,
    state: State,
    page: usize,
) -> Result<Peeked> {
    let size = page_size(info);
    let start = page.saturating_mul(size).min(PEEK_MAX);
    let end = (start + size).min(reach(info));
    if start >= end {
        return Ok(Peeked { jobs: Vec::new(), has_more: false });
    }
    let mut command = redis::cmd("DQ.PEEK");
    command.arg(queue).arg("STATE").arg(state.name()).arg("COUNT").arg(end);
    let reply = ask_one(deployment, node, command).await?;
    let jobs: Vec<_> = array(reply)?.into_iter().skip(start).collect();
    let is_whole = jobs.len() == end - start;
    let jobs = jobs.into_iter().filter_map(|job| Job::read(job).transpose()).collect::<Result<_>>()?;
    Ok(Peeked { jobs, has_more: is_whole && end < reach(info) })
}

/// The first jobs of a state, for counting: no more than [`reach`].
pub async fn first(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
    state: State,
    many: u64,
) -> Result<Vec<Job>> {
    let mut command = redis::cmd("DQ.PEEK");
    command.arg(queue).arg("STATE").arg(state.name()).arg("COUNT").arg(many.max(1));
    let jobs = array(ask_one(deployment, node, command).await?)?;
    jobs.into_iter().filter_map(|job| Job::read(job).transpose()).collect()
}

/// Jobs in no order, and the cursor of those behind them; `None` at the end.
pub struct Scanned {
    pub jobs: Vec<Job>,
    pub next: Option<u64>,
}

pub async fn scan(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
    info: &Info,
    state: State,
    from: u64,
) -> Result<Scanned> {
    let (ids, next) = scan_ids(deployment, node.clone(), queue, state, from, page_size(info)).await?;
    let mut commands = Pipeline::new();
    ids.iter().for_each(|id| {
        commands.add_command(Job::command(queue, id));
    });
    let mut jobs = Vec::with_capacity(ids.len());
    if !ids.is_empty() {
        let (_, replies) = deployment.ask(node, &mut commands).await?;
        for reply in replies {
            // One that has left its state meanwhile is on its way through another page.
            jobs.extend(Job::read(outcome(Some(reply))?)?.filter(|job| job.state == state));
        }
    }
    Ok(Scanned { jobs, next })
}

/// Looks at ever more places while there is nothing to be found; at few at a time when there is, so
/// that a page doesn't get too many.
async fn scan_ids(
    deployment: &Deployment,
    node: Option<Arc<Node>>,
    queue: &[u8],
    state: State,
    from: u64,
    size: usize,
) -> Result<(Vec<Vec<u8>>, Option<u64>)> {
    let (mut ids, mut cursor, mut look) = (Vec::new(), from, LOOK_MIN.min(size));
    let began = Instant::now();
    loop {
        let mut command = redis::cmd("DQ.SCAN");
        command.arg(queue).arg(cursor).arg("STATE").arg(state.name()).arg("COUNT").arg(look);
        let (next, found) = scanned(ask_one(deployment, node.clone(), command).await?)?;
        if found.len() + ids.len() > size && look > LOOK_MIN.min(size) {
            look = LOOK_MIN.min(size);
            continue;
        }
        if found.is_empty() {
            look = (look * 4).min(LOOK_MAX);
        }
        ids.extend(found);
        cursor = next;
        if cursor == 0 || ids.len() >= size || began.elapsed() > SCAN_WITHIN {
            return Ok((ids, (cursor != 0).then_some(cursor)));
        }
    }
}

pub async fn ask_one(deployment: &Deployment, node: Option<Arc<Node>>, command: Cmd) -> Result<redis::Value> {
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
        assert_eq!(reach(&queue(0, 500)), 1_000);
        assert_eq!(reach(&queue(1_000_000, 100_000_000)), 1_000);
        assert_eq!(reach(&queue(1_000, 1_000 << 20)), 16);
        assert_eq!(reach(&queue(1, 512 << 20)), 10);
        assert_eq!(page_size(&queue(1_000, 1_000 << 20)), 16);
    }
}
