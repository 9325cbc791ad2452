//! `DQ.KICK key [COUNT n]`
//!
//! Makes dead jobs ready, at most `n` (1) and at most 10,000 in one go, those first that died first. Their
//! attempts are 0 again, and a time to live begins anew.
//!
//! Replies with how many it kicked.
//!
//! O(log n) in the queue's jobs for each job kicked.

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::Cause;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

/// A call that kicks more would hold up the others.
const BATCH_JOBS_MAX: usize = 10_000;

pub struct Kick<'c> {
    key: Arg<'c>,
    count: usize,
}

impl Command for Kick<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.kick",
        summary: c"Makes dead jobs ready, those first that died first",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number kicked",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY, ArgSpec::integer(c"count").token(c"COUNT").optional()],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Kick::parse(call)?.apply(call)
    }
}

impl<'c> Kick<'c> {
    fn parse(call: &Call<'c>) -> Result<Kick<'c>, Error> {
        let mut words = Words::of(call, "dq.kick");
        let key = words.require()?;
        let mut count = None;
        words.options(|name, words| match name {
            "COUNT" => once("COUNT", &mut count, words.count()?),
            _ => Ok(false),
        })?;
        Ok(Kick { key, count: count.unwrap_or(1).min(BATCH_JOBS_MAX) })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let kicked = queue.kick(now, self.count);
        call.replies().integer(kicked.len() as u64);
        if !kicked.is_empty() {
            queue.publish(&[Effect::Moved(Cause::Kicked, &kicked)]);
        }
        Ok(())
    }
}
