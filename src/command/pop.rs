//! `DQ.POP key [COUNT n] [BLOCK ms] [TTR ms | NOACK] [WITHDUE] [ID id [id ...]]`
//!
//! Hands out the first ready jobs, by (priority, due time, order of scheduling), at most `n` (1),
//! at most 10,000 or about 16 MiB of bodies in one go. Each is leased: until its TTR runs out, or
//! that given here, nobody else gets it. With NOACK it is finished by being handed out, and comes
//! without a lease.
//!
//! With BLOCK, waits for so long (0 is no limit) until there is at least one; in a transaction or a
//! script it doesn't wait.
//!
//! ID takes these jobs instead, whatever they wait for: for their time, for a retry, for their
//! turn, or to be kicked. Those that are reserved or done, and those that there aren't, are left
//! out. What holds the queue back (PAUSE, CONCURRENCY, RATE) holds them back, too.
//!
//! Replies with an array of `[id, body, lease, attempt]`; with nil when nothing is ready. WITHDUE
//! adds the due time of each: of a job with a schedule, the time that it runs for, the same at each
//! attempt.
//!
//! O(log n) in the queue's jobs for each job handed out.

use super::arg_reader::ArgReader;
use super::consumer::{Consumer, Keys};
use super::error::Error;
use super::kinds::Handler;
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::log::{self, LogForm, LoggedCircumstances};
use crate::services::keys::opened::{source_of, OpenedKey};

pub struct Pop;

impl Handler for Pop {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.pop",
        summary: c"Takes the next ready jobs of a queue, each under a lease",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number handed out",
        since: Spec::SINCE_0_1,
        flags: c"write blocking",
        arity: -2,
        key: KeyUse::Take,
        grammar: "key [COUNT n] [BLOCK ms] [TTR ms | NOACK] [WITHDUE] [ID id [id ...]]",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let source = source_of(call);
        let mut args = ArgReader::of(call, &Self::SPEC, source);
        let key = args.require()?;
        let consumer = Consumer::parse(args, Keys::One)?;
        let has_any = match consumer.by_id() {
            Some(pop) => {
                let ttr = pop.ttr.map_or(String::new(), |ttr| ttr.as_u64().to_string());
                let args = log::pop_by_id_args(&pop, &ttr);
                let log_as = LogForm::Command(log::POP, &args);
                consumer.deliver(call, key, source, &pop, log_as)?
            }
            None => consumer.deliver(call, key, source, &consumer.pop, LogForm::AsSent)?,
        };
        if !has_any {
            consumer.wait(call, &[key], source);
        }
        Ok(())
    }
}

impl Pop {
    /// From an entry of the log, which tells the circumstances. False when there is no such key.
    pub fn replay(
        call: &Call,
        key: Arg,
        args: ArgReader,
        logged: &LoggedCircumstances,
    ) -> Result<bool, Error> {
        let consumer = Consumer::parse(args, Keys::One)?;
        let Some(opened) = OpenedKey::at(call, key, Access::Write)? else {
            return Ok(false);
        };
        match consumer.by_id() {
            Some(by_id) => opened.replay_entry(logged, &by_id),
            None => opened.replay_entry(logged, &consumer.pop),
        }
        Ok(true)
    }
}
