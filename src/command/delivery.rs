//! What DQ.RELEASE, DQ.TOUCH and DQ.BURY share: naming a delivery, and doing something to its job.

use super::error::Error;
use super::words::{parse_claim, Words};
use crate::queue::{Cause, Claim, Id, Queue, Slot};
use crate::redis::call::{Arg, Call};
use crate::redis::effect::Effect;
use crate::redis::key::{Access, OpenQueue};
use crate::redis::spec::ArgSpec;

pub struct Delivery<'c> {
    pub key: Arg<'c>,
    pub id: Id<'c>,
    pub claim: Claim,
}

impl<'c> Delivery<'c> {
    pub const ID: ArgSpec = ArgSpec::string(c"id");
    pub const LEASE: ArgSpec = ArgSpec::string(c"lease");

    /// `key id lease`
    pub fn parse(words: &mut Words<'c>) -> Result<Delivery<'c>, Error> {
        let (key, id) = (words.require()?, words.require_id()?);
        let claim = parse_claim(words.require()?.bytes())?;
        Ok(Delivery { key, id, claim })
    }

    /// Does something to the job, if this is its delivery; replies with 1 or 0.
    pub fn act(
        &self,
        call: &Call<'c>,
        cause: Cause,
        act: impl FnOnce(&mut Queue) -> Option<Slot>,
    ) -> Result<(), Error> {
        let Some(mut queue) = OpenQueue::open(call, self.key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let acted = act(&mut queue);
        call.replies().integer(u64::from(acted.is_some()));
        if let Some(slot) = acted {
            queue.publish(&[Effect::Moved(cause, &[slot])]);
        }
        Ok(())
    }
}
