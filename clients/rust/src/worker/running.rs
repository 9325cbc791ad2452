//! A job that a handler works on.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::codec::Body;
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::{Delivery, Dep};
use crate::words::Text;
use crate::worker::link::ask;
use crate::worker::outage::{Outage, Patience};

/// What a handler gets. Clones are the same job.
#[derive(Clone)]
pub struct RunningJob(Arc<Running>);

struct Running {
    delivery: Delivery,
    queue: Queue,
    ttr: Duration,
    lost: CancellationToken,
    outage: Arc<Outage>,
}

impl RunningJob {
    pub(super) fn new(
        delivery: Delivery,
        queue: Queue,
        ttr: Duration,
        outage: Arc<Outage>,
    ) -> Self {
        Self(Arc::new(Running { delivery, queue, ttr, lost: CancellationToken::new(), outage }))
    }

    /// The queue that it came from, over a connection of the worker.
    pub fn queue(&self) -> &Queue {
        &self.0.queue
    }

    /// Its id.
    pub fn id(&self) -> &Text {
        &self.0.delivery.id
    }

    /// The number of this attempt, from 1.
    pub fn attempt(&self) -> i64 {
        self.0.delivery.attempt
    }

    /// When it became due. With the id it names a run of a schedule, the same at each attempt.
    pub fn due(&self) -> Option<SystemTime> {
        self.0.delivery.due
    }

    /// The body by the codec of the queue. What can't be read is a failure of the job, by `?`.
    pub fn body<T: DeserializeOwned>(&self) -> Result<T> {
        self.0.delivery.body()
    }

    /// The job as it was taken.
    pub fn delivery(&self) -> &Delivery {
        &self.0.delivery
    }

    /// Cancelled when the job isn't this worker's any more: it was deleted or replaced, its lease
    /// could not be renewed, or the grace time is over. The handler should end then:
    /// `job.lost().run_until_cancelled(work).await`. Nothing is said of the job any more.
    pub fn lost(&self) -> &CancellationToken {
        &self.0.lost
    }

    /// [`Error::LeaseLost`] when the job isn't this worker's any more: for between two steps.
    pub fn check(&self) -> Result<()> {
        if self.0.lost.is_cancelled() {
            Err(Error::LeaseLost)
        } else {
            Ok(())
        }
    }

    /// The job goes on with this body, at the next attempt too; `note` says how far it is. Fails with
    /// [`Error::LeaseLost`] when the job isn't this worker's any more.
    pub async fn checkpoint(&self, body: impl Body, note: impl AsRef<[u8]>) -> Result<()> {
        let body = crate::codec::Raw(body.encode(self.0.queue.codec)?);
        let Running { delivery, queue, ttr, .. } = &*self.0;
        self.check()?;
        let touch = || {
            let (id, lease) = (&delivery.id, delivery);
            queue.touch(id, lease).ttr(*ttr).body(crate::codec::Raw(&body.0)).note(&note)
        };
        let mut patience = Patience::new(&self.0.outage);
        let touched = ask(&mut patience, touch, || self.0.lost.is_cancelled()).await?;
        if touched.is_some_and(|answer| answer.reply) {
            return Ok(());
        }
        self.0.lost.cancel();
        Err(Error::LeaseLost)
    }

    /// The jobs that this one has waited for, and what came of them, in the order in which they were
    /// named.
    pub async fn deps(&self) -> Result<Vec<Dep>> {
        let Running { delivery, queue, lost, .. } = &*self.0;
        let mut patience = Patience::new(&self.0.outage);
        let mut found = Vec::new();
        let mut place = Some(0);
        while let Some(from) = place {
            let deps = || queue.deps(&delivery.id).from(from);
            let page = ask(&mut patience, deps, || lost.is_cancelled()).await?;
            let page = page.and_then(|answer| answer.reply).ok_or(Error::LeaseLost)?;
            found.extend(page.items);
            place = page.next;
        }
        Ok(found)
    }
}
