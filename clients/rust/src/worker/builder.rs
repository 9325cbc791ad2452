//! What a worker is told before it begins.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use tokio_util::sync::CancellationToken;

use crate::commands::NewJob;
use crate::errors::Result;
use crate::queue::Queue;
use crate::seam::Connector;
use crate::topic::Topic;
use crate::worker::outcomes::{Done, Failure, Returned};
use crate::worker::running::RunningJob;
use crate::worker::signals::Signals;

pub(super) type Ended = std::result::Result<Done, Failure>;
pub(super) type Handler = Arc<dyn Fn(RunningJob) -> BoxFuture<'static, Ended> + Send + Sync>;
pub(super) type Before = Arc<dyn Fn(&RunningJob) -> std::result::Result<(), Failure> + Send + Sync>;
pub(super) type After = Arc<dyn Fn(&RunningJob, Option<&Failure>) + Send + Sync>;
pub(super) type OnError = Arc<dyn Fn(&RunningJob, &Failure) + Send + Sync>;

/// What stands around each job.
#[derive(Default)]
pub(super) struct Hooks {
    pub(super) before: Vec<Before>,
    pub(super) after: Vec<After>,
    pub(super) on_error: Vec<OnError>,
}

/// Takes the jobs of queues and runs a handler for each. What the handler returns is the job's
/// result, `()` is none; what it fails with gives the job back for another attempt: see [`Done`] and
/// [`Failure`].
///
/// It makes connections of its own by the connector: three for each slot of its queues, one without a
/// cluster, and one for the leases of each queue and for each schedule.
pub struct Worker {
    pub(super) connector: Arc<dyn Connector>,
    pub(super) handler: Handler,
    pub(super) queues: Vec<(Queue, i64)>,
    pub(super) schedules: Vec<(Queue, NewJob)>,
    pub(super) concurrency: usize,
    pub(super) ttr: Duration,
    pub(super) grace: Duration,
    pub(super) hooks: Hooks,
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
            hooks: Hooks::default(),
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
    /// there, with this schedule. While it works, it adds the job again within a minute where it is
    /// gone, unless it has RUNS: so it survives the loss of all data. To end a schedule, take it out
    /// of the program, too.
    pub fn schedule(mut self, queue: &Queue, job: NewJob) -> Self {
        self.schedules.push((queue.clone(), job));
        self
    }

    /// A hook before each job. What it fails with is a failure of the job, and so is a panic.
    pub fn before(
        mut self,
        hook: impl Fn(&RunningJob) -> std::result::Result<(), Failure> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.before.push(Arc::new(hook));
        self
    }

    /// A hook after each job, with what the handler failed with. A panic is logged.
    pub fn after(
        mut self,
        hook: impl Fn(&RunningJob, Option<&Failure>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.after.push(Arc::new(hook));
        self
    }

    /// A hook for each attempt that failed, such as one that reports to an error tracker. A panic is
    /// logged.
    pub fn on_error(
        mut self,
        hook: impl Fn(&RunningJob, &Failure) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_error.push(Arc::new(hook));
        self
    }

    /// Works until SIGTERM or SIGINT; the second one ends the grace time. An error that waiting
    /// doesn't mend, such as a wrong password, ends it.
    ///
    /// The process ends for certain. Five seconds after the grace time or the second signal it exits
    /// with status 1 if it still runs, whatever the handlers do: a blocked thread would hold it up
    /// for ever. So does a third signal, at once.
    pub async fn run(self) -> Result<()> {
        let (stop, hurry) = (CancellationToken::new(), CancellationToken::new());
        let signals = Signals::listen(stop.clone(), hurry.clone(), self.grace)?;
        let (worked, is_cut) = self.serve_until(stop, hurry).await;
        signals.worker_has_ended(is_cut);
        worked
    }

    /// Works until it is told to stop: it takes no more jobs then, and ends when those in hand are
    /// done, or the grace time is over. Handlers that block a thread go on behind it, and tokio's
    /// runtime waits for them when it is dropped: end it by `shutdown_background`.
    pub async fn serve(self, stop: CancellationToken) -> Result<()> {
        self.serve_until(stop, CancellationToken::new()).await.0
    }
}
