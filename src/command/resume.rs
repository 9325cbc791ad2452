//! `DQ.RESUME key [GROUP name | ID id ...]`
//!
//! Ends a DQ.PAUSE: that of the queue or, with GROUP, that of a group. Neither ends the other.
//! With ID, ends the HOLD of held jobs: each is due once it waits for no other job.
//!
//! Replies with OK, also when nothing was paused; with ID, with how many jobs were on hold.
//!
//! O(1); with GROUP, O(log g) in the number of groups; with ID, O(log n) for each job.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Change, Reply};
use crate::queue::{self, Queue, Resumed};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};

pub struct Resume;

impl Change for Resume {
    const SPEC: Spec = Spec {
        name: c"dq.resume",
        summary: c"Ends the pause of a queue, or of a group; or the hold of jobs",
        complexity: c"O(1); with GROUP O(log(G)) with G being the number of groups; with ID O(M*log(N)) with M being the number of ids and N the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        grammar: "key [GROUP name | ID id ...]",
    };

    type Operation<'c> = queue::Resume<'c>;

    fn parse<'c>(args: ArgReader<'c>) -> Result<queue::Resume<'c>, Error> {
        let (mut group, mut ids) = (None, None);
        options!(args, {
            "GROUP" => group, group();
            "ID" => ids, rest_as_ids();
        });
        match (group, ids) {
            (Some(_), Some(_)) => Err(Error::Exclusive { one: "GROUP", other: "ID" }),
            (None, Some(ids)) => Ok(queue::Resume::Jobs(ids)),
            (Some(group), None) => Ok(queue::Resume::Group(group)),
            (None, None) => Ok(queue::Resume::Queue),
        }
    }

    fn reply_missing(operation: &queue::Resume<'_>, replies: Replies) {
        match operation {
            queue::Resume::Queue | queue::Resume::Group(_) => replies.ok(),
            queue::Resume::Jobs(_) => replies.integer(0),
        }
    }
}

impl Reply for Resumed {
    fn reply(&self, _: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            Resumed::Pause(_) => replies.ok(),
            Resumed::Jobs(jobs) => replies.integer(*jobs as u64),
        }
        Ok(())
    }
}
