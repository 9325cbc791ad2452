//! `DQ.DONE key id lease [RESULT bytes] [KEEP ms] [ADD id|* body [option ...] ...]`
//!
//! Finishes a job with a result, and goes on with other jobs, in one step. RESULT stays with the job
//! for as long as the job is kept: for KEEP or, without it, as its ADD says. Each ADD is one of
//! DQ.ADD, with the same options. All of it happens, or nothing.
//!
//! Replies with 1; with ADDs, with an array of their ids, which is nil where NX found the id taken;
//! with 0 when that lease isn't the job's. What would be an error of an ADD is one here.
//!
//! O(log n) in the queue's jobs for each job.

use super::arg_reader::{options, ArgReader, Name};
use super::error::Error;
use super::kinds::{Change, Reply};
use super::new_job;
use crate::queue::{self, DoneOutcome, Queue, DONE_ADDS_MAX};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Done;

const ADD: Name = Name::of("ADD");

impl Change for Done {
    const SPEC: Spec = Spec {
        name: c"dq.done",
        summary: c"Finishes a job with a result, and adds the jobs that follow it",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ADDs",
        since: Spec::SINCE_0_3,
        flags: c"write",
        arity: -4,
        key: KeyUse::Change,
        grammar: "key id lease [RESULT bytes] [KEEP ms] [ADD id|* body [option ...] ...]",
    };

    type Operation<'c> = queue::Done<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Done<'c>, Error> {
        let claim = args.require_claim()?;
        let (mut result, mut keep, mut adds) = (None, None, Vec::new());
        options!(args, {
            "RESULT" => result, body();
            "KEEP" => keep, millis(0);
        } else |name, args| {
            let is_add = name == ADD;
            if is_add && adds.len() == DONE_ADDS_MAX {
                return Err(Error::TooManyAdds);
            }
            if is_add {
                adds.push(new_job::read(args, Some(ADD))?);
            }
            Ok(is_add)
        });
        Ok(queue::Done { claim, result, keep, adds })
    }
}

impl Reply for DoneOutcome {
    fn reply(&self, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            DoneOutcome::No => replies.integer(0),
            DoneOutcome::Yes { ids } if ids.is_empty() => replies.integer(1),
            DoneOutcome::Yes { ids } => {
                replies.array(ids.len());
                for id in ids {
                    match id {
                        Some(id) => replies.bulk(id),
                        None => replies.null(),
                    }
                }
            }
            DoneOutcome::Refused(added) => return added.reply(queue, replies),
        }
        Ok(())
    }
}
