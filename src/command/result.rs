//! `DQ.RESULT key id`
//!
//! Tells what came of a job. Replies with `[state, what]`: the result of a job that is done, nil when
//! it was finished without one; the reason of a dead one; nil otherwise. With nil when there is no
//! such job.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{Look, Looking};
use crate::queue::{Id, State};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct JobResult;

impl Look for JobResult {
    const SPEC: Spec = Spec {
        name: c"dq.result",
        summary: c"Tells what came of a job: its result, or why it is dead",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_3,
        flags: c"readonly fast",
        arity: 3,
        key: KeyUse::Read,
        grammar: "key id",
    };

    type Parsed<'c> = Id<'c>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<Id<'c>, Error> {
        let id = words.require_id()?;
        words.end()?;
        Ok(id)
    }

    fn reply(id: &Id, looking: &Looking, replies: Replies) -> Result<(), Error> {
        let Some(job) = looking.queue().get(*id) else {
            replies.null();
            return Ok(());
        };
        let state = job.state(looking.now);
        let what = match state {
            State::Done => job.result,
            State::Dead => job.reason_at(looking.now),
            State::Delayed | State::Ready | State::Reserved | State::Held => None,
        };
        replies.array(2);
        replies.bulk(state.name().as_bytes());
        match what {
            Some(what) => replies.bulk(what),
            None => replies.null(),
        }
        Ok(())
    }
}
