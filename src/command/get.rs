//! `DQ.GET key id`
//!
//! Shows a job. Replies with a map, whose fields `job_reply.rs` has and docs/commands/get.md explains; with
//! nil when there is no such job.
//!
//! O(log n) in the queue's jobs.

use super::error::Error;
use super::job_reply::reply_job;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::Id;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Get<'c> {
    key: Arg<'c>,
    id: Id<'c>,
}

impl Command for Get<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.get",
        summary: c"Shows a job of a queue",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"readonly fast",
        arity: 3,
        key: KeyUse::Read,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id")],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Get::parse(call)?.apply(call)
    }
}

impl<'c> Get<'c> {
    fn parse(call: &Call<'c>) -> Result<Get<'c>, Error> {
        let mut words = Words::of(call, "dq.get");
        let (key, id) = (words.require()?, words.require_id()?);
        words.end()?;
        Ok(Get { key, id })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Read)? else {
            call.replies().null();
            return Ok(());
        };
        let now = queue.advance(call.now());
        match queue.get(self.id) {
            Some(job) => reply_job(call.replies(), &job, now),
            None => call.replies().null(),
        }
        Ok(())
    }
}
