//! A job in its handler. Whatever that does, its place is free again, and the server learns the
//! outcome.

use std::future::{poll_fn, Future};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::FutureExt;
use tokio::sync::OwnedSemaphorePermit;

use crate::replies::Delivery;
use crate::worker::builder::Ended;
use crate::worker::hands::Hand;
use crate::worker::outcomes::{panic_text, Failure};
use crate::worker::renewing::interval;
use crate::worker::running::RunningJob;
use crate::worker::serving::{Served, Shift};
use crate::worker::settlement::Settlement;

/// Settles the job when it is dropped: also by a panic that nothing else has caught.
struct Ending {
    shift: Arc<Shift>,
    at: usize,
    number: u64,
    job: RunningJob,
    outcome: Option<Ended>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Ending {
    fn says(&mut self, ended: Ended) {
        self.outcome = Some(ended);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(Served { hands, slot, .. }) = self.shift.queues.get(self.at) else { return };
        let job = &self.job;
        let outcome = self.outcome.take().unwrap_or_else(|| Err(Failure::retry("panicked")));
        let is_lost =
            job.lost().is_cancelled() || matches!(&outcome, Err(failure) if failure.is_lost());
        if is_lost {
            tracing::info!(
                "{:?} {:?}: lost, attempt {}",
                job.queue().name(),
                job.id(),
                job.attempt()
            );
            hands.let_go(&[self.number]);
        } else {
            let mut settlement = Settlement::of(job.queue(), job.delivery(), outcome);
            settlement.hand = Some((hands.clone(), self.number));
            slot.settle(settlement);
        }
        // Only now: the end of a worker waits for it.
        hands.ended(self.number);
    }
}

impl Shift {
    pub(super) fn begin(
        self: &Arc<Self>,
        at: usize,
        delivery: Delivery,
        good_until: Instant,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let Some(Served { queue, hands, slot, .. }) = self.queues.get(at) else { return };
        if self.stop.is_cancelled() {
            return slot.settle(Settlement::unbegun(queue, &delivery));
        }
        let job = RunningJob::new(delivery, queue.clone(), self.ttr, slot.outage.clone());
        let number = hands.take(Hand::new(job.clone(), good_until));
        let shift = self.clone();
        let mut ending =
            Ending { shift, at, number, job: job.clone(), outcome: None, _place: place };
        let ended = self.ended.clone();
        tokio::spawn(ended.run_until_cancelled_owned(async move {
            let ended = ending.shift.worked(job).await;
            ending.says(ended);
        }));
    }

    /// The handler between its hooks. A panic is a failure.
    async fn worked(&self, job: RunningJob) -> Ended {
        let work = AssertUnwindSafe(self.handled(job.clone())).catch_unwind();
        let work =
            work.map(|ended| ended.unwrap_or_else(|panic| Err(Failure::retry(panic_text(panic)))));
        let ended = traced(&job, self.timed(&job, work)).await;
        let failed = ended.as_ref().err();
        for hook in &self.hooks.after {
            survived(&job, || hook(&job, failed));
        }
        if let Some(failure) = failed.filter(|failure| !failure.is_lost()) {
            for hook in &self.hooks.on_error {
                survived(&job, || hook(&job, failure));
            }
        }
        ended
    }

    async fn handled(&self, job: RunningJob) -> Ended {
        for hook in &self.hooks.before {
            hook(&job)?;
        }
        (self.handler)(job).await
    }

    /// Names a handler that doesn't let the others, and what keeps the leases, go on.
    async fn timed(&self, job: &RunningJob, work: impl Future<Output = Ended>) -> Ended {
        let limit = interval(self.ttr);
        let mut work = pin!(work);
        poll_fn(|context| {
            let begun = Instant::now();
            let polled = work.as_mut().poll(context);
            let took = begun.elapsed();
            if took >= limit {
                let (queue, id) = (job.queue().name(), job.id());
                tracing::warn!(
                    "{queue:?} {id:?}: its handler has blocked a thread of the runtime for {took:.1?}. \
                     Leases may run out meanwhile: use tokio::task::spawn_blocking"
                );
            }
            polled
        })
        .await
    }
}

/// A hook that panics changes nothing.
fn survived(job: &RunningJob, hook: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(hook)) {
        // Outside of the log line, which may not be wanted: the value may panic when it is dropped.
        let text = panic_text(panic);
        tracing::warn!("{:?} {:?}: a hook has {text}", job.queue().name(), job.id());
    }
}

#[cfg(feature = "opentelemetry")]
async fn traced(job: &RunningJob, work: impl Future<Output = Ended>) -> Ended {
    if job.queue().is_traced {
        crate::spans::process(job.delivery(), work).await
    } else {
        work.await
    }
}

#[cfg(not(feature = "opentelemetry"))]
async fn traced(_: &RunningJob, work: impl Future<Output = Ended>) -> Ended {
    work.await
}
