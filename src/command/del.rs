//! `DQ.DEL key id [id ...]`
//!
//! Cancels jobs: removes them from the queue, whatever their state. A worker that holds one finds
//! its lease void.
//!
//! Replies with how many jobs it removed.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::{ArgReader, Ids};
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Deleted, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Del;

impl Change for Del {
    const SPEC: Spec = Spec {
        name: c"dq.del",
        summary: c"Removes jobs from a queue, whatever their state",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        args: &[ArgSpec::KEY, ArgSpec::string(c"id").multiple()],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = Ids<'c>;
    type Outcome = Deleted;
    type Operation<'p> = queue::Delete<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<Ids<'c>, Error> {
        words.require_ids()
    }

    fn operation<'p>(ids: &'p Ids<'_>) -> queue::Delete<'p> {
        queue::Delete { ids }
    }

    fn reply(_: &Ids, deleted: &Deleted, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.integer(deleted.jobs as u64);
        Ok(())
    }
}
