//! `DQ.KICKJOB key id [id ...]`
//!
//! Makes jobs ready by id: dead ones as DQ.KICK does; delayed ones, which keep their attempts, are
//! due now. Those that are ready, reserved or done stay as they are.
//!
//! Replies with how many it made ready.
//!
//! O(log n) in the queue's jobs for each id.

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::Change;
use crate::queue;
use crate::server::spec::{KeyUse, Spec};

pub struct KickJob;

impl Change for KickJob {
    const SPEC: Spec = Spec {
        name: c"dq.kickjob",
        summary: c"Makes dead or delayed jobs ready now, by id",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of ids",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Change,
        grammar: "key id [id ...]",
    };

    type Operation<'c> = queue::KickJob<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::KickJob<'c>, Error> {
        Ok(queue::KickJob { ids: args.require_ids()? })
    }
}
