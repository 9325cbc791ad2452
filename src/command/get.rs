//! `DQ.GET key id`
//!
//! Shows a job. Replies with a map, nil when there is no such job:
//!
//! | field | value |
//! | --- | --- |
//! | `id`, `body` | as they were added |
//! | `state` | `delayed`, `ready`, `reserved` or `dead` |
//! | `due` | unix milliseconds: when it is or was due; for a reserved job the end of its lease, for a dead one when it died |
//! | `priority`, `ttr`, `attempts` | as resolved when it was added; `attempts` 0 is no limit |
//! | `attempt` | how often it was handed out so far |
//! | `lease` | the number of its latest lease; nil before the first |
//! | `created` | unix milliseconds of the ADD |
//!
//! O(log n) in the queue's jobs.

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::{Id, JobView, Time};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Get<'c> {
    key: Arg<'c>,
    id: Id<'c>,
}

impl Command for Get<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.get",
        summary: c"Shows a job of a queue",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"readonly fast",
        arity: 3,
        key: KeyUse::Read,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id")],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Get::parse(call)?.apply(call)
    }
}

impl<'c> Get<'c> {
    fn parse(call: &Call<'c>) -> Result<Get<'c>, Error> {
        let mut words = Words::of(call, "dq.get");
        let (key, id) = (words.require()?, words.require_id()?);
        words.end()?;
        Ok(Get { key, id })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Read)? else {
            call.reply_null();
            return Ok(());
        };
        let now = queue.advance(call.now());
        match queue.get(self.id) {
            Some(job) => reply(call, &job, now),
            None => call.reply_null(),
        }
        Ok(())
    }
}

fn reply(call: &Call, job: &JobView, now: Time) {
    call.reply_map(10);
    call.reply_field("id", job.id.bytes());
    call.reply_field("body", job.body);
    call.reply_field("state", job.state(now).name().as_bytes());
    call.reply_field("due", job.time.unix_ms());
    call.reply_field("priority", u64::from(job.policy.priority));
    call.reply_field("ttr", job.policy.ttr.as_u64());
    call.reply_field("attempts", u64::from(job.policy.attempts.limit()));
    call.reply_field("attempt", job.delivery.map_or(0, |delivery| u64::from(delivery.attempt)));
    call.reply_field("lease", job.delivery.map(|delivery| delivery.lease.number()));
    call.reply_field("created", job.created.unix_ms());
}
