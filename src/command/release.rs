//! `DQ.RELEASE key id lease [DELAY ms | UNBEGUN] [PRIORITY 0..255] [REASON text] [BODY bytes]
//! [NOTE text]`
//!
//! Gives a job back that was delivered: it waits for DELAY or, without it, for its backoff, and is
//! ready again. After its last attempt it is dead instead. UNBEGUN says that nobody has worked on
//! it: it is ready at once, and the attempt isn't counted. The lease is good for nothing any more.
//! REASON, at most 512 bytes, is kept with the job. PRIORITY is the job's from here on, also if it
//! is dead. BODY and NOTE are as with DQ.TOUCH.
//!
//! Replies with 1; with 0 when that lease isn't the job's, or the job's time to live is over.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Change;
use crate::queue::{self, Checkpoint, WhenReleased};
use crate::server::spec::{KeyUse, Spec};

pub struct Release;

impl Change for Release {
    const SPEC: Spec = Spec {
        name: c"dq.release",
        summary: c"Gives a job back, to be tried again after its backoff or a delay",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -4,
        key: KeyUse::Change,
        grammar: "key id lease [DELAY ms | UNBEGUN] [PRIORITY 0..255] [REASON text] \
            [BODY bytes] [NOTE text]",
    };

    type Operation<'c> = queue::Release<'c>;

    fn parse<'c>(mut args: ArgReader<'c>) -> Result<queue::Release<'c>, Error> {
        let claim = args.require_claim()?;
        let (mut delay, mut unbegun, mut priority, mut reason) = (None, None, None, None);
        let mut checkpoint = Checkpoint::NONE;
        options!(args, {
            "DELAY" => delay, span(0);
            "UNBEGUN" => unbegun, flag();
            "PRIORITY" => priority, priority();
            "REASON" => reason, reason();
            "BODY" => checkpoint.body, body();
            "NOTE" => checkpoint.note, note();
        });
        let when = match (delay, unbegun) {
            (None, None) => WhenReleased::AfterBackoff,
            (Some(delay), None) => WhenReleased::After(delay),
            (None, Some(())) => WhenReleased::Unbegun,
            (Some(_), Some(())) => return Err(Error::Exclusive { one: "DELAY", other: "UNBEGUN" }),
        };
        Ok(queue::Release { claim, when, priority, reason, checkpoint })
    }
}
