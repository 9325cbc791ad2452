//! What DQ.POP and DQ.MPOP share: the options of a consumer, and handing out to it.

use std::time::Duration;

use super::error::Error;
use super::words::{once, Words};
use crate::queue::{Millis, Time};
use crate::redis::call::{Arg, Call};
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::ArgSpec;
use crate::redis::take::{Mode, Terms};
use crate::redis::waiting::{self, Shape};

pub struct Consumer {
    terms: Terms,
    /// For how long it waits; zero is without end.
    block: Option<Millis>,
}

impl Consumer {
    pub const COUNT: ArgSpec = ArgSpec::integer(c"count").token(c"COUNT").optional();
    pub const BLOCK: ArgSpec = ArgSpec::integer(c"milliseconds").token(c"BLOCK").optional();
    pub const TTR: ArgSpec = ArgSpec::integer(c"time-to-run").token(c"TTR").optional();
    pub const NOACK: ArgSpec = ArgSpec::word(c"noack", c"NOACK").optional();

    pub fn parse(words: Words) -> Result<Consumer, Error> {
        let (mut count, mut block, mut ttr, mut noack) = (None, None, None, None);
        words.options(|name, words| match name {
            "COUNT" => once("COUNT", &mut count, words.count()?),
            "BLOCK" => once("BLOCK", &mut block, words.millis("BLOCK", 0)?),
            "TTR" => once("TTR", &mut ttr, words.millis("TTR", 1)?),
            "NOACK" => once("NOACK", &mut noack, ()),
            _ => Ok(false),
        })?;
        let mode = if noack.is_some() { Mode::NoAck } else { Mode::Lease };
        Ok(Consumer { terms: Terms { count: count.unwrap_or(1), ttr, mode }, block })
    }

    /// What is only known once the time is.
    pub fn check(&self, now: Time) -> Result<(), Error> {
        match self.terms.ttr {
            Some(ttr) if now.checked_add(ttr).is_none() => Err(Error::PastTheEnd { option: "TTR" }),
            Some(_) | None => Ok(()),
        }
    }

    /// Hands out what is ready in this queue; false, without a reply, when nothing is.
    pub fn take_from(&self, call: &Call, key: Arg, shape: Shape, now: Time) -> Result<bool, Error> {
        let Some(mut queue) = OpenQueue::open(call, key, Access::Write)? else {
            return Ok(false);
        };
        queue.serve_those_who_wait();
        if self.block.is_some() && waiting::are_others_first(call, key) {
            return Ok(false);
        }
        let taken = queue.take(&self.terms, now);
        if taken.is_empty() {
            return Ok(false);
        }
        if shape == Shape::KeyAndJobs {
            call.replies().array(2);
            call.replies().bulk(key.bytes());
        }
        taken.reply(call.replies(), &queue, self.terms.mode);
        queue.publish(&[taken.effect()]);
        let settled = taken.settle(&mut queue, self.terms.mode, now);
        if self.terms.mode == Mode::NoAck {
            queue.publish(&settled.effects());
        }
        Ok(true)
    }

    /// There was nothing: waits, or replies so.
    pub fn wait(&self, call: &Call, keys: &[Arg], shape: Shape) {
        match self.block {
            None => call.replies().null(),
            Some(block) => {
                let timeout = (!block.is_zero()).then(|| Duration::from_millis(block.as_u64()));
                waiting::wait(call, keys, self.terms, shape, timeout);
            }
        }
    }
}
