//! `DQ.TOUCH key id lease [TTR ms]`
//!
//! The work goes on: the lease lasts for TTR or, without it, for the job's own TTR from now on. A job that
//! has been cancelled, replaced or taken over answers 0: that is how a worker learns of it.
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

pub struct Touch<'c> {
    delivery: Delivery<'c>,
    ttr: Option<Millis>,
}

impl Command for Touch<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.touch",
        summary: c"Makes a lease last for a time to run from now on",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            Delivery::ID,
            Delivery::LEASE,
            ArgSpec::integer(c"time-to-run").token(c"TTR").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Touch::parse(call)?.apply(call)
    }
}

impl<'c> Touch<'c> {
    fn parse(call: &Call<'c>) -> Result<Touch<'c>, Error> {
        let mut words = Words::of(call, "dq.touch");
        let delivery = Delivery::parse(&mut words)?;
        let mut ttr = None;
        words.options(|name, words| match name {
            "TTR" => once("TTR", &mut ttr, words.millis("TTR", 1)?),
            _ => Ok(false),
        })?;
        Ok(Touch { delivery, ttr })
    }

    fn apply(self, call: &Call<'c>) -> Result<(), Error> {
        let now = call.now();
        if self.ttr.is_some_and(|ttr| now.checked_add(ttr).is_none()) {
            return Err(Error::PastTheEnd { option: "TTR" });
        }
        let Delivery { id, claim, .. } = self.delivery;
        self.delivery.act(call, Cause::Touched, |queue| queue.touch(now, id, claim, self.ttr))
    }
}
