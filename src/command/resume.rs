//! `DQ.RESUME key [GROUP name]`
//!
//! Ends a DQ.PAUSE: that of the queue or, with GROUP, that of a group. Neither ends the other.
//!
//! Replies with OK, also when nothing was paused.
//!
//! O(1); with GROUP, O(log g) in the number of groups.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::since::SINCE_0_1;
use crate::queue::{self, Queue, Resumed};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Resume;

impl Change for Resume {
    const SPEC: Spec = Spec {
        name: c"dq.resume",
        summary: c"Ends the pause of a queue, or of a group",
        complexity: c"O(1); with GROUP O(log(G)) with G being the number of groups",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY, ArgSpec::string(c"name").token(c"GROUP").optional()],
    };

    const IF_MISSING: IfMissing = IfMissing::Reply(|replies| replies.ok());

    type Parsed<'c> = queue::Resume<'c>;
    type Outcome = Resumed;
    type Operation<'p> = queue::Resume<'p>;

    fn parse<'c>(words: ArgReader<'c>) -> Result<queue::Resume<'c>, Error> {
        let mut group = None;
        options!(words, {
            "GROUP" => group, group();
        });
        Ok(queue::Resume { group })
    }

    fn operation<'p>(parsed: &'p queue::Resume<'_>) -> queue::Resume<'p> {
        *parsed
    }

    fn reply(_: &queue::Resume, _: &Resumed, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.ok();
        Ok(())
    }
}
