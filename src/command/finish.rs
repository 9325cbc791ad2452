//! `DQ.FINISH key id [lease [id lease ...]]`
//!
//! The work is done: takes jobs that were handed out from the queue. A delivery is named by id and lease;
//! `*` is the job's latest lease, whichever it is, and so is a bare id. A lease stays good after it ran
//! out, until the job is handed out again: then somebody else has it, and this answers 0 for it. A job that
//! was never handed out can't be finished, only deleted.
//!
//! Replies with how many jobs it finished.
//!
//! O(log n) in the queue's jobs for each id.

use super::effect::{publish, Effect};
use super::error::Error;
use super::words::{parse_claim, Words};
use super::SINCE_0_1;
use crate::queue::{Claim, Id};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Finish<'c> {
    key: Arg<'c>,
    deliveries: Vec<(Id<'c>, Claim)>,
}

const LEASE: ArgSpec = ArgSpec::string(c"lease");

impl Command for Finish<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.finish",
        summary: c"Takes jobs whose work is done from a queue",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        args: &[
            ArgSpec::KEY,
            ArgSpec::string(c"id"),
            LEASE.optional(),
            ArgSpec::block(c"delivery", &[ArgSpec::string(c"id"), LEASE]).optional().multiple(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Finish::parse(call)?.apply(call)
    }
}

impl<'c> Finish<'c> {
    fn parse(call: &Call<'c>) -> Result<Finish<'c>, Error> {
        let mut words = Words::of(call, "dq.finish");
        let key = words.require()?;
        if words.left() == 1 {
            let deliveries = vec![(words.require_id()?, Claim::Latest)];
            return Ok(Finish { key, deliveries });
        }
        if words.left() % 2 == 1 {
            return Err(Error::UnpairedLease);
        }
        let mut deliveries = Vec::with_capacity(words.left() / 2);
        while words.left() > 0 {
            deliveries.push((words.require_id()?, parse_claim(words.require()?.bytes())?));
        }
        Ok(Finish { key, deliveries })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.reply_integer(0);
            return Ok(());
        };
        let finished = self.deliveries.iter().filter(|(id, claim)| queue.finish(*id, *claim)).count();
        call.reply_integer(finished as u64);
        if finished > 0 {
            publish(call, self.key, &mut queue, &Effect::Finished(finished));
        }
        Ok(())
    }
}
