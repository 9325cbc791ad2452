//! A worker at work: its parts, its start and its end.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::FutureExt;
use tokio::sync::{mpsc, OwnedSemaphorePermit};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::commands::Add;
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::replies::Delivery;
use crate::seam::{within, Connector};
use crate::worker::builder::{After, Before, Ended, Handler, Worker};
use crate::worker::fetching::{sources, Source};
use crate::worker::hands::{Hand, Hands};
use crate::worker::link::{ask, Link};
use crate::worker::outcomes::{Failure, Settlement};
use crate::worker::renewing;
use crate::worker::running::RunningJob;
use crate::worker::settling::Settler;

/// After the grace time, for the last words to the server.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// What all parts of a worker share.
struct Shift {
    connector: Arc<dyn Connector>,
    handler: Handler,
    before: Vec<Before>,
    after: Vec<After>,
    ttr: Duration,
    /// Over a connection for what handlers ask, with the jobs in hand.
    queues: Vec<(Queue, Arc<Hands>)>,
    settlements: mpsc::UnboundedSender<Settlement>,
    stop: CancellationToken,
    /// No handler goes on behind the worker's end.
    ended: CancellationToken,
}

impl Worker {
    pub(super) async fn serve_until(
        self,
        stop: CancellationToken,
        hurry: CancellationToken,
    ) -> Result<()> {
        let is_cluster = self.connector.is_cluster();
        let sources = sources(&self.queues, self.concurrency, is_cluster)?;
        let (settlements, coming) = mpsc::unbounded_channel();
        let grace = self.grace;
        let schedules = self.schedules;
        let control = Link::over(&self.connector);
        let queues = self.queues.iter().map(|(queue, _)| queue.over(control.clone()));
        let shift = Arc::new(Shift {
            queues: queues.map(|queue| (queue, Arc::new(Hands::new()))).collect(),
            connector: self.connector,
            handler: self.handler,
            before: self.before,
            after: self.after,
            ttr: self.ttr,
            settlements,
            stop,
            ended: CancellationToken::new(),
        });
        let _end = shift.ended.clone().drop_guard();
        let closing = CancellationToken::new();
        let settler = Settler { link: Link::over(&shift.connector), is_cluster };
        let mut settling = tokio::spawn(settler.run(coming, closing.clone()));
        let mut keeping = shift.keeping();

        let worked = tokio::select! {
            worked = shift.clone().work(sources, schedules) => worked,
            failed = &mut settling => failed.unwrap_or_else(panicked),
            failed = keeping.join_next() => failed.map_or(Ok(()), |ended| ended.unwrap_or_else(panicked)),
        };
        shift.stop.cancel();
        shift.finish(grace, &hurry).await;
        closing.cancel();
        if !settling.is_finished() {
            let said = tokio::time::timeout(LAST_WORDS, &mut settling).await;
            settling.abort();
            if let Ok(Ok(Err(error))) = said {
                return worked.and(Err(error));
            }
        }
        worked
    }
}

fn panicked(_: tokio::task::JoinError) -> Result<()> {
    Err(Error::Misuse("a part of the worker has ended by a panic"))
}

impl Shift {
    /// The tasks that keep leases.
    fn keeping(&self) -> JoinSet<Result<()>> {
        let mut keeping = JoinSet::new();
        let all = self.queues.iter().map(|(_, hands)| hands.clone()).collect();
        keeping.spawn(renewing::watch(all, self.ttr));
        for (queue, hands) in &self.queues {
            let queue = queue.over(Link::over(&self.connector));
            keeping.spawn(renewing::keep(queue, hands.clone(), self.ttr));
        }
        keeping
    }

    /// Takes jobs until it is told to stop, or an error doesn't pass.
    async fn work(
        self: Arc<Self>,
        sources: Vec<Source>,
        schedules: Vec<(Queue, crate::NewJob)>,
    ) -> Result<()> {
        let link = Link::over(&self.connector);
        for (queue, job) in &schedules {
            let queue = queue.over(link.clone());
            ask(|| Add::of(&queue, job), || self.stop.is_cancelled()).await?;
        }
        let mut fetching = JoinSet::new();
        for source in sources {
            fetching.spawn(self.clone().fetch(source));
        }
        // Those that have a POP under way when it is told to stop hear of what was taken.
        let fetched = async {
            while let Some(ended) = fetching.join_next().await {
                ended.unwrap_or_else(panicked)?;
            }
            Ok(())
        };
        let too_late = async {
            self.stop.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            ended = fetched => ended,
            () = too_late => Ok(()),
        }
    }

    async fn fetch(self: Arc<Self>, mut source: Source) -> Result<()> {
        let link = Link::over(&self.connector);
        let waits = (renewing::interval(self.ttr), self.ttr);
        while !self.stop.is_cancelled() {
            let mut places = tokio::select! {
                () = self.stop.cancelled() => return Ok(()),
                places = source.places() => places?,
            };
            let order = source.order();
            let count = places.num_permits();
            let asked = Instant::now();
            let take = || source.take(&order, &link, count, waits);
            let taken = ask(|| Box::pin(take()), || self.stop.is_cancelled()).await?;
            for delivery in taken.unwrap_or_default() {
                let Some((at, delivery)) = source.told(delivery) else { continue };
                self.begin(at, delivery, asked + self.ttr, places.split(1));
            }
        }
        Ok(())
    }

    fn begin(
        self: &Arc<Self>,
        at: usize,
        delivery: Delivery,
        good_until: Instant,
        place: Option<OwnedSemaphorePermit>,
    ) {
        let Some((queue, hands)) = self.queues.get(at) else { return };
        if self.stop.is_cancelled() {
            return self.settle(Settlement::unbegun(queue, &delivery));
        }
        let job = RunningJob::new(delivery, queue.clone(), self.ttr);
        let hand = Arc::new(Hand::new(job.clone(), good_until));
        let number = hands.take(hand);
        let (shift, hands) = (self.clone(), hands.clone());
        let ended = self.ended.clone();
        tokio::spawn(ended.run_until_cancelled_owned(async move {
            let told = shift.worked(job.clone()).await;
            hands.let_go(number);
            drop(place);
            let is_lost =
                job.lost().is_cancelled() || matches!(&told, Err(failure) if failure.is_lost());
            if is_lost {
                tracing::info!("{}: lost, attempt {}", job.id(), job.attempt());
            } else {
                shift.settle(Settlement::of(job.queue(), job.delivery(), told));
            }
        }));
    }

    fn settle(&self, settlement: Settlement) {
        // An error would be that the worker has ended.
        let _ = self.settlements.send(settlement);
    }

    /// The handler between its hooks. A panic is a failure.
    async fn worked(&self, job: RunningJob) -> Ended {
        let work = AssertUnwindSafe(self.handled(job.clone())).catch_unwind();
        let ended = traced(
            &job,
            work.map(|ended| ended.unwrap_or_else(|_| Err(Failure::retry("panicked")))),
        )
        .await;
        for hook in &self.after {
            hook(&job, ended.as_ref().err());
        }
        ended
    }

    async fn handled(&self, job: RunningJob) -> Ended {
        for hook in &self.before {
            hook(&job)?;
        }
        (self.handler)(job).await
    }

    /// The jobs in hand may end within the grace time. The others go back, unbegun.
    async fn finish(&self, grace: Duration, hurry: &CancellationToken) {
        let ended = async {
            for (_, hands) in &self.queues {
                hands.none().await;
            }
        };
        tokio::select! {
            _ = within(grace, ended) => {}
            () = hurry.cancelled() => {}
        }
        for (queue, hands) in &self.queues {
            for hand in hands.kept() {
                hand.lose();
                self.settle(Settlement::unbegun(queue, hand.job.delivery()));
            }
        }
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
