//! `DQ.ALTER key [TTR ms] [ATTEMPTS n] [BACKOFF base-ms max-ms] [KEEP ms] [MAXJOBS n] [DEADKEEP ms]`
//!
//! Sets what a queue gives to jobs that are added from then on without saying so themselves (TTR, ATTEMPTS,
//! BACKOFF, KEEP), and its limits: how many jobs it holds in whichever states (MAXJOBS; 0 is no limit), and
//! for how long dead jobs are kept (DEADKEEP; 0 is for ever). What is not named stays as it was. Makes the
//! queue if there is none.
//!
//! Replies with OK.
//!
//! O(1).

use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{self, Altered, Queue};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Alter;

impl Change for Alter {
    const SPEC: Spec = Spec {
        name: c"dq.alter",
        summary: c"Sets a queue's limits, and its defaults for jobs added later",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::integer(c"ms").token(c"TTR").optional(),
            ArgSpec::integer(c"n").token(c"ATTEMPTS").optional(),
            ArgSpec::BACKOFF,
            ArgSpec::integer(c"ms").token(c"KEEP").optional(),
            ArgSpec::integer(c"n").token(c"MAXJOBS").optional(),
            ArgSpec::integer(c"ms").token(c"DEADKEEP").optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Parsed<'c> = queue::Alter;
    type Outcome = Altered;
    type Operation<'p> = queue::Alter;

    fn parse(words: Words) -> Result<queue::Alter, Error> {
        let mut changes = queue::Alter::default();
        words.options(|name, words| match name {
            "TTR" => once("TTR", &mut changes.ttr, words.millis("TTR", 1)?),
            "ATTEMPTS" => once("ATTEMPTS", &mut changes.attempts, words.attempts()?),
            "BACKOFF" => once("BACKOFF", &mut changes.backoff, words.backoff()?),
            "KEEP" => once("KEEP", &mut changes.keep, words.millis("KEEP", 0)?),
            "MAXJOBS" => {
                once("MAXJOBS", &mut changes.max_jobs, words.integer("MAXJOBS", 0, u32::MAX.into())?)
            }
            "DEADKEEP" => once("DEADKEEP", &mut changes.dead_keep, words.millis("DEADKEEP", 0)?),
            _ => Ok(false),
        })?;
        Ok(changes)
    }

    fn operation(parsed: &queue::Alter) -> queue::Alter {
        *parsed
    }

    fn reply(_: &queue::Alter, _: &Altered, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.ok();
        Ok(())
    }
}
