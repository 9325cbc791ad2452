//! `DQ.PEEK key [STATE state] [COUNT n]`
//!
//! Shows jobs that are in this state (`ready`), at most `n` (1) and at most 1,000, in the order in which they
//! leave it; dead ones, which don't, in the order in which they died. Changes nothing.
//!
//! Replies with an array of maps, as DQ.GET gives them; an empty one when there are none.
//!
//! O(n + m) for n jobs shown and m stepped over: m is 0 but for lanes in which many states mix, and 100,000
//! at most.

use super::error::Error;
use super::job_reply::reply_job;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::State;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

/// A call that shows more would hold up the others.
const COUNT_MAX: usize = 1_000;

pub struct Peek<'c> {
    key: Arg<'c>,
    state: State,
    count: usize,
}

impl Command for Peek<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.peek",
        summary: c"Shows jobs in the order in which they leave a state",
        complexity: c"O(M) with M being the number of jobs shown",
        since: SINCE_0_1,
        flags: c"readonly",
        arity: -2,
        key: KeyUse::Read,
        args: &[
            ArgSpec::KEY,
            ArgSpec::STATE.optional(),
            ArgSpec::integer(c"count").token(c"COUNT").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Peek::parse(call)?.apply(call)
    }
}

impl<'c> Peek<'c> {
    fn parse(call: &Call<'c>) -> Result<Peek<'c>, Error> {
        let mut words = Words::of(call, "dq.peek");
        let key = words.require()?;
        let (mut state, mut count) = (None, None);
        words.options(|name, words| match name {
            "STATE" => once("STATE", &mut state, words.state()?),
            "COUNT" => once("COUNT", &mut count, words.count()?),
            _ => Ok(false),
        })?;
        let count = count.unwrap_or(1).min(COUNT_MAX);
        Ok(Peek { key, state: state.unwrap_or(State::Ready), count })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Read)? else {
            call.replies().array(0);
            return Ok(());
        };
        let now = queue.advance(call.now());
        let slots = queue.peek(self.state, self.count);
        let jobs: Vec<_> = slots.iter().filter_map(|slot| queue.view(*slot)).collect();
        call.replies().array(jobs.len());
        jobs.iter().for_each(|job| reply_job(call.replies(), job, now));
        Ok(())
    }
}
