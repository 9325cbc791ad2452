//! `DQ.RELEASE key id lease [DELAY ms | UNBEGUN] [REASON text]`
//!
//! Gives a job back that was handed out: it waits for DELAY or, without it, for its backoff, and is ready
//! again. After its last attempt it is dead instead. UNBEGUN says that nobody has worked on it: it is ready at
//! once, and the attempt isn't counted. The lease is good for nothing any more. REASON, at most 512 bytes, is
//! kept with the job.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::delivery::Delivery;
use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Cause, Millis};
use crate::redis::call::Call;
use crate::redis::command::Command;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Release<'c> {
    delivery: Delivery<'c>,
    delay: Option<Millis>,
    unbegun: Option<()>,
    reason: Option<&'c [u8]>,
}

impl Command for Release<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.release",
        summary: c"Gives a job back, to be handed out again after a delay or its backoff",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            Delivery::ID,
            Delivery::LEASE,
            ArgSpec::one_of(
                c"when",
                &[ArgSpec::integer(c"milliseconds").token(c"DELAY"), ArgSpec::word(c"unbegun", c"UNBEGUN")],
            )
            .optional(),
            ArgSpec::string(c"text").token(c"REASON").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Release::parse(call)?.apply(call)
    }
}

impl<'c> Release<'c> {
    fn parse(call: &Call<'c>) -> Result<Release<'c>, Error> {
        let mut words = Words::of(call, "dq.release");
        let delivery = Delivery::parse(&mut words)?;
        let (mut delay, mut unbegun, mut reason) = (None, None, None);
        words.options(|name, words| match name {
            "DELAY" => once("DELAY", &mut delay, words.millis("DELAY", 0)?),
            "UNBEGUN" => once("UNBEGUN", &mut unbegun, ()),
            "REASON" => once("REASON", &mut reason, words.reason()?),
            _ => Ok(false),
        })?;
        if delay.is_some() && unbegun.is_some() {
            return Err(Error::Exclusive { one: "DELAY", other: "UNBEGUN" });
        }
        Ok(Release { delivery, delay, unbegun, reason })
    }

    fn apply(self, call: &Call<'c>) -> Result<(), Error> {
        let now = call.now();
        if self.delay.is_some_and(|delay| now.checked_add(delay).is_none()) {
            return Err(Error::PastTheEnd { option: "DELAY" });
        }
        let Delivery { id, claim, .. } = self.delivery;
        self.delivery.act(call, Cause::Released, |queue| match self.unbegun {
            Some(()) => queue.release_unbegun(now, id, claim, self.reason),
            None => queue.release(now, id, claim, self.delay, self.reason),
        })
    }
}
