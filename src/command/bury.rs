//! `DQ.BURY key id lease [REASON text]`
//!
//! The job can't be done: it is dead, and kept for an operator, who kicks or deletes it. REASON, at
//! most 512 bytes, is kept with it.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Change;
use crate::queue;
use crate::server::spec::{KeyUse, Spec};

pub struct Bury;

impl Change for Bury {
    const SPEC: Spec = Spec {
        name: c"dq.bury",
        summary: c"Marks a job as dead: it is kept for an operator to look at",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        grammar: "key id lease [REASON text]",
    };

    type Operation<'c> = queue::Bury<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Bury<'c>, Error> {
        let claim = args.require_claim()?;
        let mut reason = None;
        options!(args, {
            "REASON" => reason, reason();
        });
        Ok(queue::Bury { claim, reason })
    }
}
