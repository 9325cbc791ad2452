//! `DQ.MPOP numkeys key [key ...] [COUNT n] [BLOCK ms] [TTR ms] [NOACK]`
//!
//! As DQ.POP, from the first of these queues that has a ready job, from left to right. With BLOCK, waits at
//! all of them.
//!
//! Replies with the key and an array of `[id, body, lease, attempt]`; with nil when nothing is ready.
//!
//! O(k) for k keys and O(log n) in the queue's jobs for each job handed out.

use super::consumer::Consumer;
use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};
use crate::redis::waiting::Shape;

pub struct MPop<'c> {
    keys: Vec<Arg<'c>>,
    consumer: Consumer,
}

impl Command for MPop<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.mpop",
        summary: c"Hands out the first ready jobs of the first of several queues that has one",
        complexity: c"O(K+M*log(N)) with K being the number of keys, N that of jobs in the queue and M that of jobs handed out",
        since: SINCE_0_1,
        flags: c"write blocking getkeys-api",
        arity: -3,
        key: KeyUse::TakeOfMany,
        args: &[
            ArgSpec::integer(c"numkeys"),
            ArgSpec::KEY.multiple(),
            Consumer::COUNT,
            Consumer::BLOCK,
            Consumer::TTR,
            Consumer::NOACK,
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        MPop::parse(call)?.apply(call)
    }
}

impl<'c> MPop<'c> {
    fn parse(call: &Call<'c>) -> Result<MPop<'c>, Error> {
        let mut words = Words::of(call, "dq.mpop");
        let count = words.num_keys()?;
        let keys = (0..count).map(|_| words.require()).collect::<Result<_, _>>()?;
        Ok(MPop { keys, consumer: Consumer::parse(words)? })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        self.consumer.check(now)?;
        for key in &self.keys {
            if self.consumer.take_from(call, *key, Shape::KeyAndJobs, now)? {
                return Ok(());
            }
        }
        self.consumer.wait(call, &self.keys, Shape::KeyAndJobs);
        Ok(())
    }
}
