//! `DQ.POP key [COUNT n] [BLOCK ms] [TTR ms] [NOACK]`
//!
//! Hands out the first ready jobs, by (priority, due time, order of scheduling), at most `n` (1), at most
//! 10,000 or about 16 MiB of bodies in one go. Each is leased: until its TTR runs out, or that given here,
//! nobody else gets it. With NOACK it is finished by being handed out, and comes without a lease.
//!
//! With BLOCK, waits for so long (0 is no limit) until there is at least one; in a transaction or a script it
//! doesn't wait.
//!
//! Replies with an array of `[id, body, lease, attempt]`; with nil when nothing is ready.
//!
//! O(log n) in the queue's jobs for each job handed out.

use super::consumer::Consumer;
use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};
use crate::redis::waiting::Shape;

pub struct Pop<'c> {
    key: Arg<'c>,
    consumer: Consumer,
}

impl Command for Pop<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.pop",
        summary: c"Hands out the first ready jobs of a queue, each with a lease",
        complexity: c"O(M*log(N)) with N being the number of jobs in the queue and M the number handed out",
        since: SINCE_0_1,
        flags: c"write blocking",
        arity: -2,
        key: KeyUse::Take,
        args: &[ArgSpec::KEY, Consumer::COUNT, Consumer::BLOCK, Consumer::TTR, Consumer::NOACK],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Pop::parse(call)?.apply(call)
    }
}

impl<'c> Pop<'c> {
    fn parse(call: &Call<'c>) -> Result<Pop<'c>, Error> {
        let mut words = Words::of(call, "dq.pop");
        let key = words.require()?;
        Ok(Pop { key, consumer: Consumer::parse(words)? })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        self.consumer.check(now)?;
        if !self.consumer.take_from(call, self.key, Shape::Jobs, now)? {
            self.consumer.wait(call, &[self.key], Shape::Jobs);
        }
        Ok(())
    }
}
