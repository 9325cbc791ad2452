//! `DQ.MPOP numkeys key [key ...] [COUNT n] [BLOCK ms] [TTR ms | NOACK] [WITHDUE]`
//!
//! As DQ.POP, from the first of these queues that has a ready job, from left to right. With BLOCK,
//! waits at all of them. All keys have to be queues, or none.
//!
//! Replies with the key and an array of `[id, body, lease, attempt]`; with nil when nothing is
//! ready. WITHDUE adds the due time of each: of a job with a schedule, the time that it runs for,
//! the same at each attempt.
//!
//! O(k) for k keys and O(log n) in the queue's jobs for each job handed out.

use super::arg_reader::ArgReader;
use super::consumer::{Consumer, Keys};
use super::error::Error;
use super::kinds::Handler;
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::change::log::{self, LogForm};
use crate::services::keys::opened::OpenedKey;

pub struct MPop;

impl Handler for MPop {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.mpop",
        summary: c"Takes the next ready jobs from the first of several queues that has any",
        complexity: c"O(K+M*log(N)) with K being the number of keys, N the number of jobs in the queue and M the number handed out",
        since: Spec::SINCE_0_1,
        flags: c"write blocking",
        arity: -3,
        key: KeyUse::TakeOfMany,
        grammar: "numkeys key [key ...] [COUNT n] [BLOCK ms] [TTR ms | NOACK] [WITHDUE]",
    };

    /// Logged as the DQ.POP of the queue that had something.
    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, Source::Client);
        let count = args.num_keys()?;
        let keys: Vec<Arg> = (0..count).map(|_| args.require()).collect::<Result<_, _>>()?;
        let consumer = Consumer::parse(args, Keys::Several)?;
        if !call.are_of_one_slot(&keys) {
            return Err(Error::CrossSlot);
        }
        // A queue that hands out nothing may have changed (LATE). So the others are looked at
        // before; the first one is anyway.
        for key in keys.iter().skip(1) {
            drop(OpenedKey::at(call, *key, Access::Write)?);
        }
        let args = log::pop_args(&consumer.pop);
        let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        for key in &keys {
            let log_as = LogForm::Command(log::POP, &args);
            if consumer.deliver(call, *key, Source::Client, &consumer.pop, log_as)? {
                return Ok(());
            }
        }
        consumer.wait(call, &keys, Source::Client);
        Ok(())
    }
}
