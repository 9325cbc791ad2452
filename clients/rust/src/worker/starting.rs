//! What a worker does when it starts, beside taking jobs: it declares its schedules, and says which
//! queues try again without a pause.

use std::sync::Arc;
use std::time::Duration;

use crate::commands::{Add, NewJob};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::worker::link::ask;
use crate::worker::outage::{Outage, Patience};

/// How soon a declared schedule is there again after all data was lost.
pub(super) const AGAIN: Duration = Duration::from_secs(60);

/// Makes sure that a schedule is there: by ENSURE at first, and by NX after each outage and now and
/// then, which leaves alone what a newer program declares. With RUNS only at first: after its last
/// run it would begin again. It ends with the worker.
pub(super) async fn declare(
    queue: Queue,
    job: NewJob,
    outage: Arc<Outage>,
    again: Duration,
) -> Result<()> {
    let mut over = outage.over();
    let mut patience = Patience::new(&outage);
    let id = job.id();
    let ensure = || Add::of(&queue, &job).ensure();
    match ask(&mut patience, ensure, || false).await {
        Err(error @ Error::Full(_)) => {
            tracing::warn!("{:?}: the schedule {id:?} has no room: {error}", queue.name());
        }
        declared => drop(declared?),
    }
    while !job.has("RUNS") {
        tokio::select! {
            () = tokio::time::sleep(again) => {}
            _ = over.changed() => {}
        }
        let add = || Add::of(&queue, &job).nx();
        match ask(&mut patience, add, || false).await {
            Ok(Some(answer)) if answer.reply.is_added() => {
                tracing::warn!(
                    "{:?}: the schedule {id:?} was gone, and is there again",
                    queue.name()
                );
            }
            Ok(_) => {}
            // Such as a schedule that is over.
            Err(error) => tracing::debug!("{:?}: the schedule {id:?}: {error}", queue.name()),
        }
    }
    std::future::pending().await
}

/// Names the queues whose jobs use up their attempts in a moment.
pub(super) async fn notice(queues: Vec<Queue>) -> Result<()> {
    let mut names = Vec::new();
    for queue in &queues {
        // Without an answer there is nothing to say.
        let Ok(Some(info)) = queue.info().await else { continue };
        if info.default_backoff_base.is_zero() {
            names.push(queue.name());
        }
    }
    if let Some(first) = names.first() {
        tracing::warn!(
            "{names:?}: failed jobs are tried again at once, unless they have a BACKOFF. For one of a \
             second to ten minutes: DQ.ALTER {first:?} BACKOFF 1000 600000"
        );
    }
    std::future::pending().await
}

#[cfg(all(test, feature = "testing"))]
mod tests {
    use super::*;
    use crate::seam::Connector;

    #[tokio::test]
    async fn a_schedule_that_is_gone_comes_back_and_one_with_runs_does_not() {
        let server = crate::testing::Server::start().await.unwrap();
        let client = redis::Client::open(server.url()).unwrap();
        let queue = Queue::shared(client.connect().await.unwrap(), "q");
        let hour = Duration::from_secs(3600);
        let outage = Outage::new(String::new());
        let job = |id| NewJob::new(id, ()).every(hour);
        let (soon, never) = (Duration::from_millis(20), hour);
        for job in [job("tick"), job("runs").runs(3)] {
            tokio::spawn(declare(queue.clone(), job, outage.clone(), soon));
        }
        tokio::spawn(declare(queue.clone(), job("other"), outage.clone(), never));
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        while queue.len().await.unwrap() < 3 {
            assert!(std::time::Instant::now() < deadline);
            tokio::time::sleep(soon).await;
        }
        queue.del(["tick", "runs", "other"]).await.unwrap();
        while queue.get("tick").await.unwrap().is_none() {
            assert!(std::time::Instant::now() < deadline);
            tokio::time::sleep(soon).await;
        }
        // A newer program's schedule stays.
        queue.add("tick", ()).every(2 * hour).replace().await.unwrap();
        let mut patience = Patience::new(&outage);
        patience.failed(&Error::Misuse("an outage"));
        patience.answered();
        while queue.get("other").await.unwrap().is_none() {
            assert!(std::time::Instant::now() < deadline);
            tokio::time::sleep(soon).await;
        }
        let tick = queue.get("tick").await.unwrap().unwrap();
        assert_eq!(tick.schedule.clone().unwrap().every, Some(2 * hour));
        assert!(queue.get("runs").await.unwrap().is_none());
    }
}
