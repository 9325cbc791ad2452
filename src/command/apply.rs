//! `DQ.APPLY key
//! (unix-ms circumstances name [word ...] | JOBS block | GROUPS records | PENDING records | EDGES records | QUEUE record)`
//!
//! Internal: an entry of the log, which replicas and the AOF get.
//!
//! - `unix-ms circumstances command arg …` is a command that a client sent at that time, without its key,
//!   or what no command says: `FORGET [id …]` (what was purged or had been kept long enough;
//!   without ids, groups without jobs), `SETTLE [id …]` (jobs have died by time, and others wait for
//!   them; without ids, a slice of what is pending for jobs that wait), `KICKSPREAD ms id …` (dead jobs
//!   are due evenly over this time), `PASSOVER` (runs of schedules that were too late for a sink).
//!   `circumstances`: `services/change/log.rs`
//! - `JOBS` puts the jobs of a block, instead of any with their ids; `GROUPS` says how far groups
//!   have got; `PENDING` which ended jobs have edges that are still to be settled; `EDGES` which jobs
//!   wait for others; `QUEUE` sets what a queue is besides its jobs, and makes the key of an empty
//!   queue: so is an AOF rewritten
//!
//! Records are MessagePack (`queue/record/`). Replies with OK. O(log n) in the queue's jobs for
//! each job.

use std::marker::PhantomData;

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{replay_at, report_entry, Handler};
use crate::queue::{
    read_block, EdgesRecord, Effect, ForgetGroups, GroupRecord, Ids, KickSpread, Lease, PassOver,
    PendingRecord, QueueRecord, Record, Removal, Remove, Settle, Time,
};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::context::wall_clock;
use crate::server::key::Access;
use crate::server::slots;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::divergence;
use crate::services::change::frame::Source;
use crate::services::change::leases::is_forged;
use crate::services::change::log::{Internal, LoggedCircumstances};
use crate::services::keys::opened::{source_of, OpenedKey};

/// The commands that an entry of the log may name.
pub trait LoggedCommands {
    /// Carries one out as the log tells. `None` when there is none of this name; false when there
    /// is no such key.
    fn replay(
        name: &[u8],
        entry: (&Call, Arg, ArgReader, &LoggedCircumstances),
    ) -> Option<Result<bool, Error>>;
}

pub struct Apply<C>(PhantomData<C>);

impl<C: LoggedCommands> Handler for Apply<C> {
    type Error = Error;
    const ON_ERROR: fn(&Call, &Error) = report_entry::<Self>;
    const SPEC: Spec = Spec {
        name: c"dq.apply",
        summary: c"An internal command: an entry of the log that replicas and the AOF get",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of jobs changed",
        since: Spec::SINCE_0_1,
        flags: c"write admin",
        arity: -4,
        key: KeyUse::Take,
        grammar: "key \
            (unix-ms circumstances name [word ...] | JOBS block | GROUPS records | PENDING records | \
            EDGES records | QUEUE record)",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &Self::SPEC, Source::Log);
        let (key, kind) = (args.require()?, args.require()?.bytes());
        let times_diverged = divergence::times_diverged();
        if kind.first().is_some_and(u8::is_ascii_digit) {
            apply_entry::<C>(call, key, kind, args)?;
        } else {
            apply_effect(call, key, kind, args)?;
        }
        // A slot whose queues came out otherwise had better stay where it was: Valkey ends a move
        // at an error.
        if slots::is_importing() && divergence::times_diverged() != times_diverged {
            return Err(Error::Differs);
        }
        call.replies().ok();
        Ok(())
    }
}

fn apply_entry<C: LoggedCommands>(
    call: &Call,
    key: Arg,
    time: &[u8],
    mut args: ArgReader,
) -> Result<(), Error> {
    let (logged, name) = (args.require()?.bytes(), args.require()?.bytes());
    let logged = LoggedCircumstances::parse(time, logged)
        .ok_or_else(|| Error::UnknownCircumstances(logged.to_vec()))?;
    check_time(call, logged.time)?;
    check_lease(call, logged.lease_floor)?;
    let is_there = match C::replay(name, (call, key, args, &logged)) {
        Some(repeated) => repeated?,
        None => match Internal::called(name) {
            Some(entry) => replay_internal(call, key, (entry, args), &logged)?,
            None => return Err(Error::UnknownEntry(name.to_vec())),
        },
    };
    if !is_there {
        divergence::report(key.bytes());
    }
    Ok(())
}

/// What a client tells of leases must be possible; what is in a log was accepted before.
fn check_lease(call: &Call, lease: Lease) -> Result<(), Error> {
    if source_of(call) == Source::Client && is_forged(lease, wall_clock()) {
        return Err(Error::ForgedLease);
    }
    Ok(())
}

/// Likewise: leases begin with the number of their time.
fn check_time(call: &Call, time: Time) -> Result<(), Error> {
    check_lease(call, Lease::first_at(time)).map_err(|_| Error::ForgedTime)
}

/// As [`replay`](super::kinds::replay), of an operation that no command makes.
fn replay_internal(
    call: &Call,
    key: Arg,
    (entry, mut args): (Internal, ArgReader),
    logged: &LoggedCircumstances,
) -> Result<bool, Error> {
    let has_args = args.remaining() > 0;
    let opened = OpenedKey::at(call, key, Access::Write)?;
    Ok(match entry {
        Internal::Forget if has_args => {
            let (ids, counted_as) = (args.require_ids()?, Removal::Purged);
            replay_at(opened, logged, &Remove { ids, counted_as })
        }
        // Without ids, it says that groups without jobs are forgotten.
        Internal::Forget => replay_at(opened, logged, &ForgetGroups),
        Internal::Settle => {
            // Without ids, it says that a slice of what is pending is carried out.
            let ids = if has_args { args.require_ids()? } else { Ids::from_slice(&[]) };
            replay_at(opened, logged, &Settle { ids })
        }
        Internal::PassOver => {
            args.end()?;
            replay_at(opened, logged, &PassOver)
        }
        Internal::KickSpread => {
            let (span, ids) = (args.millis("ms", 0)?, args.require_ids()?);
            replay_at(opened, logged, &KickSpread { ids, span })
        }
    })
}

fn apply_effect(call: &Call, key: Arg, kind: &[u8], mut args: ArgReader) -> Result<(), Error> {
    let effect = match kind {
        b"JOBS" => Effect::Jobs(read_block(args.require()?.bytes()).collect::<Result<_, _>>()?),
        b"GROUPS" => Effect::Groups(Vec::<GroupRecord>::decode(args.require()?.bytes())?),
        b"PENDING" => Effect::Pending(Vec::<PendingRecord>::decode(args.require()?.bytes())?),
        b"EDGES" => Effect::Edges(Vec::<EdgesRecord>::decode(args.require()?.bytes())?),
        b"QUEUE" => Effect::Queue(QueueRecord::decode(args.require()?.bytes())?),
        _ => return Err(Error::UnknownEntry(kind.to_vec())),
    };
    args.end()?;
    effect.check()?;
    check_lease(call, effect.highest_lease())?;
    Ok(OpenedKey::or_created(call, key)?.change(Source::Log, &effect, |replayed, _| *replayed)?)
}
