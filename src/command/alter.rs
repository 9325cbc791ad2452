//! `DQ.ALTER key [TTR ms] [ATTEMPTS n] [BACKOFF base-ms max-ms] [KEEP ms] [LATE ms] [MAXJOBS n]
//! [DEADKEEP ms] [CONCURRENCY n] [RATE n per-ms [BURST b]] [GROUPCONCURRENCY n]
//! [GROUPRATE n per-ms [BURST b]] [SINK stream [MAXLEN n] | NOSINK]`
//!
//! Sets what a queue gives to jobs that are added from then on without saying so themselves (TTR,
//! ATTEMPTS, BACKOFF, KEEP, LATE), and its limits: how many jobs it holds in whichever states
//! (MAXJOBS; 0 is no limit), for how long dead jobs are kept (DEADKEEP; 0 is for ever), how many
//! leases are live at the same time (CONCURRENCY; 0 is no limit), how many jobs leave in so long
//! (RATE; 0 is no limit), and how many at once (BURST). GROUPCONCURRENCY and GROUPRATE are the same
//! for each group. BURST belongs to the rate before it. What is not named stays as it was. Makes
//! the queue if there is none.
//!
//! SINK: jobs that may leave are added to this stream, another key of the same slot, and are done
//! with that. The stream is trimmed to about MAXLEN entries (0, the default, is all). NOSINK: jobs
//! wait for clients again.
//!
//! Replies with OK.
//!
//! O(1). Other limits for groups: O(g log g) in the number of groups.

use super::arg_reader::{options, ArgReader, Name};
use super::error::Error;
use super::kinds::Change;
use crate::queue::{self, Id, Rate, Sink, MAX_LEN_MAX};
use crate::server::arg::Arg;
use crate::server::call::Call;
use crate::server::command::SINK;
use crate::server::spec::{KeyUse, Spec};

pub struct Alter;

impl Change for Alter {
    const SPEC: Spec = Spec {
        name: c"dq.alter",
        summary: c"Sets a queue's limits, and its defaults for jobs added later",
        complexity:
            c"O(1); O(G*log(G)) with G being the number of groups where their limits change",
        since: Spec::SINCE_0_1,
        flags: c"write fast",
        arity: -3,
        key: KeyUse::ChangeWithSink,
        grammar:
            "key [TTR ms] [ATTEMPTS n] [BACKOFF base-ms max-ms] [KEEP ms] [LATE ms] [MAXJOBS n] \
            [DEADKEEP ms] [CONCURRENCY n] [RATE n per-ms [BURST b]] [GROUPCONCURRENCY n] \
            [GROUPRATE n per-ms [BURST b]] [SINK stream [MAXLEN n] | NOSINK]",
    };

    const CREATES: bool = true;

    type Operation<'c> = queue::Alter;

    fn parse(args: ArgReader) -> Result<queue::Alter, Error> {
        let mut changes = queue::Alter::default();
        let mut no_sink = None;
        options!(args, {
            "TTR" => changes.ttr, millis(1);
            "ATTEMPTS" => changes.attempts, attempts();
            "BACKOFF" => changes.backoff, backoff();
            "KEEP" => changes.keep, millis(0);
            "LATE" => changes.late, millis(0);
            "MAXJOBS" => changes.max_jobs, integer(0, u32::MAX.into());
            "DEADKEEP" => changes.dead_keep, millis(0);
            "CONCURRENCY" => changes.concurrency, small_integer(0);
            "GROUPCONCURRENCY" => changes.group_concurrency, small_integer(0);
            "RATE" => changes.rate, by(read_rate);
            "GROUPRATE" => changes.group_rate, by(read_rate);
            "SINK" => changes.sink, by(read_sink);
            "NOSINK" => no_sink, flag();
        } else |name, args| match name {
            burst if burst == Name::of("BURST") => Err(Error::BurstPlace),
            max_len if max_len == Name::of("MAXLEN") => Err(Error::MaxLenPlace),
            _ => Ok(false),
        });
        if no_sink.is_some() {
            if changes.sink.is_some() {
                return Err(Error::Exclusive { one: "SINK", other: "NOSINK" });
            }
            changes.sink = Some(None);
        }
        Ok(changes)
    }

    fn check(call: &Call, key: Arg, changes: &queue::Alter) -> Result<(), Error> {
        let Some(Some(sink)) = &changes.sink else {
            return Ok(());
        };
        if sink.stream() == key.bytes() {
            return Err(Error::SinkItself);
        }
        // The server itself looks at the first key only.
        match call.behind(SINK) {
            Some(stream) if !call.are_of_one_slot(&[key, stream]) => Err(Error::CrossSlot),
            Some(_) | None => Ok(()),
        }
    }
}

/// `stream [MAXLEN n]`; 0 entries is no limit.
fn read_sink(option: &'static str, args: &mut ArgReader) -> Result<Option<Sink>, Error> {
    let stream = Id::new(args.value(option)?).ok_or(Error::StreamLength)?;
    let max_len = if args.take("MAXLEN") { args.integer("MAXLEN", 0, MAX_LEN_MAX)? } else { 0 };
    Ok(Some(Sink::new(stream, max_len)))
}

/// `n per-ms [BURST b]`; 0 in any time is no rate.
fn read_rate(option: &'static str, args: &mut ArgReader) -> Result<Option<Rate>, Error> {
    args.pair(option, "n per-ms")?;
    let jobs = args.small_integer(option, 0)?;
    let per = args.millis(option, u64::from(jobs > 0))?;
    let burst = args.take("BURST").then(|| args.small_integer("BURST", 1)).transpose()?;
    if burst.is_some() && args.take("BURST") {
        return Err(Error::Repeated { option: "BURST" });
    }
    match (jobs, burst) {
        (0, None) => Ok(None),
        (0, Some(_)) => {
            let one = if option == "RATE" { "RATE 0" } else { "GROUPRATE 0" };
            Err(Error::Exclusive { one, other: "BURST" })
        }
        (_, burst) => {
            Rate::new(jobs, per, burst.unwrap_or(1)).map(Some).ok_or(Error::BurstLength { option })
        }
    }
}
