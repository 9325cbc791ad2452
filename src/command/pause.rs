//! `DQ.PAUSE key [GROUP name] [FOR ms]`
//!
//! From here on the queue delivers nothing, for so long or until DQ.RESUME. All else goes on: jobs
//! are added, fall due, are finished; leases run out. With GROUP, all this is about the jobs of a
//! group. Makes the queue if there is none. Of groups without jobs, at most 1,000 may be paused.
//!
//! Replies with OK.
//!
//! O(1); with GROUP, O(log g) in the number of groups.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Change;
use crate::queue;
use crate::server::spec::{KeyUse, Spec};

pub struct Pause;

impl Change for Pause {
    const SPEC: Spec = Spec {
        name: c"dq.pause",
        summary:
            c"Stops a queue, or a group, from handing out jobs, for a time or until it is resumed",
        complexity: c"O(1); with GROUP O(log(G)) with G being the number of groups",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        grammar: "key [GROUP name] [FOR ms]",
    };

    const CREATES: bool = true;

    type Operation<'c> = queue::Pause<'c>;

    fn parse<'c>(args: ArgReader<'c>) -> Result<queue::Pause<'c>, Error> {
        let (mut group, mut span) = (None, None);
        options!(args, {
            "GROUP" => group, group();
            "FOR" => span, span(1);
        });
        Ok(queue::Pause { group, span })
    }
}
