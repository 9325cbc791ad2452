//! `DQ.RESUME key`
//!
//! Ends a DQ.PAUSE.
//!
//! Replies with OK, also when nothing was paused.
//!
//! O(1).

use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::{self, Queue, Resumed};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};

pub struct Resume;

impl Change for Resume {
    const SPEC: Spec = Spec {
        name: c"dq.resume",
        summary: c"Ends the pause of a queue",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: 2,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY],
    };

    const IF_MISSING: IfMissing = IfMissing::Reply(|replies| replies.ok());

    type Parsed<'c> = queue::Resume;
    type Outcome = Resumed;
    type Operation<'p> = queue::Resume;

    fn parse(words: Words) -> Result<queue::Resume, Error> {
        words.end()?;
        Ok(queue::Resume)
    }

    fn operation(_: &queue::Resume) -> queue::Resume {
        queue::Resume
    }

    fn reply(_: &queue::Resume, _: &Resumed, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.ok();
        Ok(())
    }
}
