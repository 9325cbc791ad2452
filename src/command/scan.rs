//! `DQ.SCAN key cursor [STATE state] [COUNT n]`
//!
//! Goes through the jobs of a queue, a part at a time: begin with the cursor 0, go on with the one replied,
//! until that is 0 again. Every job that stays in the queue all the while is seen; one that comes, goes or is
//! replaced meanwhile may be. COUNT, 10 and at most 10,000, is how many jobs a part looks at: with STATE, it
//! may show fewer or none.
//!
//! Replies with the next cursor and an array of ids.
//!
//! O(n) for n jobs looked at.

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{Scanned, Slot, State};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

const COUNT_DEFAULT: usize = 10;
/// A call that looks at more would hold up the others.
const COUNT_MAX: usize = 10_000;

pub struct Scan<'c> {
    key: Arg<'c>,
    cursor: Slot,
    state: Option<State>,
    count: usize,
}

impl Command for Scan<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.scan",
        summary: c"Goes through the ids of a queue's jobs, a part at a time",
        complexity: c"O(M) with M being the number of jobs looked at; O(N) for a whole scan",
        since: SINCE_0_1,
        flags: c"readonly",
        arity: -3,
        key: KeyUse::Read,
        args: &[
            ArgSpec::KEY,
            ArgSpec::integer(c"cursor"),
            ArgSpec::STATE.optional(),
            ArgSpec::integer(c"count").token(c"COUNT").optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Scan::parse(call)?.apply(call)
    }
}

impl<'c> Scan<'c> {
    fn parse(call: &Call<'c>) -> Result<Scan<'c>, Error> {
        let mut words = Words::of(call, "dq.scan");
        let key = words.require()?;
        let cursor = words.integer("cursor", 0, Slot::MAX.into())? as Slot;
        let (mut state, mut count) = (None, None);
        words.options(|name, words| match name {
            "STATE" => once("STATE", &mut state, words.state()?),
            "COUNT" => once("COUNT", &mut count, words.count()?),
            _ => Ok(false),
        })?;
        let count = count.unwrap_or(COUNT_DEFAULT).min(COUNT_MAX);
        Ok(Scan { key, cursor, state, count })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Read)? else {
            call.replies().array(2);
            call.replies().bulk(b"0");
            call.replies().array(0);
            return Ok(());
        };
        queue.advance(call.now());
        let Scanned { slots, next } = queue.scan(self.cursor, self.state, self.count);
        call.replies().array(2);
        call.replies().bulk(next.unwrap_or(0).to_string().as_bytes());
        call.replies().array(slots.len());
        for slot in slots {
            call.replies().bulk(queue.id_and_body(slot).map_or(&[], |(id, _)| id.bytes()));
        }
        Ok(())
    }
}
