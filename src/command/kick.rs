//! `DQ.KICK key [COUNT n] [SPREAD ms]`
//!
//! Makes dead jobs ready, at most `n` (1) and at most 10,000 in one go, those first that died
//! first. Their attempts are 0 again, and a time to live begins anew. With SPREAD, the i-th of k jobs,
//! from 0, is due i * ms / k from now, rounded down; a COUNT above 10,000 is an error then.
//!
//! Replies with how many it kicked.
//!
//! O(log n) in the queue's jobs for each job kicked.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Handler;
use super::limits::KICK_JOBS_MAX;
use crate::queue::{Affected, KickJob, KickSpread, Queue, State};
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::log::{Internal, LogForm};
use crate::services::keys::opened::{source_of, OpenedKey};

pub struct Kick;

impl Handler for Kick {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.kick",
        summary: c"Makes dead jobs ready again, oldest first",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number kicked",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -2,
        key: KeyUse::Change,
        grammar: "key [COUNT n] [SPREAD ms]",
    };

    /// Logged with the ids of the jobs that it comes to.
    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, source_of(call));
        let key = args.require()?;
        let (mut count, mut spread) = (None, None);
        options!(args, {
            "COUNT" => count, count();
            "SPREAD" => spread, span(0);
        });
        let count = count.unwrap_or(1);
        if spread.is_some() && count > KICK_JOBS_MAX {
            return Err(Error::NotInRange { option: "COUNT", min: 1, max: KICK_JOBS_MAX as u64 });
        }
        let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let frame = opened.frame_for(source_of(call));
        let slots = frame.queue().peek(State::Dead, count.min(KICK_JOBS_MAX));
        let names = frame.queue().ids_of(&slots);
        let reply = |kicked: &Affected, _: &Queue| call.replies().integer(kicked.0 as u64);
        match spread {
            None => {
                let kick = KickJob { ids: names.ids() };
                frame.change(&kick, LogForm::Command(c"DQ.KICKJOB", &names.bytes()), reply);
            }
            Some(span) => {
                let (kick, ms) = (KickSpread { ids: names.ids(), span }, span.as_u64().to_string());
                let mut args = vec![ms.as_bytes()];
                args.extend(names.bytes());
                frame.change(&kick, LogForm::Internal(Internal::KickSpread, &args), reply);
            }
        }
        Ok(())
    }
}
