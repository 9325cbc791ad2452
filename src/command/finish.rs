//! `DQ.FINISH key id [lease [id lease ...]]`
//!
//! The work is done: takes delivered jobs from the queue. A delivery is named by id and
//! lease; `*` is the job's latest lease, whichever it is, and so is a bare id. A lease stays good
//! after it ran out, until the job is delivered again: then another worker has it, and this answers
//! 0 for it. A job that is not delivered can't be finished, only deleted. A job that was added
//! with KEEP stays, as done.
//!
//! Replies with how many jobs it finished.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::Change;
use crate::queue::{self, Claim, Claims};
use crate::server::spec::{KeyUse, Spec};

pub struct Finish;

impl Change for Finish {
    const SPEC: Spec = Spec {
        name: c"dq.finish",
        summary: c"Removes jobs whose work is done",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        grammar: "key id [lease [id lease ...]]",
    };

    type Operation<'c> = queue::Finish<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Finish<'c>, Error> {
        let mut claims = Claims::with_capacity(args.remaining() / 2);
        if args.remaining() == 1 {
            claims.push(Claim { id: args.require_id()?, lease: None });
        }
        if args.remaining() % 2 == 1 {
            return Err(Error::UnpairedLease);
        }
        while args.remaining() > 0 {
            claims.push(args.require_claim()?);
        }
        Ok(queue::Finish { claims })
    }
}
