//! `DQ.DEL key id [id ...]`
//!
//! Cancels jobs: removes them from the queue, whatever their state. A worker that holds one finds its
//! lease void.
//!
//! Replies with how many jobs it removed.
//!
//! O(log n) in the queue's jobs for each id.

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::Id;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Del<'c> {
    key: Arg<'c>,
    ids: Vec<Id<'c>>,
}

impl Command for Del<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.del",
        summary: c"Removes jobs from a queue, whatever their state",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id").multiple()],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Del::parse(call)?.apply(call)
    }
}

impl<'c> Del<'c> {
    fn parse(call: &Call<'c>) -> Result<Del<'c>, Error> {
        let mut words = Words::of(call, "dq.del");
        let key = words.require()?;
        Ok(Del { key, ids: words.require_ids()? })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let deleted = self.ids.iter().filter(|id| queue.delete(**id)).count();
        call.replies().integer(deleted as u64);
        if deleted > 0 {
            queue.publish(&[Effect::Deleted(deleted)]);
        }
        Ok(())
    }
}
