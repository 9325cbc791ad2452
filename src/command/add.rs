//! `DQ.ADD key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n]
//! [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name]
//! [EVERY ms | CRON expression [TZ zone]] [MISFIRE ONE|ALL] [JITTER ms] [RUNS n] [UNTIL unix-ms]
//! [NX | REPLACE | ENSURE]`
//!
//! Adds a job, to be handed out from its due time on. `*` makes an id. Without DELAY or AT it is
//! due now; AT in the past is now. What TTR, ATTEMPTS, BACKOFF, KEEP and LATE don't say is as
//! DQ.ALTER has set it for the queue or as the configs have it, at this moment and for good. After
//! TTL, unless it was finished, the job is dead. KEEP is how long it stays, as done, once it is
//! finished: so long its id is taken. Not handed out for LATE since it came due, it is dead; of a
//! job with a schedule, that occurrence is passed over. Jobs of a GROUP take turns with those of
//! other groups of the same priority, and with those without.
//!
//! With EVERY or CRON, the job has a schedule: when it is finished, it comes back for the next
//! time, under the same id. EVERY counts from AT or DELAY, or from now; CRON goes by a time zone,
//! or UTC. MISFIRE says what becomes of times that passed before somebody took the job, JITTER how
//! much later it may come, RUNS and UNTIL when that ends. ENSURE leaves a job with the same
//! schedule where it is, and sets the rest.
//!
//! Replies with the id; with nil when NX was given and the id is taken. A taken id is the error
//! `EXISTS` otherwise, unless REPLACE: then the old job is gone, with its lease and its attempts.
//!
//! O(log n) in the queue's jobs.

use super::arg_reader::{options, ArgReader};
use super::error::Error;
use super::kinds::{Change, IfMissing};
use super::schedule_options::{self, word_of, ScheduleOptions, SCHEDULE};
use super::since::SINCE_0_1;
use crate::queue::{self, Added, Due, Id, IfTaken, Millis, NewSchedule, Queue, Starts, Time};
use crate::server::replies::Replies;
use crate::server::spec::{ArgSpec, KeyUse, Spec};
use crate::services::config;
use crate::services::frame::Source;

pub struct Add;

pub struct Parsed<'c> {
    add: queue::Add<'c>,
    /// A taken id is no error.
    nx: bool,
}

/// What is said beside the job's own terms.
#[derive(Default)]
struct AddOptions {
    delay: Option<Millis>,
    at: Option<Time>,
    nx: Option<()>,
    replace: Option<()>,
    ensure: Option<()>,
    schedule: Option<Box<ScheduleOptions>>,
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
            ArgSpec::one_of(
                c"id-selector",
                &[ArgSpec::string(c"id"), ArgSpec::word(c"auto-id", c"*")],
            ),
            ArgSpec::string(c"body"),
            ArgSpec::one_of(
                c"due",
                &[
                    ArgSpec::integer(c"ms").token(c"DELAY"),
                    ArgSpec::unix_time(c"unix-ms").token(c"AT"),
                ],
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
    type Operation<'p> = &'p queue::Add<'p>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<Parsed<'c>, Error> {
        let id = match words.require()?.bytes() {
            b"*" => None,
            id => Some(Id::new(id).ok_or(Error::IdLength)?),
        };
        let body = words.require()?.bytes();
        let max = config::max_body_bytes();
        if body.len() > max && words.source() == Source::Client {
            return Err(Error::BodyLength { max });
        }
        let mut parsed = Parsed { add: queue::Add { id, ..queue::Add::nameless(body) }, nx: false };
        if words.remaining() == 0 {
            return Ok(parsed);
        }
        parsed.nx = AddOptions::read(words, &mut parsed.add)?;
        Ok(parsed)
    }

    fn check(Parsed { add, .. }: &Parsed, wall_clock: fn() -> Time) -> Result<(), Error> {
        match add.due {
            Due::In(delay) if !delay.is_zero() && wall_clock().checked_add(delay).is_none() => {
                return Err(Error::PastTheEnd { option: "DELAY" });
            }
            Due::In(_) | Due::At(_) => (),
        }
        match &add.schedule {
            Some(new) => schedule_options::check(&new.rule, wall_clock),
            None => Ok(()),
        }
    }

    fn operation<'p>(parsed: &'p Parsed<'_>) -> &'p queue::Add<'p> {
        &parsed.add
    }

    fn reply(parsed: &Parsed, added: &Added, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match added {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                let made = || queue.id_and_body(*slot).map(|(id, _)| id);
                let id = parsed.add.id.or_else(made);
                replies.bulk(id.map_or(&[], Id::bytes));
            }
            Added::Taken if parsed.nx => replies.null(),
            Added::Over { .. } => replies.null(),
            Added::Taken => return Err(Error::Taken),
            Added::Full => return Err(Error::Full),
            Added::Never => return Err(Error::NeverRuns),
        }
        Ok(())
    }
}

impl AddOptions {
    /// Reads the options. Says whether NX is one.
    fn read<'c>(words: ArgReader<'c>, add: &mut queue::Add<'c>) -> Result<bool, Error> {
        let mut other = AddOptions::default();
        options!(words, {
            "DELAY" => other.delay, millis(0);
            "AT" => other.at, time();
            "TTR" => add.ttr, millis(1);
            "PRIORITY" => add.priority, priority();
            "ATTEMPTS" => add.attempts, attempts();
            "BACKOFF" => add.backoff, backoff();
            "TTL" => add.ttl, millis(1);
            "KEEP" => add.keep, millis(0);
            "LATE" => add.late, millis(0);
            "GROUP" => add.group, group();
            "NX" => other.nx, flag();
            "REPLACE" => other.replace, flag();
            "ENSURE" => other.ensure, flag();
        } else |name, words| other.schedule.get_or_insert_default().read(name, words));
        add.due = other.due()?;
        add.if_taken = other.if_taken()?;
        add.schedule = other.schedule(add)?;
        Ok(other.nx.is_some())
    }

    fn due(&self) -> Result<Due, Error> {
        match (self.at, self.delay) {
            (Some(_), Some(_)) => Err(Error::Exclusive { one: "DELAY", other: "AT" }),
            (Some(time), None) => Ok(Due::At(time)),
            (None, delay) => Ok(Due::In(delay.unwrap_or_default())),
        }
    }

    fn if_taken(&self) -> Result<IfTaken, Error> {
        match (self.nx, self.replace, self.ensure) {
            (Some(()), Some(()), _) => Err(Error::Exclusive { one: "NX", other: "REPLACE" }),
            (Some(()), None, Some(())) => Err(Error::Exclusive { one: "NX", other: "ENSURE" }),
            (None, Some(()), Some(())) => Err(Error::Exclusive { one: "REPLACE", other: "ENSURE" }),
            (None, Some(()), None) => Ok(IfTaken::Replace),
            (None, None, Some(())) => Ok(IfTaken::Ensure),
            (_, None, None) => Ok(IfTaken::Refuse),
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
    fn schedule(&self, add: &queue::Add) -> Result<Option<Box<NewSchedule>>, Error> {
        let recurrence = match &self.schedule {
            Some(words) => words.recurrence()?,
            None => None,
        };
        let Some(rule) = recurrence else {
            return match self.ensure {
                Some(()) => Err(Error::NeedsSchedule { option: "ENSURE" }),
                None => Ok(None),
            };
        };
        let excluded = [("TTL", add.ttl.is_some()), ("KEEP", add.keep.is_some())];
        if let Some((option, _)) = excluded.into_iter().find(|(_, is_given)| *is_given) {
            return Err(Error::NotWithSchedule { option });
        }
        if add.id.is_none() {
            return Err(Error::ScheduleNeedsId { option: word_of(&rule) });
        }
        Ok(Some(Box::new(NewSchedule { rule, starts: self.starts() })))
    }
}
