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
use crate::queue;
use crate::server::spec::{KeyUse, Spec};

pub struct Resume;

impl Change for Resume {
    const SPEC: Spec = Spec {
        name: c"dq.resume",
        summary: c"Ends the pause of a queue, or of a group",
        complexity: c"O(1); with GROUP O(log(G)) with G being the number of groups",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        grammar: "key [GROUP name]",
    };

    const IF_MISSING: IfMissing = IfMissing::Reply(|replies| replies.ok());

    type Operation<'c> = queue::Resume<'c>;

    fn parse<'c>(words: ArgReader<'c>) -> Result<queue::Resume<'c>, Error> {
        let mut group = None;
        options!(words, {
            "GROUP" => group, group();
        });
        Ok(queue::Resume { group })
    }
}
