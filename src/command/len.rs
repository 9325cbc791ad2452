//! `DQ.LEN key [STATE state]`
//!
//! Replies with how many jobs the queue holds, or how many of them are `delayed`, `ready`,
//! `reserved`, `dead` or `done`; 0 when there is no such key.
//!
//! O(1).

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Query, QueryContext};
use crate::queue::State;
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Len;

impl Query for Len {
    const SPEC: Spec = Spec {
        name: c"dq.len",
        summary: c"Counts the jobs of a queue, or those in one state",
        complexity: c"O(1)",
        since: Spec::SINCE_0_1,
        flags: c"readonly fast",
        arity: -2,
        key: KeyUse::Measure,
        grammar: "key [STATE state]",
    };

    type Parsed<'c> = Option<State>;

    fn parse(args: ArgReader) -> Result<Option<State>, Error> {
        let mut state = None;
        options!(args, {
            "STATE" => state, state();
        });
        Ok(state)
    }

    fn reply(state: &Option<State>, context: &QueryContext, replies: Replies) -> Result<(), Error> {
        let queue = context.queue();
        let jobs = state.map_or(queue.len(), |state| queue.counts().of(state));
        replies.integer(jobs as u64);
        Ok(())
    }

    fn reply_missing(_state: &Option<State>, replies: Replies) -> Result<(), Error> {
        replies.integer(0);
        Ok(())
    }
}
