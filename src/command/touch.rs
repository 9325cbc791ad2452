//! `DQ.TOUCH key id lease [TTR ms] [BODY bytes] [NOTE text]`
//!
//! The work goes on: the lease lasts for TTR or, without it, for the job's own TTR from now on. A
//! job that has been cancelled, replaced or taken over answers 0: that is how a worker learns of
//! it.
//!
//! BODY is the job's body from now on, at the next attempt too. NOTE, at most 512 bytes, says how far
//! the job is; an empty one removes it.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Change;
use crate::queue::{self, Checkpoint};
use crate::server::spec::{KeyUse, Spec};

pub struct Touch;

impl Change for Touch {
    const SPEC: Spec = Spec {
        name: c"dq.touch",
        summary: c"Extends a lease: it lasts its TTR from now",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        grammar: "key id lease [TTR ms] [BODY bytes] [NOTE text]",
    };

    type Operation<'c> = queue::Touch<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Touch<'c>, Error> {
        let claim = args.require_claim()?;
        let (mut ttr, mut checkpoint) = (None, Checkpoint::NONE);
        options!(args, {
            "TTR" => ttr, span(1);
            "BODY" => checkpoint.body, body();
            "NOTE" => checkpoint.note, note();
        });
        Ok(queue::Touch { claim, ttr, checkpoint })
    }
}
