//! `DQ.DEL key id [id ...]`
//!
//! Cancels jobs: removes them from the queue, whatever their state. A worker that holds one finds
//! its lease void.
//!
//! Replies with how many jobs it removed.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::Change;
use crate::queue::{Removal, Remove};
use crate::server::spec::{KeyUse, Spec};

pub struct Del;

impl Change for Del {
    const SPEC: Spec = Spec {
        name: c"dq.del",
        summary: c"Removes jobs from a queue, whatever their state",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Remove,
        grammar: "key id [id ...]",
    };

    type Operation<'c> = Remove<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<Remove<'c>, Error> {
        Ok(Remove { ids: args.require_ids()?, counted_as: Removal::Deleted })
    }
}
