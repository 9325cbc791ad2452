//! `DQ.PEEK key [STATE state] [AFTER id] [FROM unix-ms] [COUNT n]`
//!
//! Shows jobs that are in this state (`ready`), at most `n` (1) and at most 1,000, in the order in
//! which they leave it; dead ones, which don't, in the order in which they died. Changes nothing.
//!
//! AFTER goes on behind this job, one that is in this state. FROM begins with the first job of this
//! time or a later one: a time is that of the order, when a job leaves the state or has died. With
//! both, AFTER counts while the job is still at that time. So whoever goes through all jobs and
//! names the last one that was shown, with its time, goes on in the right place, though the job was
//! kicked, deleted or touched meanwhile.
//!
//! Replies with an array of maps, as DQ.GET gives them; an empty one when there are none. The reply
//! ends early once it has 16 MiB of bodies and results. With AFTER alone, an error when the job isn't in this state: nothing says any more where it was.
//!
//! O(n log b) for n jobs shown, in a queue of b buckets of up to some hundred jobs; whole buckets
//! without a job in that state are stepped over.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::job_reply::{bytes_of, reply_job};
use super::kinds::{Query, QueryContext};
use super::limits::{PEEK_JOBS_MAX, REPLY_BYTES_MAX};
use crate::queue::{After, Id, State, Time};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Peek;

impl Query for Peek {
    const SPEC: Spec = Spec {
        name: c"dq.peek",
        summary: c"Shows the next jobs in a state, without taking them",
        complexity: c"O(M) with M being the number of jobs shown",
        since: Spec::SINCE_0_1,
        flags: c"readonly",
        arity: -2,
        key: KeyUse::Read,
        grammar: "key [STATE state] [AFTER id] [FROM unix-ms] [COUNT n]",
    };

    type Parsed<'c> = Page<'c>;

    fn parse<'c>(args: ArgReader<'c>) -> Result<Page<'c>, Error> {
        let (mut state, mut id, mut time, mut count) = (None, None, None, None);
        options!(args, {
            "STATE" => state, state();
            "AFTER" => id, id();
            "FROM" => time, time();
            "COUNT" => count, count();
        });
        let state = state.unwrap_or(State::Ready);
        if state == State::Ready && time.is_some() {
            // They leave by their priority first.
            return Err(Error::NotInState { option: "FROM", state });
        }
        Ok(Page { state, id, time, count: count.unwrap_or(1).min(PEEK_JOBS_MAX) })
    }

    fn reply(page: &Page, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let Page { state, id, time, count } = *page;
        let slots = context.queue().peek_after(state, &After { id, time }, count);
        show(&slots.ok_or(Error::NotAfter { state })?, context, replies);
        Ok(())
    }

    fn reply_missing(page: &Page, replies: Replies) -> Result<(), Error> {
        if page.id.is_some() && page.time.is_none() {
            return Err(Error::NotAfter { state: page.state });
        }
        replies.array(0);
        Ok(())
    }
}

fn show(slots: &[u32], context: &QueryContext, replies: Replies) {
    let (queue, mut bytes) = (context.queue(), 0);
    let jobs: Vec<_> = slots
        .iter()
        .map_while(|slot| {
            let job = queue.view(*slot).filter(|_| bytes < REPLY_BYTES_MAX)?;
            bytes += bytes_of(&job, context.now);
            Some(job)
        })
        .collect();
    replies.array(jobs.len());
    jobs.iter().for_each(|job| reply_job(replies, queue, job, context.now));
}

pub struct Page<'c> {
    state: State,
    /// As in [`After`].
    id: Option<Id<'c>>,
    time: Option<Time>,
    count: usize,
}
