//! `DQ.ALTER key [TTR ms] [ATTEMPTS n] [BACKOFF base-ms max-ms] [KEEP ms] [LATE ms] [MAXJOBS n] [DEADKEEP ms]
//! [CONCURRENCY n] [RATE n per-ms [BURST b]]`
//!
//! Sets what a queue gives to jobs that are added from then on without saying so themselves (TTR, ATTEMPTS,
//! BACKOFF, KEEP, LATE), and its limits: how many jobs it holds in whichever states (MAXJOBS; 0 is no limit), for how
//! long dead jobs are kept (DEADKEEP; 0 is for ever), how many leases are live at the same time (CONCURRENCY; 0 is
//! no limit), how many jobs leave in so long (RATE; 0 is no limit), and how many at once (BURST). What is not named
//! stays as it was. Makes the queue if there is none.
//!
//! Replies with OK.
//!
//! O(1).

use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{self, Altered, Millis, Queue, Rate};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Alter;

const RATE: ArgSpec = ArgSpec::block(
    c"rate",
    &[ArgSpec::integer(c"n"), ArgSpec::integer(c"per-ms"), ArgSpec::integer(c"b").token(c"BURST").optional()],
)
.token(c"RATE")
.optional();

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
            ArgSpec::integer(c"ms").token(c"LATE").optional(),
            ArgSpec::integer(c"n").token(c"MAXJOBS").optional(),
            ArgSpec::integer(c"ms").token(c"DEADKEEP").optional(),
            ArgSpec::integer(c"n").token(c"CONCURRENCY").optional(),
            RATE,
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Parsed<'c> = queue::Alter;
    type Outcome = Altered;
    type Operation<'p> = queue::Alter;

    fn parse(words: Words) -> Result<queue::Alter, Error> {
        let mut changes = queue::Alter::default();
        let (mut rate, mut burst) = (None, None);
        words.options(|name, words| match name {
            "TTR" => once("TTR", &mut changes.ttr, words.millis("TTR", 1)?),
            "ATTEMPTS" => once("ATTEMPTS", &mut changes.attempts, words.attempts()?),
            "BACKOFF" => once("BACKOFF", &mut changes.backoff, words.backoff()?),
            "KEEP" => once("KEEP", &mut changes.keep, words.millis("KEEP", 0)?),
            "LATE" => once("LATE", &mut changes.late, words.millis("LATE", 0)?),
            "MAXJOBS" => {
                once("MAXJOBS", &mut changes.max_jobs, words.integer("MAXJOBS", 0, u32::MAX.into())?)
            }
            "DEADKEEP" => once("DEADKEEP", &mut changes.dead_keep, words.millis("DEADKEEP", 0)?),
            "CONCURRENCY" => {
                once("CONCURRENCY", &mut changes.concurrency, words.small_integer("CONCURRENCY", 0)?)
            }
            "RATE" => once("RATE", &mut rate, rate_words(words)?),
            "BURST" => once("BURST", &mut burst, words.small_integer("BURST", 1)?),
            _ => Ok(false),
        })?;
        changes.rate = read_rate(rate, burst)?;
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

/// How many, in how long: no rate in any time.
fn rate_words(words: &mut Words) -> Result<(u32, Millis), Error> {
    let jobs = words.small_integer("RATE", 0)?;
    Ok((jobs, words.millis("RATE", u64::from(jobs > 0))?))
}

fn read_rate(rate: Option<(u32, Millis)>, burst: Option<u32>) -> Result<Option<Option<Rate>>, Error> {
    match (rate, burst) {
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::Needs { option: "BURST", other: "RATE" }),
        (Some((0, _)), None) => Ok(Some(None)),
        (Some((0, _)), Some(_)) => Err(Error::Exclusive { one: "RATE 0", other: "BURST" }),
        (Some((jobs, per)), burst) => match Rate::new(jobs, per, burst.unwrap_or(1)) {
            None => Err(Error::BurstLength),
            rate => Ok(Some(rate)),
        },
    }
}
