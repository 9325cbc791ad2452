//! `DQ.MPOP numkeys key [key ...] [COUNT n] [MIN m LINGER ms] [BLOCK ms] [TTR ms | NOACK] [WITHDUE]
//! [FINISH key n id lease [id lease ...]]`
//!
//! As DQ.POP, from the first of these queues that has a ready job, from left to right. With BLOCK,
//! waits at all of them. All keys have to be queues, or none. The key of FINISH is one of them.
//!
//! Replies with the key and an array of `[id, body, lease, attempt]`; with nil when nothing is
//! ready. WITHDUE adds the due time of each: of a job with a schedule, the time that it runs for,
//! the same at each attempt.
//!
//! O(k) for k keys and O(log n) in the queue's jobs for each job delivered.

use super::arg_reader::ArgReader;
use super::consumer::{Consumer, Keys};
use super::error::Error;
use super::kinds::Handler;
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::keys::opened::OpenedKey;

pub struct MPop;

impl Handler for MPop {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.mpop",
        summary: c"Takes the next ready jobs from the first of several queues that has any",
        complexity: c"O(K+M*log(N)) with K being the number of keys, N the number of jobs in the queue and M the number handed out and finished",
        since: Spec::SINCE_0_1,
        flags: c"write blocking",
        arity: -3,
        key: KeyUse::TakeOfMany,
        grammar: "numkeys key [key ...] [COUNT n] [MIN m LINGER ms] [BLOCK ms] \
            [TTR ms | NOACK] [WITHDUE] \
            [FINISH key n id lease [id lease ...]]",
    };

    /// Logged as the DQ.POP of the queue that had something.
    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, Source::Client);
        let count = args.num_keys()?;
        let keys: Vec<Arg> = (0..count).map(|_| args.require()).collect::<Result<_, _>>()?;
        let mut consumer = Consumer::parse(args, Keys::Several)?;
        if !consumer.finishes_at_one_of(&keys) {
            return Err(Error::FinishKey);
        }
        if !call.are_of_one_slot(&keys) {
            return Err(Error::CrossSlot);
        }
        // A queue that delivers nothing may have changed (LATE, FINISH). So all are looked at
        // before. Where nothing is finished, the first one is anyway.
        let finish_key = consumer.finish_key();
        for key in keys.iter().skip(usize::from(finish_key.is_none())) {
            drop(OpenedKey::at(call, *key, Access::Write)?);
        }
        if let Some(mut opened) =
            finish_key.map(|key| OpenedKey::at(call, key, Access::Write)).transpose()?.flatten()
        {
            consumer.finish(&mut opened);
        }
        for key in keys.iter().copied() {
            if let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? {
                if consumer.deliver_and_log_pop(call, (key, &mut opened)) {
                    return Ok(());
                }
            }
        }
        consumer.wait(call, &keys, Source::Client);
        Ok(())
    }
}
