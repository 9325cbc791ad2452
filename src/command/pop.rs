//! `DQ.POP key [COUNT n] [MIN m LINGER ms] [BLOCK ms] [TTR ms | NOACK] [WITHDUE] [ID id [id ...]]
//! [FINISH n id lease [id lease ...]]`
//!
//! Delivers the first ready jobs, by (priority, due time, order of scheduling), at most `n` (1),
//! at most 10,000 or about 16 MiB of bodies in one go. Each is leased: until its TTR runs out, or
//! that given here, no other client gets it. With NOACK it is finished by being delivered, and comes
//! without a lease.
//!
//! With BLOCK, waits for so long (0 is no limit) until there is at least one; in a transaction or a
//! script it doesn't wait.
//!
//! With MIN and LINGER, delivers nothing until m jobs may go, or the first of them has been ready for
//! so long.
//!
//! ID takes these jobs instead, whatever they wait for: for their time, for a retry, for their
//! turn, or to be kicked. Those that are reserved or done, and those that there aren't, are left
//! out. What holds the queue back (PAUSE, CONCURRENCY, RATE) holds them back, too.
//!
//! FINISH finishes these n jobs before, as DQ.FINISH does, whether or not there is another one; it is
//! not for ID. The reply is then an array of two: how many it finished, and the reply without it.
//!
//! Replies with an array of `[id, body, lease, attempt]`; with nil when nothing is ready. WITHDUE
//! adds the due time of each: of a job with a schedule, the time that it runs for, the same at each
//! attempt.
//!
//! O(log n) in the queue's jobs for each job delivered.

use super::arg_reader::ArgReader;
use super::consumer::{Consumer, Keys};
use super::error::Error;
use super::kinds::{replay_at, report_entry, Handler};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::change::log::{self, LogForm, LoggedCircumstances};
use crate::services::keys::opened::{source_of, OpenedKey};

pub struct Pop;

impl Handler for Pop {
    type Error = Error;
    const ON_ERROR: fn(&Call, &Error) = report_entry::<Self>;
    const SPEC: Spec = Spec {
        name: c"dq.pop",
        summary: c"Takes the next ready jobs of a queue, each under a lease",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number handed out and finished",
        since: Spec::SINCE_0_1,
        flags: c"write blocking",
        arity: -2,
        key: KeyUse::Take,
        grammar: "key [COUNT n] [MIN m LINGER ms] [BLOCK ms] [TTR ms | NOACK] [WITHDUE] \
            [ID id [id ...]] \
            [FINISH n id lease [id lease ...]]",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let source = source_of(call);
        let mut args = ArgReader::of(call, &Self::SPEC, source);
        let key = args.require()?;
        let mut consumer = Consumer::parse(args, Keys::One)?;
        let has_any = match OpenedKey::at(call, key, Access::Write)? {
            Some(mut opened) => serve(call, &mut consumer, (key, &mut opened), source),
            None => false,
        };
        if !has_any {
            consumer.wait(call, &[key], source);
        }
        Ok(())
    }
}

/// False, without a reply, when there is nothing.
fn serve(
    call: &Call,
    consumer: &mut Consumer,
    opened: (Arg, &mut OpenedKey),
    source: Source,
) -> bool {
    if let Some(pop) = consumer.by_id() {
        let ttr = pop.ttr.map_or(String::new(), |ttr| ttr.as_u64().to_string());
        let args = log::pop_by_id_args(&pop, &ttr);
        return consumer.deliver(call, opened, source, &pop, LogForm::Command(log::POP, &args));
    }
    if consumer.has_finish() {
        return consumer.finish_and_deliver(call, opened, source);
    }
    if consumer.has_batch() {
        return consumer.deliver_and_log_pop(call, opened);
    }
    consumer.deliver(call, opened, source, &consumer.pop, LogForm::AsSent)
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
        let opened = OpenedKey::at(call, key, Access::Write)?;
        let pop = consumer.pop;
        Ok(if let Some(by_id) = consumer.by_id() {
            replay_at(opened, logged, &by_id)
        } else if let Some(both) = consumer.into_finish_and_pop() {
            replay_at(opened, logged, &both)
        } else {
            replay_at(opened, logged, &pop)
        })
    }
}
