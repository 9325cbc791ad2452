//! `DQ.RELEASE key id lease [DELAY ms | UNBEGUN] [PRIORITY 0..255] [REASON text]`
//!
//! Gives a job back that was handed out: it waits for DELAY or, without it, for its backoff, and is
//! ready again. After its last attempt it is dead instead. UNBEGUN says that nobody has worked on
//! it: it is ready at once, and the attempt isn't counted. The lease is good for nothing any more.
//! REASON, at most 512 bytes, is kept with the job. PRIORITY is the job's from here on, also if it
//! is dead.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{reply_whether, Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Accepted, Queue, Time, WhenReleased};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Release;

impl Change for Release {
    const SPEC: Spec = Spec {
        name: c"dq.release",
        summary: c"Gives a job back, to be tried again after its backoff or a delay",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::ID,
            ArgSpec::LEASE,
            ArgSpec::one_of(
                c"when",
                &[ArgSpec::integer(c"ms").token(c"DELAY"), ArgSpec::word(c"unbegun", c"UNBEGUN")],
            )
            .optional(),
            ArgSpec::PRIORITY,
            ArgSpec::string(c"text").token(c"REASON").optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::REPLY_ZERO;

    type Parsed<'c> = queue::Release<'c>;
    type Outcome = Accepted;
    type Operation<'p> = queue::Release<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<queue::Release<'c>, Error> {
        let claim = words.require_claim()?;
        let (mut delay, mut unbegun, mut priority, mut reason) = (None, None, None, None);
        options!(words, {
            "DELAY" => delay, millis(0);
            "UNBEGUN" => unbegun, flag();
            "PRIORITY" => priority, priority();
            "REASON" => reason, reason();
        });
        let when = match (delay, unbegun) {
            (None, None) => WhenReleased::AfterBackoff,
            (Some(delay), None) => WhenReleased::After(delay),
            (None, Some(())) => WhenReleased::Unbegun,
            (Some(_), Some(())) => return Err(Error::Exclusive { one: "DELAY", other: "UNBEGUN" }),
        };
        Ok(queue::Release { claim, when, priority, reason })
    }

    fn check(parsed: &queue::Release, wall_clock: fn() -> Time) -> Result<(), Error> {
        match parsed.when {
            WhenReleased::After(delay) if wall_clock().checked_add(delay).is_none() => {
                Err(Error::PastTheEnd { option: "DELAY" })
            }
            WhenReleased::After(_) | WhenReleased::AfterBackoff | WhenReleased::Unbegun => Ok(()),
        }
    }

    fn operation<'p>(parsed: &'p queue::Release<'_>) -> queue::Release<'p> {
        *parsed
    }

    fn reply(
        _: &queue::Release,
        accepted: &Accepted,
        _: &Queue,
        replies: Replies,
    ) -> Result<(), Error> {
        reply_whether(*accepted, replies)
    }
}
