//! `DQ.LEN key [STATE state]`
//!
//! Replies with how many jobs the queue holds, or how many of them are `delayed`, `ready`, `reserved`, `dead`
//! or `done`; 0 when there is no such key.
//!
//! O(1).

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::State;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Len<'c> {
    key: Arg<'c>,
    state: Option<State>,
}

impl Command for Len<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.len",
        summary: c"Tells how many jobs a queue holds, or how many are in a state",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"readonly fast",
        arity: -2,
        key: KeyUse::Measure,
        args: &[ArgSpec::KEY, ArgSpec::STATE.optional()],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Len::parse(call)?.apply(call)
    }
}

impl<'c> Len<'c> {
    fn parse(call: &Call<'c>) -> Result<Len<'c>, Error> {
        let mut words = Words::of(call, "dq.len");
        let key = words.require()?;
        let mut state = None;
        words.options(|name, words| match name {
            "STATE" => once("STATE", &mut state, words.state()?),
            _ => Ok(false),
        })?;
        Ok(Len { key, state })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Read)? else {
            call.replies().integer(0);
            return Ok(());
        };
        queue.advance(call.now());
        let jobs = match self.state {
            None => queue.len(),
            Some(state) => queue.counts().of(state),
        };
        call.replies().integer(jobs as u64);
        Ok(())
    }
}
