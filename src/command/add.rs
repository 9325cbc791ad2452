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
use super::kinds::{Change, IfMissing, Reply};
use super::schedule_options::{word_of, ScheduleOptions};
use crate::queue::{self, Added, Due, Id, IfTaken, Millis, NewSchedule, Queue, Starts, Time};
use crate::server::replies::Replies;
use crate::server::spec::{KeyUse, Spec};
use crate::services::config;
use crate::services::frame::Source;

pub struct Add;

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
        since: Spec::SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -4,
        key: KeyUse::Insert,
        grammar: "key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n] \
            [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [LATE ms] [GROUP name] \
            [EVERY ms | CRON expression [TZ zone]] [MISFIRE ONE|ALL] [JITTER ms] [RUNS n] \
            [UNTIL unix-ms] [NX | REPLACE | ENSURE]",
    };

    const IF_MISSING: IfMissing = IfMissing::Create;

    type Operation<'c> = queue::Add<'c>;

    fn parse<'c>(mut words: ArgReader<'c>) -> Result<queue::Add<'c>, Error> {
        let id = match words.require()?.bytes() {
            b"*" => None,
            id => Some(Id::new(id).ok_or(Error::IdLength)?),
        };
        let body = words.require()?.bytes();
        let max = config::max_body_bytes();
        if body.len() > max && words.source() == Source::Client {
            return Err(Error::BodyLength { max });
        }
        let mut add = queue::Add { id, ..queue::Add::nameless(body) };
        if words.remaining() > 0 {
            AddOptions::read(words, &mut add)?;
        }
        Ok(add)
    }
}

impl Reply for Added {
    fn reply(&self, queue: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            Added::New { slot, .. } | Added::Replaced { slot, .. } | Added::Unchanged { slot } => {
                replies.bulk(queue.id_and_body(*slot).map_or(&[], |(id, _)| id.bytes()));
            }
            Added::Left | Added::Over { .. } => replies.null(),
            Added::Taken => return Err(Error::Taken),
            Added::Full => return Err(Error::Full),
            Added::Never => return Err(Error::NeverRuns),
        }
        Ok(())
    }
}

impl AddOptions {
    /// Not inlined, so that options are written where they belong and not copied there.
    #[inline(never)]
    fn read<'c>(words: ArgReader<'c>, add: &mut queue::Add<'c>) -> Result<(), Error> {
        let source = words.source();
        let mut other = AddOptions::default();
        options!(words, {
            "DELAY" => other.delay, span(0);
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
        add.schedule = other.schedule(add, source)?;
        Ok(())
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
            (Some(()), None, None) => Ok(IfTaken::Leave),
            (None, None, None) => Ok(IfTaken::Refuse),
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
    fn schedule(
        &self,
        add: &queue::Add,
        source: Source,
    ) -> Result<Option<Box<NewSchedule>>, Error> {
        let recurrence = match &self.schedule {
            Some(words) => words.recurrence(source)?,
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
