//! `DQ.INFO key`
//!
//! Shows a queue. Replies with a map, nil when there is no such key:
//!
//! | field | value |
//! | --- | --- |
//! | `default-ttr`, `default-attempts` | what a job gets that is added without |
//! | `jobs` | how many there are: `delayed`, `ready`, `reserved` and `dead` together |
//! | `next-due` | unix milliseconds: when the next job is due or the next lease ends; nil when nothing waits |
//! | `last-lease` | the highest lease given; nil before the first |
//! | `memory` | bytes |
//! | `total-added`, `total-replaced`, `total-popped`, `total-finished`, `total-deleted` | jobs since the queue was made |
//! | `total-timed-out` | leases that ran out and whose job was then handed out again |
//!
//! O(1) in the number of jobs.

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::Queue;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::config;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Info<'c> {
    key: Arg<'c>,
}

impl Command for Info<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.info",
        summary: c"Shows a queue: settings, counts by state, totals, next due",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"readonly fast",
        arity: 2,
        key: KeyUse::Read,
        args: &[ArgSpec::KEY],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Info::parse(call)?.apply(call)
    }
}

impl<'c> Info<'c> {
    fn parse(call: &Call<'c>) -> Result<Info<'c>, Error> {
        let mut words = Words::of(call, "dq.info");
        let key = words.require()?;
        words.end()?;
        Ok(Info { key })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        match OpenQueue::open(call, self.key, Access::Read)? {
            Some(mut queue) => {
                queue.advance(call.now());
                reply(call, &queue);
            }
            None => call.reply_null(),
        }
        Ok(())
    }
}

fn reply(call: &Call, queue: &Queue) {
    let (counts, totals) = (queue.counts(), queue.totals());
    call.reply_map(16);
    call.reply_field("default-ttr", config::default_ttr().as_u64());
    call.reply_field("default-attempts", u64::from(config::default_attempts().limit()));
    call.reply_field("jobs", queue.len() as u64);
    call.reply_field("delayed", counts.delayed as u64);
    call.reply_field("ready", counts.ready as u64);
    call.reply_field("reserved", counts.reserved as u64);
    call.reply_field("dead", counts.dead as u64);
    call.reply_field("next-due", queue.next_change().map(|time| time.unix_ms()));
    call.reply_field("last-lease", queue.last_lease().map(|lease| lease.number()));
    call.reply_field("memory", queue.memory() as u64);
    call.reply_field("total-added", totals.added);
    call.reply_field("total-replaced", totals.replaced);
    call.reply_field("total-popped", totals.popped);
    call.reply_field("total-timed-out", totals.timed_out);
    call.reply_field("total-finished", totals.finished);
    call.reply_field("total-deleted", totals.deleted);
}
