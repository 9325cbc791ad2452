//! What a worker is told before it begins.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio_util::sync::CancellationToken;

use crate::commands::NewJob;
use crate::errors::{Error, Result};
use crate::queue::Queue;
use crate::seam::Connector;
use crate::topic::Topic;
use crate::worker::outcomes::{Done, Failure, Returned};
use crate::worker::running::RunningJob;

pub(super) type Ended = std::result::Result<Done, Failure>;
pub(super) type Handler = Arc<dyn Fn(RunningJob) -> BoxFuture<'static, Ended> + Send + Sync>;
pub(super) type Before = Arc<dyn Fn(&RunningJob) -> std::result::Result<(), Failure> + Send + Sync>;
pub(super) type After = Arc<dyn Fn(&RunningJob, Option<&Failure>) + Send + Sync>;

/// Takes the jobs of queues and runs a handler for each. What the handler returns is the job's
/// result, `()` is none; what it fails with gives the job back for another attempt: see [`Done`] and
/// [`Failure`].
///
/// It makes connections of its own by the connector: one for each queue of another slot, one for the
/// leases of each queue, and two more.
pub struct Worker {
    pub(super) connector: Arc<dyn Connector>,
    pub(super) handler: Handler,
    pub(super) queues: Vec<(Queue, i64)>,
    pub(super) schedules: Vec<(Queue, NewJob)>,
    pub(super) concurrency: usize,
    pub(super) ttr: Duration,
    pub(super) grace: Duration,
    pub(super) before: Vec<Before>,
    pub(super) after: Vec<After>,
}

impl Worker {
    /// A worker with ten places, leases of a minute and a grace time of half a minute.
    pub fn new<F, Fut, R, E>(connector: impl Connector, handler: F) -> Self
    where
        F: Fn(RunningJob) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = std::result::Result<R, E>> + Send + 'static,
        R: Returned,
        E: Into<Failure>,
    {
        let handler = move |job| {
            let work = handler(job);
            async move { work.await.map(Returned::into_done).map_err(Into::into) }.boxed()
        };
        Self {
            connector: Arc::new(connector),
            handler: Arc::new(handler),
            queues: Vec::new(),
            schedules: Vec::new(),
            concurrency: 10,
            ttr: Duration::from_secs(60),
            grace: Duration::from_secs(30),
            before: Vec::new(),
            after: Vec::new(),
        }
    }

    /// Serves this queue, with the weight 1.
    pub fn queue(self, queue: &Queue) -> Self {
        self.weighted(queue, 1)
    }

    /// Serves this queue; of several, each is the first to be asked as often as its weight says, which
    /// is 1 at least.
    pub fn weighted(mut self, queue: &Queue, weight: u32) -> Self {
        self.queues.push((queue.clone(), i64::from(weight.max(1))));
        self
    }

    /// Serves all queues of this topic, and of those before it.
    pub fn topic(self, topic: &Topic) -> Self {
        topic.all_queues().iter().fold(self, |worker, queue| worker.queue(queue))
    }

    /// How many jobs are worked on at the same time.
    pub fn concurrency(mut self, places: usize) -> Self {
        self.concurrency = places;
        self
    }

    /// How soon the job of a worker that died is delivered again; a worker that lives keeps its leases
    /// for as long as it needs.
    pub fn ttr(mut self, ttr: Duration) -> Self {
        self.ttr = ttr;
        self
    }

    /// How long the jobs in hand may go on when the worker is told to stop.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Declares a schedule, by EVERY or CRON. At each start the worker makes sure that the job is
    /// there, with this schedule.
    pub fn schedule(mut self, queue: &Queue, job: NewJob) -> Self {
        self.schedules.push((queue.clone(), job.ensure()));
        self
    }

    /// A hook before each job. What it fails with is a failure of the job.
    pub fn before(
        mut self,
        hook: impl Fn(&RunningJob) -> std::result::Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.before.push(Arc::new(hook));
        self
    }

    /// A hook after each job, with what the handler failed with.
    pub fn after(
        mut self,
        hook: impl Fn(&RunningJob, Option<&Failure>) + Send + Sync + 'static,
    ) -> Self {
        self.after.push(Arc::new(hook));
        self
    }

    /// Works until SIGTERM or SIGINT; the second one ends the grace time. An error that waiting
    /// doesn't mend, such as a wrong password, ends it.
    pub async fn run(self) -> Result<()> {
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let mut signals = Signals::new()?;
        let told = async {
            signals.next().await;
            stop.cancel();
            signals.next().await;
            hurry.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = self.serve_until(stop.clone(), hurry.clone()) => ended,
            () = told => Ok(()),
        }
    }

    /// Works until it is told to stop: it takes no more jobs then, and ends when those in hand are
    /// done, or the grace time is over.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        self.serve_until(stop, CancellationToken::new()).await
    }
}

#[cfg(unix)]
struct Signals(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self> {
        use tokio::signal::unix::{signal, SignalKind};
        let failed = |_| Error::Misuse("signals can't be waited for");
        let terminate = signal(SignalKind::terminate()).map_err(failed)?;
        Ok(Self(terminate, signal(SignalKind::interrupt()).map_err(failed)?))
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.0.recv() => {}
            _ = self.1.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
