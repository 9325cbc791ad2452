//! `DQ.KICKJOB key id [id ...]`
//!
//! Makes jobs ready by id: dead ones as DQ.KICK does; delayed ones, which keep their attempts, are due now.
//! Those that are ready, reserved or done stay as they are.
//!
//! Replies with how many it made ready.
//!
//! O(log n) in the queue's jobs for each id.

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::{Cause, Id, Slot};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct KickJob<'c> {
    key: Arg<'c>,
    ids: Vec<Id<'c>>,
}

impl Command for KickJob<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.kickjob",
        summary: c"Makes dead or delayed jobs ready, by id",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id").multiple()],
    };

    fn run(call: &Call) -> Result<(), Error> {
        KickJob::parse(call)?.apply(call)
    }
}

impl<'c> KickJob<'c> {
    fn parse(call: &Call<'c>) -> Result<KickJob<'c>, Error> {
        let mut words = Words::of(call, "dq.kickjob");
        let key = words.require()?;
        Ok(KickJob { key, ids: words.require_ids()? })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let kicked: Vec<Slot> = self.ids.iter().filter_map(|id| queue.kick_job(now, *id)).collect();
        call.replies().integer(kicked.len() as u64);
        if !kicked.is_empty() {
            queue.publish(&[Effect::Moved(Cause::Kicked, &kicked)]);
        }
        Ok(())
    }
}
