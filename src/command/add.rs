//! `DQ.ADD key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n]
//! [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name]
//! [AFTER n id [id ...] | BEFORE n id [id ...]] [ONDEAD HOLD|RUN] [HOLD]
//! [EVERY ms | CRON expression [TZ zone]] [MISFIRE ONE|ALL] [JITTER ms] [RUNS n] [UNTIL unix-ms]
//! [NX | REPLACE | ENSURE]`
//!
//! Adds a job, to be delivered from its due time on. `*` makes an id. Without DELAY or AT it is
//! due now; AT in the past is now. What TTR, ATTEMPTS, BACKOFF, KEEP and LATE don't say is as
//! DQ.ALTER has set it for the queue or as the configs have it, at this moment and for good. After
//! TTL, unless it was finished, the job is dead. KEEP is how long it stays, as done, once it is
//! finished: so long its id is taken. Not delivered for LATE since it came due, it is dead; of a
//! job with a schedule, that occurrence is passed over. Jobs of a GROUP take turns with those of
//! other groups of the same priority, and with those without.
//!
//! With EVERY or CRON, the job has a schedule: when it is finished, it comes back for the next
//! time, under the same id. EVERY counts from AT or DELAY, or from now; CRON goes by a time zone,
//! or UTC. MISFIRE says what becomes of times that passed before somebody took the job, JITTER how
//! much later it may come, RUNS and UNTIL when that ends. ENSURE leaves a job with the same
//! schedule where it is, and sets the rest.
//!
//! Replies with the id; with nil when NX was given and the id is taken. A taken id is the error
//! `EXISTS` otherwise, unless REPLACE: then the old job is gone, with its lease and its attempts.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{Change, Reply};
use super::new_job;
use crate::queue::{self, Added, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Add;

impl Change for Add {
    const SPEC: Spec = Spec {
        name: c"dq.add",
        summary: c"Adds a job to a queue, to be delivered when it is due",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -4,
        key: KeyUse::Insert,
        grammar: "key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n] \
            [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name] \
            [AFTER n id [id ...] | BEFORE n id [id ...]] [ONDEAD HOLD|RUN] [HOLD] \
            [EVERY ms | CRON expression [TZ zone]] [MISFIRE ONE|ALL] [JITTER ms] [RUNS n] \
            [UNTIL unix-ms] [NX | REPLACE | ENSURE]",
    };

    const CREATES: bool = true;

    type Operation<'c> = queue::Add<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Add<'c>, Error> {
        new_job::read(&mut args, None)
    }
}

impl Reply for Added {
    fn reply(&self, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                replies.bulk(queue.id_and_body(*slot).map_or(&[], |(id, _)| id.bytes()));
            }
            Added::Left | Added::Over { .. } => replies.null(),
            Added::Taken => return Err(Error::Taken),
            Added::Full => return Err(Error::Full),
            Added::Never => return Err(Error::NeverRuns),
            Added::Unconnected(fault) => return Err((**fault).clone().into()),
        }
        Ok(())
    }
}
