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

use std::num::NonZeroU64;

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Attempts, Backoff, Millis, Settings};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::OpenQueue;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Alter<'c> {
    key: Arg<'c>,
    changes: Changes,
}

#[derive(Default)]
struct Changes {
    ttr: Option<Millis>,
    attempts: Option<Attempts>,
    backoff: Option<Backoff>,
    keep: Option<Millis>,
    max_jobs: Option<u64>,
    dead_keep: Option<Millis>,
}

impl Command for Alter<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.alter",
        summary: c"Sets a queue's defaults for jobs that are added, and its limits",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -3,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::integer(c"time-to-run").token(c"TTR").optional(),
            ArgSpec::integer(c"attempts").token(c"ATTEMPTS").optional(),
            ArgSpec::BACKOFF,
            ArgSpec::integer(c"keep-milliseconds").token(c"KEEP").optional(),
            ArgSpec::integer(c"jobs").token(c"MAXJOBS").optional(),
            ArgSpec::integer(c"dead-milliseconds").token(c"DEADKEEP").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Alter::parse(call)?.apply(call)
    }
}

impl<'c> Alter<'c> {
    fn parse(call: &Call<'c>) -> Result<Alter<'c>, Error> {
        let mut words = Words::of(call, "dq.alter");
        let key = words.require()?;
        let mut changes = Changes::default();
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
        Ok(Alter { key, changes })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        let mut queue = OpenQueue::open_or_create(call, self.key)?;
        queue.advance(now);
        let settings = self.changes.applied_to(queue.settings());
        queue.alter(settings);
        call.replies().ok();
        queue.publish(&[Effect::Altered]);
        Ok(())
    }
}

impl Changes {
    fn applied_to(&self, before: &Settings) -> Settings {
        Settings {
            ttr: self.ttr.or(before.ttr),
            attempts: self.attempts.or(before.attempts),
            backoff: self.backoff.unwrap_or(before.backoff),
            keep: self.keep.unwrap_or(before.keep),
            max_jobs: self.max_jobs.map_or(before.max_jobs, NonZeroU64::new),
            dead_keep: self.dead_keep.unwrap_or(before.dead_keep),
        }
    }
}
