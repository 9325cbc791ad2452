//! `DQ.ADD key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n]
//! [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name] [EVERY ms | CRON expression [TZ zone]]
//! [MISFIRE ONE|ALL] [JITTER ms] [RUNS n] [UNTIL unix-ms] [NX | REPLACE | ENSURE]`
//!
//! Adds a job, to be handed out from its due time on. `*` makes an id. Without DELAY or AT it is due now;
//! AT in the past is now. What TTR, ATTEMPTS, BACKOFF, KEEP and LATE don't say is as DQ.ALTER has set it for the
//! queue or as the configs have it, at this moment and for good. After TTL, unless it was finished, the job is
//! dead. KEEP is how long it stays, as done, once it is finished: so long its id is taken. Not handed out for LATE since it
//! came due, it is dead; of a job with a schedule, that occurrence is passed over. Jobs of a GROUP take turns with those of
//! other groups of the same priority, and with those without.
//!
//! With EVERY or CRON, the job has a schedule: when it is finished, it comes back for the next time, under the same id.
//! EVERY counts from AT or DELAY, or from now; CRON goes by a time zone, or UTC. MISFIRE says what becomes of times that
//! passed before somebody took the job, JITTER how much later it may come, RUNS and UNTIL when that ends. ENSURE leaves
//! a job with the same schedule where it is, and sets the rest.
//!
//! Replies with the id; with nil when NX was given and the id is taken. A taken id is the error `EXISTS`
//! otherwise, unless REPLACE: then the old job is gone, with its lease and its attempts.
//!
//! O(log n) in the queue's jobs.

use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::schedule_words::{self, word_of, ScheduleWords, SCHEDULE};
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{
    self, Added, Attempts, Backoff, Due, Id, IfTaken, Millis, NewSchedule, Queue, Recurrence, Starts, Time,
};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};
use crate::services::config;
use crate::services::frame::Source;

pub struct Add;

pub struct Parsed<'c> {
    id: Option<Id<'c>>,
    body: &'c [u8],
    options: Options<'c>,
    /// Few have one.
    schedule: Option<Box<Recurrence>>,
}

#[derive(Default)]
struct Options<'c> {
    delay: Option<Millis>,
    at: Option<Time>,
    ttr: Option<Millis>,
    priority: Option<u8>,
    attempts: Option<Attempts>,
    backoff: Option<Backoff>,
    ttl: Option<Millis>,
    keep: Option<Millis>,
    late: Option<Millis>,
    group: Option<Id<'c>>,
    nx: Option<()>,
    replace: Option<()>,
    ensure: Option<()>,
    schedule: Option<Box<ScheduleWords>>,
}

impl Change for Add {
    const SPEC: Spec = Spec {
        name: c"dq.add",
        summary: c"Adds a job to a queue, to be delivered when it is due",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -4,
        key: KeyUse::Insert,
        args: &[
            ArgSpec::KEY,
            ArgSpec::one_of(c"id-selector", &[ArgSpec::string(c"id"), ArgSpec::word(c"auto-id", c"*")]),
            ArgSpec::string(c"body"),
            ArgSpec::one_of(
                c"due",
                &[ArgSpec::integer(c"ms").token(c"DELAY"), ArgSpec::unix_time(c"unix-ms").token(c"AT")],
            )
            .optional(),
            ArgSpec::integer(c"ms").token(c"TTR").optional(),
            ArgSpec::PRIORITY,
            ArgSpec::integer(c"n").token(c"ATTEMPTS").optional(),
            ArgSpec::BACKOFF,
            ArgSpec::integer(c"ms").token(c"TTL").optional(),
            ArgSpec::integer(c"ms").token(c"KEEP").optional(),
            ArgSpec::integer(c"ms").token(c"LATE").optional(),
            ArgSpec::string(c"name").token(c"GROUP").optional(),
            SCHEDULE[0],
            SCHEDULE[1],
            SCHEDULE[2],
            SCHEDULE[3],
            SCHEDULE[4],
            ArgSpec::one_of(
                c"if-taken",
                &[
                    ArgSpec::word(c"nx", c"NX"),
                    ArgSpec::word(c"replace", c"REPLACE"),
                    ArgSpec::word(c"ensure", c"ENSURE"),
                ],
            )
            .optional(),
        ],
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Parsed<'c> = Parsed<'c>;
    type Outcome = Added;
    type Operation<'p> = queue::Add<'p>;

    fn parse<'c>(mut words: Words<'c>) -> Result<Parsed<'c>, Error> {
        let id = match words.require()?.bytes() {
            b"*" => None,
            id => Some(Id::new(id).ok_or(Error::IdLength)?),
        };
        let body = words.require()?.bytes();
        let max = config::max_body_bytes();
        if body.len() > max && words.source() == Source::Client {
            return Err(Error::BodyLength { max });
        }
        let options = Options::parse(words)?;
        let schedule = options.recurrence(id)?;
        Ok(Parsed { id, body, options, schedule })
    }

    fn check(parsed: &Parsed, wall_clock: fn() -> Time) -> Result<(), Error> {
        match parsed.options.delay {
            Some(delay) if wall_clock().checked_add(delay).is_none() => {
                return Err(Error::PastTheEnd { option: "DELAY" });
            }
            Some(_) | None => (),
        }
        match &parsed.schedule {
            Some(rule) => schedule_words::check(rule, parsed.options.starts(), wall_clock),
            None => Ok(()),
        }
    }

    fn operation<'p>(parsed: &'p Parsed<'_>) -> queue::Add<'p> {
        let Parsed { id, body, options, schedule } = parsed;
        let scheduled = |rule| NewSchedule { rule, starts: options.starts() };
        queue::Add {
            id: *id,
            body,
            due: options.due(),
            ttr: options.ttr,
            priority: options.priority,
            attempts: options.attempts,
            backoff: options.backoff,
            ttl: options.ttl,
            keep: options.keep,
            late: options.late,
            group: options.group,
            schedule: schedule.as_deref().map(scheduled),
            if_taken: options.if_taken(),
        }
    }

    fn reply(parsed: &Parsed, added: &Added, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match added {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                let made = || queue.id_and_body(*slot).map(|(id, _)| id);
                let id = parsed.id.or_else(made);
                replies.bulk(id.map_or(&[], Id::bytes));
            }
            Added::Taken if parsed.options.nx.is_some() => replies.null(),
            Added::Taken => return Err(Error::Taken),
            Added::Full => return Err(Error::Full),
            Added::Never => return Err(Error::NeverRuns),
        }
        Ok(())
    }
}

impl<'c> Options<'c> {
    fn parse(words: Words<'c>) -> Result<Options<'c>, Error> {
        let mut options = Options::default();
        words.options(|name, words| match name {
            "DELAY" => once("DELAY", &mut options.delay, words.millis("DELAY", 0)?),
            "AT" => once("AT", &mut options.at, words.time("AT")?),
            "TTR" => once("TTR", &mut options.ttr, words.millis("TTR", 1)?),
            "PRIORITY" => once("PRIORITY", &mut options.priority, words.priority()?),
            "ATTEMPTS" => once("ATTEMPTS", &mut options.attempts, words.attempts()?),
            "BACKOFF" => once("BACKOFF", &mut options.backoff, words.backoff()?),
            "TTL" => once("TTL", &mut options.ttl, words.millis("TTL", 1)?),
            "KEEP" => once("KEEP", &mut options.keep, words.millis("KEEP", 0)?),
            "LATE" => once("LATE", &mut options.late, words.millis("LATE", 0)?),
            "GROUP" => once("GROUP", &mut options.group, words.group()?),
            "NX" => once("NX", &mut options.nx, ()),
            "REPLACE" => once("REPLACE", &mut options.replace, ()),
            "ENSURE" => once("ENSURE", &mut options.ensure, ()),
            _ => options.schedule.get_or_insert_default().read(name, words),
        })?;
        if options.delay.is_some() && options.at.is_some() {
            return Err(Error::Exclusive { one: "DELAY", other: "AT" });
        }
        match (options.nx, options.replace, options.ensure) {
            (Some(()), Some(()), _) => Err(Error::Exclusive { one: "NX", other: "REPLACE" }),
            (Some(()), None, Some(())) => Err(Error::Exclusive { one: "NX", other: "ENSURE" }),
            (None, Some(()), Some(())) => Err(Error::Exclusive { one: "REPLACE", other: "ENSURE" }),
            _ => Ok(options),
        }
    }

    fn due(&self) -> Due {
        match self.at {
            Some(time) => Due::At(time),
            None => Due::In(self.delay.unwrap_or_default()),
        }
    }

    fn starts(&self) -> Starts {
        match (self.at, self.delay) {
            (Some(time), _) => Starts::At(time),
            (None, Some(delay)) => Starts::In(delay),
            (None, None) => Starts::ByItself,
        }
    }

    /// How the job comes back, if it does; and that nothing is said with it that makes no sense.
    fn recurrence(&self, id: Option<Id>) -> Result<Option<Box<Recurrence>>, Error> {
        let recurrence = match &self.schedule {
            Some(words) => words.recurrence()?,
            None => None,
        };
        let Some(recurrence) = recurrence else {
            return match self.ensure {
                Some(()) => Err(Error::NeedsSchedule { option: "ENSURE" }),
                None => Ok(None),
            };
        };
        let excluded = [("TTL", self.ttl.is_some()), ("KEEP", self.keep.is_some())];
        if let Some((option, _)) = excluded.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Error::NotWithSchedule { option });
        }
        if id.is_none() {
            return Err(Error::ScheduleNeedsId { option: word_of(&recurrence) });
        }
        Ok(Some(Box::new(recurrence)))
    }

    fn if_taken(&self) -> IfTaken {
        match (self.replace, self.ensure) {
            (Some(()), _) => IfTaken::Replace,
            (None, Some(())) => IfTaken::Ensure,
            (None, None) => IfTaken::Refuse,
        }
    }
}
