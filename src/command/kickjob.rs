//! `DQ.KICKJOB key id [id ...]`
//!
//! Makes jobs ready by id: dead ones as DQ.KICK does; delayed ones, which keep their attempts, are
//! due now. Those that are ready, reserved or done stay as they are.
//!
//! Replies with how many it made ready.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::{ArgReader, Ids};
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Kicked, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct KickJob;

impl Change for KickJob {
    const SPEC: Spec = Spec {
        name: c"dq.kickjob",
        summary: c"Makes dead or delayed jobs ready now, by id",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id").multiple()],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = Ids<'c>;
    type Outcome = Kicked;
    type Operation<'p> = queue::KickJob<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<Ids<'c>, Error> {
        words.require_ids()
    }

    fn operation<'p>(ids: &'p Ids<'_>) -> queue::KickJob<'p> {
        queue::KickJob { ids }
    }

    fn reply(_: &Ids, kicked: &Kicked, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.integer(kicked.jobs as u64);
        Ok(())
    }
}
