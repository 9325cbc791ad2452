//! The commands of a queue as its methods.

use crate::codec::Body;
use crate::commands::*;
use crate::queue::Queue;
use crate::words::{Lease, Millis, State, Text};

impl Queue {
    // ---- producing -----------------------------------------------------------------------------

    /// Adds a job. `*` lets the server make the id.
    pub fn add(&self, id: impl AsRef<[u8]>, body: impl Body) -> Add {
        Add::new(self, id, &body)
    }

    /// Adds many jobs, each an id and a body, in one step. `*` lets the server make an id.
    pub fn add_many<I: AsRef<[u8]>, B: Body>(
        &self,
        jobs: impl IntoIterator<Item = (I, B)>,
    ) -> AddMany {
        AddMany::new(self, jobs)
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

    /// Finishes jobs of this queue, and then takes others, in one step. Each is a delivery, or an id with
    /// its lease.
    pub fn finish_and_pop(&self, jobs: impl IntoIterator<Item = impl Claim>) -> FinishAndPop {
        FinishAndPop::new(self, jobs)
    }

    /// The same with several queues: the jobs are of one of them, which the deliveries name.
    pub fn finish_and_mpop(
        &self,
        jobs: impl IntoIterator<Item = impl Claim>,
        others: &[Text],
    ) -> FinishAndMpop {
        FinishAndMpop::new(self, jobs, others)
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
