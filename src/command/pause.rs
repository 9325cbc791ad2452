//! `DQ.PAUSE key [GROUP name] [FOR ms]`
//!
//! From here on the queue hands out nothing, for so long or until DQ.RESUME. All else goes on: jobs
//! are added, fall due, are finished; leases run out. With GROUP, all this is about the jobs of a
//! group. Makes the queue if there is none. Of groups without jobs, at most 1,000 may be paused.
//!
//! Replies with OK.
//!
//! O(1); with GROUP, O(log g) in the number of groups.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Paused, Queue, Time};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Pause;

impl Change for Pause {
    const SPEC: Spec = Spec {
        name: c"dq.pause",
        summary:
            c"Stops a queue, or a group, from handing out jobs, for a time or until it is resumed",
        complexity: c"O(1); with GROUP O(log(G)) with G being the number of groups",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        args: &[
            ArgSpec::KEY,
            ArgSpec::string(c"name").token(c"GROUP").optional(),
            ArgSpec::integer(c"ms").token(c"FOR").optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Parsed<'c> = queue::Pause<'c>;
    type Outcome = Paused;
    type Operation<'p> = queue::Pause<'p>;

    fn parse<'c>(words: ArgReader<'c>) -> Result<queue::Pause<'c>, Error> {
        let (mut group, mut span) = (None, None);
        options!(words, {
            "GROUP" => group, group();
            "FOR" => span, millis(1);
        });
        Ok(queue::Pause { group, span })
    }

    fn check(parsed: &queue::Pause, wall_clock: fn() -> Time) -> Result<(), Error> {
        match parsed.span {
            Some(span) if wall_clock().checked_add(span).is_none() => {
                Err(Error::PastTheEnd { option: "FOR" })
            }
            Some(_) | None => Ok(()),
        }
    }

    fn operation<'p>(parsed: &'p queue::Pause<'_>) -> queue::Pause<'p> {
        *parsed
    }

    fn reply(_: &queue::Pause, paused: &Paused, _: &Queue, replies: Replies) -> Result<(), Error> {
        match paused {
            Paused::Yes => replies.ok(),
            Paused::TooMany => return Err(Error::TooManyPaused),
        }
        Ok(())
    }
}
