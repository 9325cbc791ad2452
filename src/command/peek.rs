//! `DQ.PEEK key [STATE state] [COUNT n]`
//!
//! Shows jobs that are in this state (`ready`), at most `n` (1) and at most 1,000, in the order in which they
//! leave it; dead ones, which don't, in the order in which they died. Changes nothing.
//!
//! Replies with an array of maps, as DQ.GET gives them; an empty one when there are none.
//!
//! O(n log b) for n jobs shown, in a queue of b buckets of up to some thousand jobs; whole buckets without a job in that
//! state are stepped over.

use super::error::Error;
use super::job_reply::reply_job;
use super::kinds::{Look, Looking};
use super::limits::{PEEK_BYTES_MAX, PEEK_JOBS_MAX};
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::State;
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Peek;

impl Look for Peek {
    const SPEC: Spec = Spec {
        name: c"dq.peek",
        summary: c"Shows the next jobs in a state, without taking them",
        complexity: c"O(M) with M being the number of jobs shown",
        since: SINCE_0_1,
        flags: c"readonly",
        arity: -2,
        key: KeyUse::Read,
        args: &[ArgSpec::KEY, ArgSpec::STATE.optional(), ArgSpec::integer(c"n").token(c"COUNT").optional()],
    };

    type Parsed<'c> = (State, usize);

    fn parse(words: Words) -> Result<(State, usize), Error> {
        let (mut state, mut count) = (None, None);
        words.options(|name, words| match name {
            "STATE" => once("STATE", &mut state, words.state()?),
            "COUNT" => once("COUNT", &mut count, words.count()?),
            _ => Ok(false),
        })?;
        Ok((state.unwrap_or(State::Ready), count.unwrap_or(1).min(PEEK_JOBS_MAX)))
    }

    fn reply((state, count): &(State, usize), looking: &Looking, replies: Replies) {
        let (queue, mut bytes) = (looking.queue(), 0);
        let slots = queue.peek(*state, *count);
        let jobs: Vec<_> = slots
            .iter()
            .map_while(|slot| {
                let job = queue.view(*slot).filter(|_| bytes < PEEK_BYTES_MAX)?;
                bytes += job.body.len();
                Some(job)
            })
            .collect();
        replies.array(jobs.len());
        jobs.iter().for_each(|job| reply_job(replies, job, looking.now));
    }

    fn reply_missing(replies: Replies) {
        replies.array(0);
    }
}
