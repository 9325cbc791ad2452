//! `DQ.POP key [COUNT n] [TTR ms]`
//!
//! Hands out the first ready jobs, by (priority, due time, order of scheduling), at most `n` (1), at most
//! 10,000 or about 16 MiB of bodies in one go. Each is leased: until its TTR runs out, or that given here,
//! nobody else gets it.
//!
//! Replies with an array of `[id, body, lease, attempt]`; with nil when nothing is ready.
//!
//! O(log n) in the queue's jobs for each job handed out.

use super::effect::{publish, Effect};
use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Handout, Millis, Time};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

/// A call that hands out more would hold up the others.
const BATCH_JOBS_MAX: usize = 10_000;
/// No further job is taken once so many bytes of bodies are together.
const BATCH_BYTES_MAX: usize = 16 << 20;

pub struct Pop<'c> {
    key: Arg<'c>,
    count: usize,
    ttr: Option<Millis>,
}

impl Command for Pop<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.pop",
        summary: c"Hands out the first ready jobs of a queue, each with a lease",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number handed out",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Take,
        args: &[
            ArgSpec::KEY,
            ArgSpec::integer(c"count").token(c"COUNT").optional(),
            ArgSpec::integer(c"time-to-run").token(c"TTR").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Pop::parse(call)?.apply(call)
    }
}

impl<'c> Pop<'c> {
    fn parse(call: &Call<'c>) -> Result<Pop<'c>, Error> {
        let mut words = Words::of(call, "dq.pop");
        let key = words.require()?;
        let (mut count, mut ttr) = (None, None);
        words.options(|name, words| match name {
            "COUNT" => once("COUNT", &mut count, words.count()?),
            "TTR" => once("TTR", &mut ttr, words.millis("TTR", 1)?),
            _ => Ok(false),
        })?;
        let count = count.unwrap_or(1).min(BATCH_JOBS_MAX);
        Ok(Pop { key, count, ttr })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        if self.ttr.is_some_and(|ttr| now.checked_add(ttr).is_none()) {
            return Err(Error::PastTheEnd { option: "TTR" });
        }
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.reply_null();
            return Ok(());
        };
        let handouts = self.take(call, &mut queue, now);
        if handouts.is_empty() {
            call.reply_null();
            return Ok(());
        }
        reply(call, &queue, &handouts);
        publish(call, self.key, &mut queue, &Effect::Leased(&handouts));
        Ok(())
    }

    fn take(&self, call: &Call, queue: &mut OpenQueue, now: Time) -> Vec<Handout> {
        let mut handouts = Vec::new();
        let mut bytes = 0;
        while handouts.len() < self.count && bytes < BATCH_BYTES_MAX {
            let Some(handout) = queue.pop(now, self.ttr, call.lease_floor(now)) else {
                break;
            };
            call.saw_lease(handout.lease, now);
            bytes += queue.id_and_body(handout.slot).map_or(0, |(_, body)| body.len());
            handouts.push(handout);
        }
        handouts
    }
}

fn reply(call: &Call, queue: &OpenQueue, handouts: &[Handout]) {
    call.reply_array(handouts.len());
    for handout in handouts {
        let (id, body) =
            queue.id_and_body(handout.slot).map(|(id, body)| (id.bytes(), body)).unwrap_or_default();
        call.reply_array(4);
        call.reply_bulk(id);
        call.reply_bulk(body);
        call.reply_integer(handout.lease.number());
        call.reply_integer(handout.attempt.into());
    }
}
