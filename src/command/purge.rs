//! `DQ.PURGE key STATE state [OLDER ms] [COUNT n]`
//!
//! Removes jobs that are in this state: at most `n` (1,000), at most 10,000 in one go, in the order in which they
//! leave it. OLDER, for ready, dead and done jobs: only those that have been so for at least that long. Call
//! it until it answers 0.
//!
//! Replies with how many it removed.
//!
//! O(log n) in the queue's jobs for each job removed.

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Leave, Millis, State};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

const COUNT_DEFAULT: usize = 1_000;
/// A call that removes more would hold up the others.
const COUNT_MAX: usize = 10_000;

pub struct Purge<'c> {
    key: Arg<'c>,
    state: State,
    older: Millis,
    count: usize,
}

impl Command for Purge<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.purge",
        summary: c"Removes jobs by state and age, some at a time",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number removed",
        since: SINCE_0_1,
        flags: c"write",
        arity: -4,
        key: KeyUse::Remove,
        args: &[
            ArgSpec::KEY,
            ArgSpec::STATE,
            ArgSpec::integer(c"milliseconds").token(c"OLDER").optional(),
            ArgSpec::integer(c"count").token(c"COUNT").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Purge::parse(call)?.apply(call)
    }
}

impl<'c> Purge<'c> {
    fn parse(call: &Call<'c>) -> Result<Purge<'c>, Error> {
        let mut words = Words::of(call, "dq.purge");
        let key = words.require()?;
        let (mut state, mut older, mut count) = (None, None, None);
        words.options(|name, words| match name {
            "STATE" => once("STATE", &mut state, words.state()?),
            "OLDER" => once("OLDER", &mut older, words.millis("OLDER", 0)?),
            "COUNT" => once("COUNT", &mut count, words.count()?),
            _ => Ok(false),
        })?;
        let state = state.ok_or(Error::Missing { option: "STATE" })?;
        if older.is_some() && matches!(state, State::Delayed | State::Reserved) {
            return Err(Error::NotInState { option: "OLDER", state });
        }
        let count = count.unwrap_or(COUNT_DEFAULT).min(COUNT_MAX);
        Ok(Purge { key, state, older: older.unwrap_or_default(), count })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let now = queue.advance(call.now());
        let slots = queue.to_purge(now, self.state, self.older, self.count);
        call.replies().integer(slots.len() as u64);
        if !slots.is_empty() {
            let ids = queue.ids_of(&slots);
            queue.purge(&slots);
            queue.publish(&[Effect::Left(Leave::Purged, &ids)]);
        }
        Ok(())
    }
}
