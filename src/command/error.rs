//! Every error that a command can answer with, and its wording.

use std::fmt;

use super::limits::REASON_BYTES_MAX;
use super::quoted::Quoted;
use crate::queue::{RecordError, State, CRON_BYTES_MAX, ID_BYTES_MAX, PAUSED_GROUPS_MAX};
use crate::server::key::WrongType;

#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    WrongArity {
        command: &'static str,
    },
    UnknownOption(Vec<u8>),
    Repeated {
        option: &'static str,
    },
    Exclusive {
        one: &'static str,
        other: &'static str,
    },
    NoValue {
        option: &'static str,
    },
    /// An option with fewer values than it needs, and what these are.
    NoPair {
        option: &'static str,
        values: &'static str,
    },
    /// A state where an option is looked for, in a command that takes STATE.
    BareState(Vec<u8>),
    NotInRange {
        option: &'static str,
        min: u64,
        max: u64,
    },
    /// Now and this span are more than the last time there is.
    PastTheEnd {
        option: &'static str,
    },
    /// An option that makes no sense without another.
    Needs {
        option: &'static str,
        other: &'static str,
    },
    /// An option that has to be given.
    Missing {
        option: &'static str,
    },
    /// An option that makes no sense for jobs in this state.
    NotInState {
        option: &'static str,
        state: State,
    },
    /// AFTER names a job that isn't in this state, and nothing says where it was.
    NotAfter {
        state: State,
    },
    BackoffOrder,
    /// So many jobs take longer than the longest span there is.
    BurstLength {
        option: &'static str,
    },
    ReasonLength,
    NumKeys,
    IdLength,
    GroupLength,
    BodyLength {
        max: usize,
    },
    Lease,
    UnpairedLease,
    /// Of a year to come.
    ForgedLease,
    /// Likewise.
    ForgedTime,
    /// An entry of the log came to something else than where it was logged.
    Differs,
    UnknownState(Vec<u8>),
    UnknownEntry(Vec<u8>),
    /// An entry of the log tells what this version doesn't know.
    UnknownCircumstances(Vec<u8>),
    /// A cron expression that can't be read, and why.
    Cron(String),
    CronLength,
    Zone,
    UnknownMisfire(Vec<u8>),
    JitterLength,
    /// An option that makes no sense without EVERY or CRON.
    NeedsSchedule {
        option: &'static str,
    },
    /// One that makes none with them.
    NotWithSchedule {
        option: &'static str,
    },
    ScheduleNeedsId {
        option: &'static str,
    },
    /// A cron expression that has no time in the next hundred years.
    NeverComes,
    /// A schedule whose limits leave no run.
    NeverRuns,
    Record(RecordError),
    Taken,
    Full,
    TooManyPaused,
    WrongType,
    /// In a cluster.
    CrossSlot,
}

impl From<WrongType> for Error {
    fn from(_: WrongType) -> Self {
        Error::WrongType
    }
}

impl From<RecordError> for Error {
    fn from(error: RecordError) -> Self {
        Error::Record(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::WrongArity { command } => {
                write!(f, "ERR wrong number of arguments for '{command}' command")
            }
            Error::UnknownOption(word) => write!(f, "ERR unknown option {}", Quoted(word)),
            Error::Repeated { option } => write!(f, "ERR option {option} is given twice"),
            Error::Exclusive { one, other } => write!(f, "ERR options {one} and {other} exclude each other"),
            Error::NoValue { option } => write!(f, "ERR option {option} needs a value"),
            Error::NoPair { option, values } => write!(f, "ERR option {option} needs two values: {values}"),
            Error::BareState(word) => {
                write!(f, "ERR unknown option {}: a state needs STATE before it", Quoted(word))
            }
            Error::NotInRange { option, min, max } => {
                write!(f, "ERR {option} must be an integer from {min} to {max}")
            }
            Error::PastTheEnd { option } => write!(
                f,
                "ERR {option} reaches past the last time there is, {}",
                crate::queue::Time::MAX.unix_ms()
            ),
            Error::Needs { option, other } => write!(f, "ERR option {option} needs {other}"),
            Error::Missing { option } => write!(f, "ERR option {option} is missing"),
            Error::NotInState { option, state } => {
                write!(f, "ERR option {option} doesn't go with STATE {}", state.name())
            }
            Error::NotAfter { state: State::Ready } => {
                f.write_str("ERR AFTER names no job that is ready now: begin anew without it")
            }
            Error::NotAfter { state } => write!(
                f,
                "ERR AFTER names no job that is {} now: FROM, the time at which it was shown, goes on from there",
                state.name()
            ),
            Error::BackoffOrder => f.write_str("ERR the base of BACKOFF must not be longer than its max"),
            Error::BurstLength { option } => write!(
                f,
                "ERR at this {option}, BURST jobs must not take longer than {} ms",
                crate::queue::Millis::MAX.as_u64()
            ),
            Error::ReasonLength => {
                write!(f, "ERR reason must be at most {REASON_BYTES_MAX} bytes long")
            }
            Error::NumKeys => {
                f.write_str("ERR numkeys must be the number of keys that follow it, at least 1")
            }
            Error::IdLength => write!(f, "ERR id must be 1 to {ID_BYTES_MAX} bytes long"),
            Error::GroupLength => write!(f, "ERR GROUP must be 1 to {ID_BYTES_MAX} bytes long"),
            Error::BodyLength { max } => {
                write!(f, "ERR body must be at most {max} bytes long (dq.max-body-bytes)")
            }
            Error::Lease => f.write_str("ERR lease must be a positive integer or *"),
            Error::Differs => f.write_str("ERR this queue differs from the primary's"),
            Error::ForgedLease => f.write_str("ERR leases are from more than a year ahead"),
            Error::ForgedTime => f.write_str("ERR the time is more than a year ahead"),
            Error::UnpairedLease => f.write_str("ERR each id needs its lease: id lease [id lease ...]"),
            Error::UnknownState(word) => {
                let names = State::ALL.map(State::name).join(", ");
                write!(f, "ERR unknown state {}: one of {names}", Quoted(word))
            }
            Error::UnknownEntry(word) => {
                write!(f, "ERR unknown command {} in the log: a newer dq may have written it", Quoted(word))
            }
            Error::UnknownCircumstances(word) => {
                write!(f, "ERR the log tells {}: a newer dq may have written it", Quoted(word))
            }
            Error::Cron(why) => write!(f, "ERR CRON can't be read: {why}"),
            Error::CronLength => {
                write!(f, "ERR CRON must be text of 1 to {CRON_BYTES_MAX} bytes")
            }
            Error::Zone => f.write_str("ERR TZ must be the name of a time zone, such as Europe/Berlin"),
            Error::UnknownMisfire(word) => write!(f, "ERR MISFIRE must be ONE or ALL, not {}", Quoted(word)),
            Error::JitterLength => f.write_str("ERR JITTER must be shorter than EVERY"),
            Error::NeedsSchedule { option } => write!(f, "ERR option {option} needs EVERY or CRON"),
            Error::NotWithSchedule { option } => write!(
                f,
                "ERR option {option} doesn't go with EVERY or CRON: a job with a schedule comes back when it is finished"
            ),
            Error::ScheduleNeedsId { option } => {
                write!(f, "ERR option {option} needs an id: with *, each call would make another schedule")
            }
            Error::NeverComes => f.write_str("ERR CRON names no time in the next hundred years"),
            Error::NeverRuns => {
                f.write_str("ERR the job would never run: UNTIL is before its next time, or it has had its RUNS")
            }
            Error::Record(error) => write!(f, "ERR {error}"),
            Error::Taken => f.write_str("EXISTS id is taken in this queue"),
            Error::Full => f.write_str("FULL the queue holds as many jobs as it may"),
            Error::TooManyPaused => write!(f, "FULL {PAUSED_GROUPS_MAX} groups without jobs are paused"),
            Error::WrongType => {
                f.write_str("WRONGTYPE Operation against a key holding the wrong kind of value")
            }
            Error::CrossSlot => f.write_str("CROSSSLOT Keys in request don't hash to the same slot"),
        }
    }
}
