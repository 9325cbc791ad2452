//! `DQ.PAUSE key [FOR ms]`
//!
//! From here on the queue hands out nothing, for so long or until DQ.RESUME. All else goes on: jobs are
//! added, fall due, are finished; leases run out. Makes the queue if there is none.
//!
//! Replies with OK.
//!
//! O(1).

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Millis, Time};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::effect::Effect;
use crate::redis::key::OpenQueue;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

pub struct Pause<'c> {
    key: Arg<'c>,
    span: Option<Millis>,
}

impl Command for Pause<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.pause",
        summary: c"Makes a queue hand out nothing, for a time or until it is resumed",
        complexity: c"O(1)",
        since: SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -2,
        key: KeyUse::Change,
        args: &[ArgSpec::KEY, ArgSpec::integer(c"milliseconds").token(c"FOR").optional()],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Pause::parse(call)?.apply(call)
    }
}

impl<'c> Pause<'c> {
    fn parse(call: &Call<'c>) -> Result<Pause<'c>, Error> {
        let mut words = Words::of(call, "dq.pause");
        let key = words.require()?;
        let mut span = None;
        words.options(|name, words| match name {
            "FOR" => once("FOR", &mut span, words.millis("FOR", 1)?),
            _ => Ok(false),
        })?;
        Ok(Pause { key, span })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        let until = match self.span {
            None => Time::MAX,
            Some(span) => now.checked_add(span).ok_or(Error::PastTheEnd { option: "FOR" })?,
        };
        let mut queue = OpenQueue::open_or_create(call, self.key)?;
        queue.advance(now);
        queue.pause(until);
        call.replies().ok();
        queue.publish(&[Effect::Paused]);
        Ok(())
    }
}
