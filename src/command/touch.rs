//! `DQ.TOUCH key id lease [TTR ms]`
//!
//! The work goes on: the lease lasts for TTR or, without it, for the job's own TTR from now on. A
//! job that has been cancelled, replaced or taken over answers 0: that is how a worker learns of
//! it.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{reply_whether, Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Accepted, Queue, Time};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Touch;

impl Change for Touch {
    const SPEC: Spec = Spec {
        name: c"dq.touch",
        summary: c"Extends a lease: it lasts its TTR from now",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::ID,
            ArgSpec::LEASE,
            ArgSpec::integer(c"ms").token(c"TTR").optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = queue::Touch<'c>;
    type Outcome = Accepted;
    type Operation<'p> = queue::Touch<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<queue::Touch<'c>, Error> {
        let claim = words.require_claim()?;
        let mut ttr = None;
        options!(words, {
            "TTR" => ttr, millis(1);
        });
        Ok(queue::Touch { claim, ttr })
    }

    fn check(parsed: &queue::Touch, wall_clock: fn() -> Time) -> Result<(), Error> {
        match parsed.ttr {
            Some(ttr) if wall_clock().checked_add(ttr).is_none() => {
                Err(Error::PastTheEnd { option: "TTR" })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn operation<'p>(parsed: &'p queue::Touch<'_>) -> queue::Touch<'p> {
        *parsed
    }

    fn reply(
        _: &queue::Touch,
        accepted: &Accepted,
        _: &Queue,
        replies: Replies,
    ) -> Result<(), Error> {
        reply_whether(*accepted, replies)
    }
}
