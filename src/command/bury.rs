//! `DQ.BURY key id lease [REASON text]`
//!
//! The job can't be done: it is dead, and kept for an operator, who kicks or deletes it. REASON, at most 512
//! bytes, is kept with it.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::delivery::Delivery;
use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::Cause;
use crate::redis::call::Call;
use crate::redis::command::Command;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Bury<'c> {
    delivery: Delivery<'c>,
    reason: Option<&'c [u8]>,
}

impl Command for Bury<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.bury",
        summary: c"Puts a job aside as dead, for an operator to look at",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            Delivery::ID,
            Delivery::LEASE,
            ArgSpec::string(c"text").token(c"REASON").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Bury::parse(call)?.apply(call)
    }
}

impl<'c> Bury<'c> {
    fn parse(call: &Call<'c>) -> Result<Bury<'c>, Error> {
        let mut words = Words::of(call, "dq.bury");
        let delivery = Delivery::parse(&mut words)?;
        let mut reason = None;
        words.options(|name, words| match name {
            "REASON" => once("REASON", &mut reason, words.reason()?),
            _ => Ok(false),
        })?;
        Ok(Bury { delivery, reason })
    }

    fn apply(self, call: &Call<'c>) -> Result<(), Error> {
        let now = call.now();
        let Delivery { id, claim, .. } = self.delivery;
        self.delivery.act(call, Cause::Buried, |queue| queue.bury(now, id, claim, self.reason))
    }
}
