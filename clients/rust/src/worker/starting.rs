//! What a worker does when it starts, beside taking jobs: it declares its schedules, and says which
//! queues try again without a pause.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::commands::{Add, NewJob};
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::worker::link::ask;
use crate::worker::outage::{Outage, Patience};

/// How soon a declared schedule is there again after all data was lost.
const AGAIN: Duration = Duration::from_secs(60);

/// Makes sure that a schedule is there: by ENSURE at first, and by NX after each outage and now and
/// then, which leaves alone what a newer program declares. With RUNS only at first: after its last
/// run it would begin anew.
pub(super) async fn declare(
    queue: Queue,
    job: NewJob,
    outage: Arc<Outage>,
    stop: CancellationToken,
) -> Result<()> {
    let mut over = outage.over();
    let mut patience = Patience::new(&outage);
    let id = job.id();
    let ensure = || Add::of(&queue, &job).ensure();
    match ask(&mut patience, ensure, || stop.is_cancelled()).await {
        Err(error @ Error::Full(_)) => {
            tracing::warn!("{:?}: the schedule {id:?} has no room: {error}", queue.name());
        }
        declared => drop(declared?),
    }
    while !job.has("RUNS") {
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            _ = over.changed() => {}
        }
        let add = || Add::of(&queue, &job).nx();
        match ask(&mut patience, add, || stop.is_cancelled()).await {
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
    for queue in queues {
        // Without an answer there is nothing to say.
        let Ok(Some(info)) = queue.info().await else { continue };
        if info.default_backoff_base.is_zero() {
            let name = queue.name();
            tracing::warn!(
                "{name:?}: failed jobs are tried again at once, unless they have a BACKOFF. For one of \
                 a second to ten minutes: DQ.ALTER {name} BACKOFF 1000 600000"
            );
        }
    }
    std::future::pending().await
}
