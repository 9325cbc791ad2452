//! `DQ.FINISH key id [lease [id lease ...]]`
//!
//! The work is done: takes jobs that were handed out from the queue. A delivery is named by id and lease;
//! `*` is the job's latest lease, whichever it is, and so is a bare id. A lease stays good after it ran
//! out, until the job is handed out again: then somebody else has it, and this answers 0 for it. A job that
//! is not handed out can't be finished, only deleted. A job that was added with KEEP stays, as done.
//!
//! Replies with how many jobs it finished.
//!
//! O(log n) in the queue's jobs for each id.

use super::error::Error;
use super::words::{parse_claim, Words};
use super::SINCE_0_1;
use crate::queue::{Cause, Claim, Finished, Id, Leave};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
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
            call.replies().integer(0);
            return Ok(());
        };
        let now = call.now();
        let (mut gone, mut kept) = (Vec::new(), Vec::new());
        for (id, claim) in &self.deliveries {
            match queue.finish(now, *id, *claim) {
                Finished::Gone => gone.push(*id),
                Finished::Kept(slot) => kept.push(slot),
                Finished::No => (),
            }
        }
        call.replies().integer((gone.len() + kept.len()) as u64);
        match (gone.is_empty(), kept.is_empty()) {
            (true, true) => (),
            // The same for everyone: a claim doesn't depend on the time.
            (false, true) => queue.publish(&[Effect::Finished(gone.len())]),
            (true, false) => queue.publish(&[Effect::Moved(Cause::Finished, &kept)]),
            (false, false) => {
                let gone: Vec<_> = gone.iter().map(|id| id.bytes().into()).collect();
                queue.publish(&[Effect::Left(Leave::Finished, &gone), Effect::Moved(Cause::Finished, &kept)]);
            }
        }
        Ok(())
    }
}
