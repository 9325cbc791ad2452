//! `DQ.RENEW key ttr-ms block-ms id lease [id lease ...]`
//!
//! Extends leases: each lasts for `ttr-ms` from now on or, with 0, for the job's own TTR. It does
//! for each what DQ.TOUCH does. At most 10,000 leases.
//!
//! Replies with the ids whose lease is void, in the order in which they were named: the job was
//! delivered to another, finished, released, deleted or replaced, or its time to live is over. With
//! all leases good, waits for `block-ms`, and replies as soon as one of them is void, or with an
//! empty array at the end. 0 doesn't wait; nor does it in a transaction or a script.
//!
//! O(log n) in the queue's jobs for each lease.

use std::time::Duration;

use super::arg_reader::ArgReader;
use super::error::Error;
use super::kinds::{replay_at, report_entry, Handler};
use crate::queue::{self, Claims, Millis, RENEWED_MAX};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::key::Access;
use crate::server::spec::{KeyUse, Spec};
use crate::services::change::frame::Source;
use crate::services::change::log::{LogForm, LoggedCircumstances};
use crate::services::keys::opened::{source_of, OpenedKey};

pub struct Renew;

struct RenewArgs<'c> {
    renew: queue::Renew<'c>,
    block: Millis,
}

impl Handler for Renew {
    type Error = Error;
    const ON_ERROR: fn(&Call, &Error) = report_entry::<Self>;
    const SPEC: Spec = Spec {
        name: c"dq.renew",
        summary: c"Extends leases, and tells which are void as soon as one is",
        complexity:
            c"O(M*log(N)) with N being the number of jobs in the queue and M the number of leases",
        since: Spec::SINCE_0_3,
        flags: c"write blocking",
        arity: -6,
        key: KeyUse::Change,
        grammar: "key ttr-ms block-ms id lease [id lease ...]",
    };

    fn run(call: &Call) -> Result<(), Error> {
        let source = source_of(call);
        let mut args = ArgReader::of(call, &Self::SPEC, source);
        let key = args.require()?;
        let RenewArgs { renew, block } = RenewArgs::parse(args)?;
        let all = renew.claims.iter().map(|claim| claim.id.bytes());
        let replies = call.replies();
        let Some(mut opened) = OpenedKey::at(call, key, Access::Write)? else {
            replies.bulks(all);
            return Ok(());
        };
        let may_wait = !block.is_zero() && source == Source::Client;
        let frame = opened.frame_for(source);
        let (void, leases) = frame.change(&renew, LogForm::AsSent, |renewed, queue| {
            let waits = may_wait && renewed.void.is_empty();
            let leases = waits.then(|| queue.with_leases(&renew.claims));
            (renewed.void.clone(), leases)
        });
        // Waiting consumers were served behind the change: a short lease may be void by now.
        let timeout = Some(Duration::from_millis(block.as_u64()));
        let void = match leases {
            Some(leases) => opened.wait_for_leases(call, key, &leases, timeout),
            None => Some(void),
        };
        if let Some(void) = void {
            let ids =
                void.into_iter().filter_map(|place| Some(renew.claims.get(place)?.id.bytes()));
            replies.bulks(ids.collect::<Vec<_>>().into_iter());
        }
        Ok(())
    }
}

impl Renew {
    /// From an entry of the log, which tells the circumstances. False when there is no such key.
    pub fn replay(
        call: &Call,
        key: Arg,
        args: ArgReader,
        logged: &LoggedCircumstances,
    ) -> Result<bool, Error> {
        let RenewArgs { renew, .. } = RenewArgs::parse(args)?;
        Ok(replay_at(OpenedKey::at(call, key, Access::Write)?, logged, &renew))
    }
}

impl<'c> RenewArgs<'c> {
    fn parse(mut args: ArgReader<'c>) -> Result<RenewArgs<'c>, Error> {
        let (ttr, block) = (args.span("ttr-ms", 0)?, args.millis("block-ms", 0)?);
        if args.remaining() % 2 == 1 {
            return Err(Error::UnpairedLease);
        }
        if args.remaining() / 2 > RENEWED_MAX {
            return Err(Error::TooManyLeases);
        }
        let mut claims = Claims::with_capacity(args.remaining() / 2);
        while args.remaining() > 0 {
            claims.push(args.require_claim()?);
        }
        let ttr = (!ttr.is_zero()).then_some(ttr);
        Ok(RenewArgs { renew: queue::Renew { claims, ttr }, block })
    }
}
