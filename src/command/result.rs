//! `DQ.RESULT key id [BLOCK ms]`
//!
//! Tells what came of a job. Replies with `[state, what]`: the result of a job that is done, nil when
//! it was finished without one; the reason of a dead one; nil otherwise. With nil when there is no
//! such job.
//!
//! With BLOCK, waits for so long (0 is no limit) until the job is done, dead or gone, and then
//! replies so: also with the result of a job that isn't kept. In a transaction or a script, and on a
//! replica, it doesn't wait.
//!
//! O(log n) in the queue's jobs.

use std::time::Duration;

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Handler;
use crate::queue::{Id, Millis, State};
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::keys::opened::OpenedKey;
use crate::services::waiting::reply;

pub struct JobResult;

impl Handler for JobResult {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.result",
        summary: c"Tells what came of a job: its result, or why it is dead",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: Spec::SINCE_0_3,
        flags: c"readonly blocking",
        arity: -3,
        key: KeyUse::Read,
        grammar: "key id [BLOCK ms]",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, Source::Client);
        let key = args.require()?;
        let (id, block) = parse(args)?;
        let replies = call.replies();
        let Some(mut opened) = OpenedKey::at(call, key, Access::Read)? else {
            replies.null();
            return Ok(());
        };
        let (value, now) = opened.look();
        let Some(job) = value.queue().get(id) else {
            replies.null();
            return Ok(());
        };
        let (state, what) = job.outcome_at(now);
        let is_over = matches!(state, State::Done | State::Dead);
        if let Some(block) = block.filter(|_| !is_over) {
            let timeout = (!block.is_zero()).then(|| Duration::from_millis(block.as_u64()));
            if opened.wait_for_job(call, key, id, timeout) {
                return Ok(());
            }
            // It is in none of the two states that have more to say.
            reply::outcome(replies, state.name(), None);
        } else {
            reply::outcome(replies, state.name(), what);
        }
        Ok(())
    }
}

fn parse<'c>(mut args: ArgReader<'c>) -> Result<(Id<'c>, Option<Millis>), Error> {
    let (id, mut block) = (args.require_id()?, None);
    options!(args, {
        "BLOCK" => block, millis(0);
    });
    Ok((id, block))
}
