//! `DQ.FINISH key id [lease [id lease ...]]`
//!
//! The work is done: takes jobs that were handed out from the queue. A delivery is named by id and
//! lease; `*` is the job's latest lease, whichever it is, and so is a bare id. A lease stays good
//! after it ran out, until the job is handed out again: then somebody else has it, and this answers
//! 0 for it. A job that is not handed out can't be finished, only deleted. A job that was added
//! with KEEP stays, as done.
//!
//! Replies with how many jobs it finished.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::since::SINCE_0_1;
use smallvec::{smallvec, SmallVec};

use crate::queue::{self, Claim, Finished, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Finish;

/// Most often one.
type Claims<'c> = SmallVec<[Claim<'c>; 2]>;

const LEASE: ArgSpec = ArgSpec::string(c"lease");

impl Change for Finish {
    const SPEC: Spec = Spec {
        name: c"dq.finish",
        summary: c"Removes jobs whose work is done",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        args: &[
            ArgSpec::KEY,
            ArgSpec::string(c"id"),
            ArgSpec::block(
                c"leases",
                &[
                    LEASE,
                    ArgSpec::block(c"delivery", &[ArgSpec::string(c"id"), LEASE])
                        .optional()
                        .multiple(),
                ],
            )
            .optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = Claims<'c>;
    type Outcome = Finished;
    type Operation<'p> = queue::Finish<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<Claims<'c>, Error> {
        if words.remaining() == 1 {
            return Ok(smallvec![Claim { id: words.require_id()?, lease: None }]);
        }
        if words.remaining() % 2 == 1 {
            return Err(Error::UnpairedLease);
        }
        let mut claims = Claims::with_capacity(words.remaining() / 2);
        while words.remaining() > 0 {
            claims.push(words.require_claim()?);
        }
        Ok(claims)
    }

    fn operation<'p>(claims: &'p Claims<'_>) -> queue::Finish<'p> {
        queue::Finish { claims }
    }

    fn reply(_: &Claims, finished: &Finished, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.integer(finished.jobs as u64);
        Ok(())
    }
}
