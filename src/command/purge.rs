//! `DQ.PURGE key STATE state [OLDER ms] [COUNT n]`
//!
//! Removes jobs that are in this state: at most `n` (1,000), at most 10,000 in one go, in the order
//! in which they leave it. OLDER, for ready, dead and done jobs: only those that have been so for
//! at least that long. Call it until it answers 0.
//!
//! Replies with how many it removed.
//!
//! O(log n) in the queue's jobs for each job removed.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::Handler;
use super::limits::{PURGE_JOBS_DEFAULT, PURGE_JOBS_MAX};
use crate::queue::{Millis, Removal, Remove, State};
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::log::{Internal, LogForm};
use crate::services::keys::opened::{source_of, OpenedKey};

pub struct Purge;

struct PurgeArgs {
    state: State,
    older: Millis,
    count: usize,
}

impl Handler for Purge {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.purge",
        summary: c"Removes jobs by state and age, a batch at a time",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number removed",
        since: Spec::SINCE_0_1,
        flags: c"write",
        arity: -4,
        key: KeyUse::Remove,
        grammar: "key STATE state [OLDER ms] [COUNT n]",
    };

    /// Logged by id.
    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, source_of(call));
        let key = args.require()?;
        let PurgeArgs { state, older, count } = PurgeArgs::parse(args)?;
        let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? else {
            call.replies().integer(0);
            return Ok(());
        };
        let frame = opened.frame_for(source_of(call));
        let slots = frame.queue().to_purge(frame.now(), state, older, count);
        let names = frame.queue().ids_of(&slots);
        let purge = Remove { ids: names.ids(), counted_as: Removal::Purged };
        frame.change(&purge, LogForm::Internal(Internal::Forget, &names.bytes()), |purged, _| {
            call.replies().integer(purged.0 as u64);
        });
        Ok(())
    }
}

impl PurgeArgs {
    fn parse(args: ArgReader) -> Result<PurgeArgs, Error> {
        let (mut state, mut older, mut count) = (None, None, None);
        options!(args, {
            "STATE" => state, state();
            "OLDER" => older, millis(0);
            "COUNT" => count, count();
        });
        let state = state.ok_or(Error::Missing { option: "STATE" })?;
        if older.is_some() && matches!(state, State::Delayed | State::Reserved) {
            return Err(Error::NotInState { option: "OLDER", state });
        }
        let count = count.unwrap_or(PURGE_JOBS_DEFAULT).min(PURGE_JOBS_MAX);
        Ok(PurgeArgs { state, older: older.unwrap_or_default(), count })
    }
}
