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
use super::kinds::{reply_whether, Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Accepted, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Bury;

impl Change for Bury {
    const SPEC: Spec = Spec {
        name: c"dq.bury",
        summary: c"Marks a job as dead: it is kept for an operator to look at",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::ID,
            ArgSpec::LEASE,
            ArgSpec::string(c"text").token(c"REASON").optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = queue::Bury<'c>;
    type Outcome = Accepted;
    type Operation<'p> = queue::Bury<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<queue::Bury<'c>, Error> {
        let claim = words.require_claim()?;
        let mut reason = None;
        options!(words, {
            "REASON" => reason, reason();
        });
        Ok(queue::Bury { claim, reason })
    }

    fn operation<'p>(parsed: &'p queue::Bury<'_>) -> queue::Bury<'p> {
        *parsed
    }

    fn reply(
        _: &queue::Bury,
        accepted: &Accepted,
        _: &Queue,
        replies: Replies,
    ) -> Result<(), Error> {
        reply_whether(*accepted, replies)
    }
}
