//! A queue: its commands as methods.

use std::sync::Arc;

use redis::{Pipeline, Value};

use crate::codec::{Body, Codec};
use crate::commands::*;
use crate::envelope::wrapped;
use crate::errors::Result;
use crate::flow::Flow;
use crate::replies::Added;
use crate::seam::Connection;
use crate::words::{Lease, Millis, State, Text};

/// A queue, over a connection that the program made.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let orders = dq_client::Queue::new(client.get_multiplexed_async_connection().await?, "orders");
/// let minutes = 30;
/// orders.add("order:17", "cancel").delay(Duration::from_secs(minutes * 60)).nx().await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Queue {
    pub(crate) connection: Arc<dyn Connection>,
    pub(crate) name: Text,
    pub(crate) codec: Codec,
    #[cfg(feature = "opentelemetry")]
    pub(crate) is_traced: bool,
}

impl Queue {
    /// The queue of this name. Clones share the connection.
    pub fn new(connection: impl Connection + 'static, name: impl AsRef<[u8]>) -> Self {
        Self::shared(Arc::new(connection), name)
    }

    /// The same over a connection that others have, too.
    pub fn shared(connection: Arc<dyn Connection>, name: impl AsRef<[u8]>) -> Self {
        let name = name.as_ref().to_vec().into();
        Self {
            connection,
            name,
            codec: Codec::Json,
            #[cfg(feature = "opentelemetry")]
            is_traced: false,
        }
    }

    /// The same queue, whose bodies and results are written by another codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// The same queue, with the context of a span in each job that is added.
    #[cfg(feature = "opentelemetry")]
    pub fn traced(mut self) -> Self {
        self.is_traced = true;
        self
    }

    /// Its name, which is its key.
    pub fn name(&self) -> &Text {
        &self.name
    }

    pub(crate) fn over(&self, connection: Arc<dyn Connection>) -> Self {
        Self { connection, ..self.clone() }
    }

    pub(crate) fn named(&self, name: Text) -> Self {
        Self { name, ..self.clone() }
    }

    pub(crate) fn payload(&self, body: &dyn Body) -> Result<Vec<u8>> {
        wrapped(body.encode(self.codec)?, &self.headers())
    }

    #[cfg(feature = "opentelemetry")]
    fn headers(&self) -> crate::envelope::Headers {
        if self.is_traced {
            crate::spans::create(&self.name)
        } else {
            Vec::new()
        }
    }

    #[cfg(not(feature = "opentelemetry"))]
    fn headers(&self) -> crate::envelope::Headers {
        Vec::new()
    }

    // ---- producing -----------------------------------------------------------------------------

    /// Adds a job. `*` lets the server make the id.
    pub fn add(&self, id: impl AsRef<[u8]>, body: impl Body) -> Add {
        Add::new(self, id, &body)
    }

    /// Adds all jobs of a flow, in one transaction.
    pub async fn start(&self, flow: impl Into<Flow>) -> Result<Vec<Added>> {
        let mut pipeline = Pipeline::new();
        pipeline.atomic();
        let mut steps = Vec::new();
        for (step, before) in &flow.into().steps {
            let add = Add::of(self, step);
            let add = if before.is_empty() { add } else { add.after(before) };
            steps.push(add.on(&mut pipeline)?);
        }
        let replies: Vec<Value> = self.connection.send_all(pipeline).await?;
        steps.into_iter().map(|step| step.of(&replies)).collect()
    }

    // ---- consuming -----------------------------------------------------------------------------

    /// Takes the next ready jobs, each under a lease.
    pub fn pop(&self) -> Pop {
        Pop::new(self)
    }

    /// Takes the next ready jobs from the first of several queues that has any: this one, then the
    /// others.
    pub fn mpop(&self, others: &[Text]) -> Mpop {
        Mpop::new(self, others)
    }

    /// Removes jobs whose work is done, by their leases.
    pub fn finish<I: AsRef<[u8]>>(&self, jobs: impl IntoIterator<Item = (I, Lease)>) -> Finish {
        Finish::new(self, jobs)
    }

    /// Finishes a job with a result, and adds the jobs that follow it.
    pub fn done(&self, id: impl AsRef<[u8]>, lease: impl Into<Lease>) -> Done {
        Done::new(self, id, lease.into())
    }

    /// Gives a job back.
    pub fn release(&self, id: impl AsRef<[u8]>, lease: impl Into<Lease>) -> Release {
        Release::new(self, id, lease.into())
    }

    /// Extends a lease.
    pub fn touch(&self, id: impl AsRef<[u8]>, lease: impl Into<Lease>) -> Touch {
        Touch::new(self, id, lease.into())
    }

    /// Extends leases for `ttr`, and waits for `block` until one of them is void.
    pub fn renew<I: AsRef<[u8]>>(
        &self,
        ttr: impl Millis,
        block: impl Millis,
        jobs: impl IntoIterator<Item = (I, Lease)>,
    ) -> Renew {
        Renew::new(self, ttr, block, jobs)
    }

    /// Marks a job as dead.
    pub fn bury(&self, id: impl AsRef<[u8]>, lease: impl Into<Lease>) -> Bury {
        Bury::new(self, id, lease.into())
    }

    // ---- looking -------------------------------------------------------------------------------

    /// All that there is to a job.
    pub fn get(&self, id: impl AsRef<[u8]>) -> Get {
        Get::new(self, id)
    }

    /// What came of a job.
    pub fn result(&self, id: impl AsRef<[u8]>) -> GetResult {
        GetResult::new(self, id)
    }

    /// What a job waits for, or has waited for.
    pub fn deps(&self, id: impl AsRef<[u8]>) -> Depends {
        Depends::new(self, id)
    }

    /// The next jobs in a state, without taking them.
    pub fn peek(&self) -> Peek {
        Peek::new(self)
    }

    /// Some ids, and where to go on: a scan begins at 0.
    pub fn scan(&self, cursor: u64) -> Scan {
        Scan::new(self, cursor)
    }

    /// Some groups, and where to go on: a scan begins at 0.
    pub fn groups(&self, cursor: u64) -> Groups {
        Groups::new(self, cursor)
    }

    /// How many jobs there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> Len {
        Len::new(self)
    }

    /// How many jobs come due in each of the next `count` steps of time.
    pub fn forecast(&self, step: impl Millis, count: i64) -> Forecast {
        Forecast::new(self, step, count)
    }

    /// Settings, counts, totals and lateness.
    pub fn info(&self) -> GetInfo {
        GetInfo::new(self)
    }

    /// When a cron expression comes next.
    pub fn next(&self, expression: impl AsRef<[u8]>) -> Next {
        Next::new(self, expression)
    }

    // ---- managing ------------------------------------------------------------------------------

    /// Removes jobs, whatever their state.
    pub fn del(&self, ids: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Del {
        Del::new(self, ids)
    }

    /// Makes dead jobs ready again, oldest first.
    pub fn kick(&self) -> Kick {
        Kick::new(self)
    }

    /// Makes dead or delayed jobs ready now.
    pub fn kickjob(&self, ids: impl IntoIterator<Item = impl AsRef<[u8]>>) -> KickJob {
        KickJob::new(self, ids)
    }

    /// Stops the queue from handing out jobs.
    pub fn pause(&self) -> Pause {
        Pause::new(self)
    }

    /// Ends a pause, or the hold of jobs.
    pub fn resume(&self) -> Resume {
        Resume::new(self)
    }

    /// Removes jobs in a state.
    pub fn purge(&self, state: State) -> Purge {
        Purge::new(self, state)
    }

    /// Sets limits and defaults.
    pub fn alter(&self) -> Alter {
        Alter::new(self)
    }
}
