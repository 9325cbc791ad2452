//! The two kinds of commands: those that change one queue, and those that look at one. A command
//! says what is its own: parse and, where it looks, reply; carrying it out is the same for all of a
//! kind, and here. The outcome of a change has its own [`Reply`].
//! DQ.POP, DQ.MPOP, DQ.RENEW, DQ.RESULT, DQ.KICK, DQ.PURGE, DQ.NEXT and DQ.APPLY are of neither kind.

use super::arg_reader::ArgReader;
use super::error::Error;
use crate::queue::{Affected, Altered, Operation, Queue, Time};
use crate::server::arg::Arg;
use crate::server::call::Call;
pub use crate::server::command::Handler;
use crate::server::key::Access;
use crate::server::logfile::warning;
use crate::server::replies::Replies;
use crate::server::spec::Spec;
use crate::services::change::divergence;
use crate::services::change::frame::Source;
use crate::services::change::log::LoggedCircumstances;
use crate::services::keys::opened::{source_of, OpenedKey};
use crate::services::QueueValue;

/// A command that changes a queue.
pub trait Change {
    const SPEC: Spec;
    /// Whether it creates the key if there is none.
    const CREATES: bool = false;

    type Operation<'c>: Operation<Outcome: Reply>;

    /// The arguments after the key. Everything is read and checked before the key is touched.
    fn parse<'c>(args: ArgReader<'c>) -> Result<Self::Operation<'c>, Error>;

    /// There is no such key, and the command doesn't create it.
    fn reply_missing(_operation: &Self::Operation<'_>, replies: Replies) {
        replies.integer(0);
    }

    /// Refuses a client's command for what follows from the key and the other arguments together.
    fn check(_call: &Call, _key: Arg, _operation: &Self::Operation<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// What came of an operation, as a client gets it.
pub trait Reply {
    /// With an error, nothing has changed.
    fn reply(&self, queue: &Queue, replies: Replies) -> Result<(), Error>;
}

impl Reply for Affected {
    fn reply(&self, _: &Queue, replies: Replies) -> Result<(), Error> {
        replies.integer(self.0 as u64);
        Ok(())
    }
}

impl Reply for Altered {
    fn reply(&self, _: &Queue, replies: Replies) -> Result<(), Error> {
        match self {
            Altered::Yes | Altered::No => replies.ok(),
            Altered::TooManyPaused => return Err(Error::TooManyPaused),
        }
        Ok(())
    }
}

/// The command as the server sees it.
pub struct ChangeHandler<C>(std::marker::PhantomData<C>);

impl<C: Change> Handler for ChangeHandler<C> {
    const SPEC: Spec = C::SPEC;
    const ON_ERROR: fn(&Call, &Error) = report_entry::<Self>;
    type Error = Error;

    fn run(call: &Call) -> Result<(), Error> {
        let source = source_of(call);
        let mut args = ArgReader::of(call, &C::SPEC, source);
        let key = args.require()?;
        let operation = C::parse(args)?;
        if source == Source::Client {
            C::check(call, key, &operation)?;
        }
        match open::<C>(call, key)? {
            Some(opened) => opened
                .change(source, &operation, |outcome, queue| outcome.reply(queue, call.replies())),
            None => {
                C::reply_missing(&operation, call.replies());
                Ok(())
            }
        }
    }
}

/// The same from an entry of the log, which tells the circumstances. False when there is no such
/// key.
pub fn replay<C: Change>(
    call: &Call,
    key: Arg,
    args: ArgReader,
    logged: &LoggedCircumstances,
) -> Result<bool, Error> {
    let operation = C::parse(args)?;
    Ok(replay_at(open::<C>(call, key)?, logged, &operation))
}

/// Applies an operation as an entry of the log tells. False when there is no such key.
pub fn replay_at<O: Operation>(
    opened: Option<OpenedKey>,
    logged: &LoggedCircumstances,
    operation: &O,
) -> bool {
    opened.map(|opened| opened.replay_entry(logged, operation)).is_some()
}

fn open<'c, C: Change>(call: &Call<'c>, key: Arg<'c>) -> Result<Option<OpenedKey<'c>>, Error> {
    if C::CREATES {
        return Ok(Some(OpenedKey::or_created(call, key)?));
    }
    Ok(OpenedKey::at(call, key, Access::Write)?)
}

/// A command that looks at a queue.
pub trait Query {
    const SPEC: Spec;

    type Parsed<'c>;

    /// The arguments after the key.
    fn parse<'c>(args: ArgReader<'c>) -> Result<Self::Parsed<'c>, Error>;

    /// With an error, nothing has been replied.
    fn reply(
        parsed: &Self::Parsed<'_>,
        context: &QueryContext,
        replies: Replies,
    ) -> Result<(), Error>;

    /// There is no such key.
    fn reply_missing(_parsed: &Self::Parsed<'_>, replies: Replies) -> Result<(), Error> {
        replies.null();
        Ok(())
    }
}

/// What one looks at.
pub struct QueryContext<'q> {
    pub value: &'q QueueValue,
    pub now: Time,
    /// How many clients wait for jobs of this queue.
    pub consumers: usize,
    /// How many wait for what becomes of its jobs and leases.
    pub watchers: usize,
}

impl QueryContext<'_> {
    pub fn queue(&self) -> &Queue {
        self.value.queue()
    }
}

/// The command as the server sees it.
pub struct QueryHandler<C>(std::marker::PhantomData<C>);

impl<C: Query> Handler for QueryHandler<C> {
    const SPEC: Spec = C::SPEC;
    type Error = Error;

    fn run(call: &Call) -> Result<(), Error> {
        let mut args = ArgReader::of(call, &C::SPEC, Source::Client);
        let key = args.require()?;
        let parsed = C::parse(args)?;
        let Some(mut opened) = OpenedKey::at(call, key, Access::Read)? else {
            return C::reply_missing(&parsed, call.replies());
        };
        let (consumers, watchers) = (opened.consumers(), opened.watchers());
        let (value, now) = opened.look();
        C::reply(&parsed, &QueryContext { value, now, consumers, watchers }, call.replies())
    }
}

/// A command that may be an entry of the log has failed. An entry that can't be applied, most often
/// because a newer dq wrote it, is reported in this server's own log: no client reads the error that a
/// replica answers its primary.
pub fn report_entry<C: Handler>(call: &Call, error: &Error) {
    if source_of(call) == Source::Log && !matches!(error, Error::Differs) {
        let name = C::SPEC.name.to_string_lossy();
        warning(&format!("can't apply {name} from the replication stream or AOF: {error}"));
        let key = call.args().get(1).map_or(&[][..], Arg::bytes);
        divergence::report(key);
    }
}
