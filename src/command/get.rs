//! `DQ.GET key id`
//!
//! Shows a job. Replies with a map, whose fields `job_reply.rs` has and docs/commands/get.md
//! explains; with nil when there is no such job.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::job_reply::reply_job;
use super::kinds::{Query, QueryContext};
use crate::queue::Id;
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Get;

impl Query for Get {
    const SPEC: Spec = Spec {
        name: c"dq.get",
        summary: c"Shows a job",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"readonly fast",
        arity: 3,
        key: KeyUse::Read,
        grammar: "key id",
    };

    type Parsed<'c> = Id<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<Id<'c>, Error> {
        let id = args.require_id()?;
        args.end()?;
        Ok(id)
    }

    fn reply(id: &Id, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        match context.queue().get(*id) {
            Some(job) => reply_job(replies, context.queue(), &job, context.now),
            None => replies.null(),
        }
        Ok(())
    }
}
