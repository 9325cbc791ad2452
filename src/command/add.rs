//! `DQ.ADD key id|* body [DELAY ms | AT unix-ms] [TTR ms] [PRIORITY 0..255] [ATTEMPTS n]
//! [BACKOFF base-ms max-ms] [TTL ms] [KEEP ms] [NX | REPLACE]`
//!
//! Adds a job, to be handed out from its due time on. `*` makes an id. Without DELAY or AT it is due now;
//! AT in the past is now. What TTR, ATTEMPTS, BACKOFF and KEEP don't say is as DQ.ALTER has set it for the
//! queue or as the configs have it, at this moment and for good. After TTL, unless it was finished, the job is
//! dead. KEEP is how long it stays, as done, once it is finished: so long its id is taken.
//!
//! Replies with the id; with nil when NX was given and the id is taken. A taken id is the error `EXISTS`
//! otherwise, unless REPLACE: then the old job is gone, with its lease and its attempts.
//!
//! O(log n) in the queue's jobs.

use super::error::Error;
use super::words::{once, Words};
use super::SINCE_0_1;
use crate::queue::{
    Added, Attempts, Backoff, Due, Id, IfTaken, Millis, Naming, NewJob, Policy, Settings, Time,
};
use crate::redis::call::{Arg, Call};
use crate::redis::command::Command;
use crate::redis::config;
use crate::redis::effect::{Body, Effect};
use crate::redis::key::OpenQueue;
use crate::redis::spec::{ArgSpec, KeyUse, Spec};

const DEFAULT_PRIORITY: u8 = 128;

pub struct Add<'c> {
    key: Arg<'c>,
    /// `None` for `*`.
    id: Option<Id<'c>>,
    body: Arg<'c>,
    options: Options,
}

#[derive(Default)]
struct Options {
    delay: Option<Millis>,
    at: Option<Time>,
    ttr: Option<Millis>,
    priority: Option<u8>,
    attempts: Option<Attempts>,
    backoff: Option<Backoff>,
    ttl: Option<Millis>,
    keep: Option<Millis>,
    nx: Option<()>,
    replace: Option<()>,
}

impl Command for Add<'_> {
    type Error = Error;
    const SPEC: Spec = Spec {
        name: c"dq.add",
        summary: c"Adds a job to a queue, to be handed out from its due time on",
        complexity: c"O(log(N)) with N being the number of jobs in the queue",
        since: SINCE_0_1,
        flags: c"write deny-oom fast",
        arity: -4,
        key: KeyUse::Insert,
        args: &[
            ArgSpec::KEY,
            ArgSpec::one_of(c"id-selector", &[ArgSpec::word(c"auto-id", c"*"), ArgSpec::string(c"id")]),
            ArgSpec::string(c"body"),
            ArgSpec::one_of(
                c"due",
                &[
                    ArgSpec::integer(c"milliseconds").token(c"DELAY"),
                    ArgSpec::unix_time(c"unix-time-milliseconds").token(c"AT"),
                ],
            )
            .optional(),
            ArgSpec::integer(c"time-to-run").token(c"TTR").optional(),
            ArgSpec::integer(c"priority").token(c"PRIORITY").optional(),
            ArgSpec::integer(c"attempts").token(c"ATTEMPTS").optional(),
            ArgSpec::BACKOFF,
            ArgSpec::integer(c"time-to-live").token(c"TTL").optional(),
            ArgSpec::integer(c"keep-milliseconds").token(c"KEEP").optional(),
            ArgSpec::one_of(
                c"if-taken",
                &[ArgSpec::word(c"nx", c"NX"), ArgSpec::word(c"replace", c"REPLACE")],
            )
            .optional(),
        ],
    };

    fn run(call: &Call) -> Result<(), Error> {
        Add::parse(call)?.apply(call)
    }
}

impl<'c> Add<'c> {
    fn parse(call: &Call<'c>) -> Result<Add<'c>, Error> {
        let mut words = Words::of(call, "dq.add");
        let key = words.require()?;
        let id = match words.require()?.bytes() {
            b"*" => None,
            id => Some(Id::new(id).ok_or(Error::IdLength)?),
        };
        let body = words.require()?;
        let max = config::max_body_bytes();
        if body.bytes().len() > max {
            return Err(Error::BodyLength { max });
        }
        let options = Options::parse(words)?;
        Ok(Add { key, id, body, options })
    }

    fn apply(self, call: &Call) -> Result<(), Error> {
        let now = call.now();
        let due = self.options.due(now)?;
        let mut queue = OpenQueue::open_or_create(call, self.key)?;
        let made;
        let (id, naming) = match self.id {
            Some(id) => (id, Naming::Given),
            None => {
                made = queue.next_id(now);
                (Id::new(made.as_bytes()).ok_or(Error::IdLength)?, Naming::ByQueue)
            }
        };
        let policy = self.options.policy(queue.settings());
        let job = NewJob { id, body: self.body.bytes(), due, policy, naming };
        match queue.add(now, &job, self.options.if_taken()) {
            Added::New(_) | Added::Replaced(_) => {
                call.replies().bulk(id.bytes());
                queue.publish(&[Effect::Put { id, body: Body::Arg(self.body), naming }]);
            }
            Added::Taken if self.options.nx.is_some() => call.replies().null(),
            Added::Taken => return Err(Error::Taken),
            Added::Full => return Err(Error::Full),
        }
        Ok(())
    }
}

impl Options {
    fn parse(words: Words) -> Result<Options, Error> {
        let mut options = Options::default();
        words.options(|name, words| match name {
            "DELAY" => once("DELAY", &mut options.delay, words.millis("DELAY", 0)?),
            "AT" => once("AT", &mut options.at, words.time("AT")?),
            "TTR" => once("TTR", &mut options.ttr, words.millis("TTR", 1)?),
            "PRIORITY" => {
                let priority = words.integer("PRIORITY", 0, u8::MAX.into())?;
                once("PRIORITY", &mut options.priority, priority as u8)
            }
            "ATTEMPTS" => once("ATTEMPTS", &mut options.attempts, words.attempts()?),
            "BACKOFF" => once("BACKOFF", &mut options.backoff, words.backoff()?),
            "TTL" => once("TTL", &mut options.ttl, words.millis("TTL", 1)?),
            "KEEP" => once("KEEP", &mut options.keep, words.millis("KEEP", 0)?),
            "NX" => once("NX", &mut options.nx, ()),
            "REPLACE" => once("REPLACE", &mut options.replace, ()),
            _ => Ok(false),
        })?;
        if options.delay.is_some() && options.at.is_some() {
            return Err(Error::Exclusive { one: "DELAY", other: "AT" });
        }
        if options.nx.is_some() && options.replace.is_some() {
            return Err(Error::Exclusive { one: "NX", other: "REPLACE" });
        }
        Ok(options)
    }

    fn due(&self, now: Time) -> Result<Due, Error> {
        if let Some(time) = self.at {
            return Ok(Due::At(time));
        }
        let delay = self.delay.unwrap_or_default();
        now.checked_add(delay).ok_or(Error::PastTheEnd { option: "DELAY" })?;
        Ok(Due::In(delay))
    }

    /// What isn't given is as the queue has it or, without that, as the configs have it.
    fn policy(&self, settings: &Settings) -> Policy {
        Policy {
            ttr: self.ttr.or(settings.ttr).unwrap_or_else(config::default_ttr),
            attempts: self.attempts.or(settings.attempts).unwrap_or_else(config::default_attempts),
            priority: self.priority.unwrap_or(DEFAULT_PRIORITY),
            backoff: self.backoff.unwrap_or(settings.backoff),
            ttl: self.ttl.unwrap_or_default(),
            keep: self.keep.unwrap_or(settings.keep),
        }
    }

    fn if_taken(&self) -> IfTaken {
        match self.replace {
            Some(()) => IfTaken::Replace,
            None => IfTaken::Refuse,
        }
    }
}
