//! `DQ.RESUME key`
//!
//! Ends a DQ.PAUSE.
//!
//! Replies with OK, also when nothing was paused.
//!
//! O(1).

use super::error::Error;
use super::words::Words;
use super::SINCE_0_1;
use crate::queue::Time;
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Resume<'c> {
    key: Arg<'c>,
}

impl Command for Resume<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.resume",
        summary: c"Makes a paused queue hand out jobs again",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"write fast",
        arity: 2,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Resume::parse(call)?.apply(call)
    }
}

impl<'c> Resume<'c> {
    fn parse(call: &Call<'c>) -> Result<Resume<'c>, Error> {
        let mut words = Words::of(call, "dq.resume");
        let key = words.require()?;
        words.end()?;
        Ok(Resume { key })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        if let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? {
            queue.advance(now);
            if queue.paused_until(now).is_some() {
                queue.pause(Time::ZERO);
                queue.publish(&[Effect::Resumed]);
            }
        }
        call.replies().ok();
        Ok(())
    }
}
