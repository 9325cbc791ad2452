//! `DQ.ALTER key [TTR ms] [ATTEMPTS n] [BACKOFF base-ms max-ms] [KEEP ms] [LATE ms] [MAXJOBS n] [DEADKEEP ms]
//! [CONCURRENCY n] [RATE n per-ms [BURST b]] [GROUPCONCURRENCY n] [GROUPRATE n per-ms [BURST b]]`
//!
//! Sets what a queue gives to jobs that are added from then on without saying so themselves (TTR, ATTEMPTS,
//! BACKOFF, KEEP, LATE), and its limits: how many jobs it holds in whichever states (MAXJOBS; 0 is no limit), for how
//! long dead jobs are kept (DEADKEEP; 0 is for ever), how many leases are live at the same time (CONCURRENCY; 0 is
//! no limit), how many jobs leave in so long (RATE; 0 is no limit), and how many at once (BURST). GROUPCONCURRENCY and
//! GROUPRATE are the same for each group. BURST belongs to the rate before it. What is not named stays as it was. Makes
//! the queue if there is none.
//!
//! Replies with OK.
//!
//! O(1). Other limits for groups: O(g log g) in the number of groups.

use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{self, Altered, Millis, Queue, Rate};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Alter;

const RATE_PARTS: &[ArgSpec] =
    &[ArgSpec::integer(c"n"), ArgSpec::integer(c"per-ms"), ArgSpec::integer(c"b").token(c"BURST").optional()];
const RATE: ArgSpec = ArgSpec::block(c"rate", RATE_PARTS).token(c"RATE").optional();
const GROUP_RATE: ArgSpec = ArgSpec::block(c"group-rate", RATE_PARTS).token(c"GROUPRATE").optional();

impl Change for Alter {
    const SPEC: Spec = Spec {
        name: c"dq.alter",
        summary: c"Sets a queue's limits, and its defaults for jobs added later",
        complexity: c"O(1); O(G*log(G)) with G being the number of groups where their limits change",
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
            ArgSpec::integer(c"n").token(c"GROUPCONCURRENCY").optional(),
            GROUP_RATE,
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Parsed<'c> = queue::Alter;
    type Outcome = Altered;
    type Operation<'p> = queue::Alter;

    fn parse(words: Words) -> Result<queue::Alter, Error> {
        let mut changes = queue::Alter::default();
        let (mut rate, mut group_rate, mut burst) = (RateWords::of("RATE"), RateWords::of("GROUPRATE"), None);
        // BURST is that of the rate before it; of the next one, where none is.
        let mut is_of_groups = None;
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
            "GROUPCONCURRENCY" => {
                let limit = words.small_integer("GROUPCONCURRENCY", 0)?;
                once("GROUPCONCURRENCY", &mut changes.group_concurrency, limit)
            }
            "RATE" => {
                rate.burst = burst.take().or(rate.burst);
                is_of_groups = Some(false);
                rate.read(words)
            }
            "GROUPRATE" => {
                group_rate.burst = burst.take().or(group_rate.burst);
                is_of_groups = Some(true);
                group_rate.read(words)
            }
            "BURST" => {
                let place = match is_of_groups {
                    None => &mut burst,
                    Some(false) => &mut rate.burst,
                    Some(true) => &mut group_rate.burst,
                };
                once("BURST", place, words.small_integer("BURST", 1)?)
            }
            _ => Ok(false),
        })?;
        if burst.is_some() {
            return Err(Error::Needs { option: "BURST", other: "RATE or GROUPRATE" });
        }
        (changes.rate, changes.group_rate) = (rate.rate()?, group_rate.rate()?);
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

/// A rate as it is said.
struct RateWords {
    option: &'static str,
    /// How many, in how long: no rate in any time.
    rate: Option<(u32, Millis)>,
    burst: Option<u32>,
}

impl RateWords {
    fn of(option: &'static str) -> RateWords {
        RateWords { option, rate: None, burst: None }
    }

    fn read(&mut self, words: &mut Words) -> Result<bool, Error> {
        words.pair(self.option, "n per-ms")?;
        let jobs = words.small_integer(self.option, 0)?;
        once(self.option, &mut self.rate, (jobs, words.millis(self.option, u64::from(jobs > 0))?))
    }

    fn rate(&self) -> Result<Option<Option<Rate>>, Error> {
        match (self.rate, self.burst) {
            (None, _) => Ok(None),
            (Some((0, _)), None) => Ok(Some(None)),
            (Some((0, _)), Some(_)) => {
                let one = if self.option == "RATE" { "RATE 0" } else { "GROUPRATE 0" };
                Err(Error::Exclusive { one, other: "BURST" })
            }
            (Some((jobs, per)), burst) => match Rate::new(jobs, per, burst.unwrap_or(1)) {
                None => Err(Error::BurstLength { option: self.option }),
                rate => Ok(Some(rate)),
            },
        }
    }
}
