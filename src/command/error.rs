//! Every error that a command can answer with, and its wording.

use super::limits::{ADD_MANY_BYTES_MAX, NOTE_BYTES_MAX, REASON_BYTES_MAX};
use super::quoted::Quoted;
use crate::queue::{
    EdgeFault, Millis, RecordError, State, Time, CRON_BYTES_MAX, DONE_ADDS_MAX, EDGES_MAX,
    ID_BYTES_MAX, PAUSED_GROUPS_MAX, RENEWED_MAX,
};
use crate::server::key::WrongType;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("ERR wrong number of arguments for '{command}' command")]
    WrongArity { command: &'static str },
    #[error("ERR unknown option {}", Quoted(.0))]
    UnknownOption(Vec<u8>),
    #[error("ERR option {option} is given twice")]
    Repeated { option: &'static str },
    #[error("ERR options {one} and {other} exclude each other")]
    Exclusive { one: &'static str, other: &'static str },
    #[error("ERR option {option} needs a value")]
    NoValue { option: &'static str },
    /// An option with fewer values than it needs, and what these are.
    #[error("ERR option {option} needs two values: {values}")]
    NoPair { option: &'static str, values: &'static str },
    /// An option that says how many jobs it finishes, and names fewer.
    #[error("ERR option {option} {count} needs an id and a lease, {count} times")]
    TooFewClaims { option: &'static str, count: usize },
    #[error("ERR the key of FINISH must be one of the command's keys")]
    FinishKey,
    /// A state where an option is looked for, in a command that takes STATE.
    #[error("ERR unknown option {}: a state needs STATE before it", Quoted(.0))]
    BareState(Vec<u8>),
    #[error("ERR {option} must be an integer from {min} to {max}")]
    NotInRange { option: &'static str, min: u64, max: u64 },
    /// Now and this span are more than the last time there is.
    #[error("ERR {option} reaches past the last time there is, {}", Time::MAX.unix_ms())]
    PastTheEnd { option: &'static str },
    /// An option that has to be given.
    #[error("ERR option {option} is missing")]
    Missing { option: &'static str },
    /// An option that makes no sense for jobs in this state.
    #[error("ERR option {option} doesn't go with STATE {}", .state.name())]
    NotInState { option: &'static str, state: State },
    /// AFTER names a job that isn't in this state, and nothing says where it was.
    #[error("{}", not_after(.state))]
    NotAfter { state: State },
    #[error("ERR the base of BACKOFF must not be longer than its max")]
    BackoffOrder,
    #[error("ERR option BURST must stand right behind RATE n per-ms or GROUPRATE n per-ms")]
    BurstPlace,
    #[error("ERR option MAXLEN must stand right behind SINK stream")]
    MaxLenPlace,
    #[error("ERR the stream of SINK must be a name of 1 to {} bytes", ID_BYTES_MAX)]
    StreamLength,
    #[error("ERR SINK must be another key than the queue's own")]
    SinkItself,
    /// So many jobs take longer than the longest span there is.
    #[error("ERR at this {option}, BURST jobs must not take longer than {} ms", Millis::MAX.as_u64())]
    BurstLength { option: &'static str },
    #[error("ERR reason must be at most {} bytes long", REASON_BYTES_MAX)]
    ReasonLength,
    #[error("ERR note must be at most {} bytes long", NOTE_BYTES_MAX)]
    NoteLength,
    #[error("ERR DQ.DONE takes at most {} ADDs", DONE_ADDS_MAX)]
    TooManyAdds,
    #[error("ERR DQ.MADD takes bodies of at most {} bytes together", ADD_MANY_BYTES_MAX)]
    TooManyBytes,
    #[error(
        "ERR DQ.MADD makes at most {} edges, which is n times the ids of AFTER or BEFORE",
        EDGES_MAX
    )]
    TooManyEdges,
    /// An id that a command gives to two jobs.
    #[error("ERR the id {} is given twice", Quoted(.0))]
    GivenTwice(Vec<u8>),
    /// An error of one of several jobs, counted from 1.
    #[error("{}", of_job(*.number, .error))]
    OfJob { number: usize, error: Box<Error> },
    #[error("ERR DQ.RENEW takes at most {} leases", RENEWED_MAX)]
    TooManyLeases,
    #[error("ERR numkeys must be the number of keys that follow it, at least 1")]
    NumKeys,
    #[error("ERR id must be 1 to {} bytes long", ID_BYTES_MAX)]
    IdLength,
    #[error("ERR GROUP must be 1 to {} bytes long", ID_BYTES_MAX)]
    GroupLength,
    #[error("ERR body must be at most {max} bytes long (dq.max-body-bytes)")]
    BodyLength { max: usize },
    #[error("ERR lease must be a positive integer or *")]
    Lease,
    #[error("ERR each id needs its lease: id lease [id lease ...]")]
    UnpairedLease,
    /// Of a year to come.
    #[error("ERR leases are from more than a year ahead")]
    ForgedLease,
    /// Likewise.
    #[error("ERR the time is more than a year ahead")]
    ForgedTime,
    /// An entry of the log came to something else than where it was logged.
    #[error("ERR this queue differs from the primary's")]
    Differs,
    #[error("ERR unknown state {}: one of {}", Quoted(.0), State::ALL.map(State::name).join(", "))]
    UnknownState(Vec<u8>),
    #[error("ERR unknown command {} in the log: a newer dq may have written it", Quoted(.0))]
    UnknownEntry(Vec<u8>),
    /// An entry of the log tells what this version doesn't know.
    #[error("ERR the log tells {}: a newer dq may have written it", Quoted(.0))]
    UnknownCircumstances(Vec<u8>),
    /// A cron expression that can't be read, and why.
    #[error("ERR CRON can't be read: {0}")]
    Cron(String),
    #[error("ERR CRON must be text of 1 to {} bytes", CRON_BYTES_MAX)]
    CronLength,
    #[error("ERR TZ must be the name of a time zone, such as Europe/Berlin")]
    Zone,
    #[error("ERR MISFIRE must be ONE or ALL, not {}", Quoted(.0))]
    UnknownMisfire(Vec<u8>),
    #[error("ERR JITTER must be shorter than EVERY")]
    JitterLength,
    /// An option that makes no sense without EVERY or CRON.
    #[error("ERR option {option} needs EVERY or CRON")]
    NeedsSchedule { option: &'static str },
    /// One that makes none with them.
    #[error("ERR option {option} doesn't go with EVERY or CRON: a job with a schedule comes back when it is finished")]
    NotWithSchedule { option: &'static str },
    #[error("ERR option {option} needs an id: with *, each call would make another schedule")]
    ScheduleNeedsId { option: &'static str },
    /// A cron expression that has no time in the next hundred years.
    #[error("ERR CRON names no time in the next hundred years")]
    NeverComes,
    /// A schedule whose limits leave no run.
    #[error("ERR the job would never run: UNTIL is before its next time, or it has had its RUNS")]
    NeverRuns,
    /// An option that lists the same id twice.
    #[error("ERR {option} names {} twice", Quoted(.id))]
    NamedTwice { option: &'static str, id: Vec<u8> },
    /// An option that makes no sense without AFTER or HOLD.
    #[error("ERR option {option} needs AFTER or HOLD")]
    NeedsEdges { option: &'static str },
    #[error("ERR ONDEAD must be HOLD or RUN, not {}", Quoted(.0))]
    UnknownOnDead(Vec<u8>),
    #[error("{}", unconnected(.0))]
    Unconnected(EdgeFault),
    #[error("ERR {0}")]
    Record(RecordError),
    #[error("EXISTS id is taken in this queue")]
    Taken,
    #[error("FULL the queue holds as many jobs as it may")]
    Full,
    #[error("FULL {} groups without jobs are paused", PAUSED_GROUPS_MAX)]
    TooManyPaused,
    #[error("WRONGTYPE Operation against a key holding the wrong kind of value")]
    WrongType,
    /// In a cluster.
    #[error("CROSSSLOT Keys in request don't hash to the same slot")]
    CrossSlot,
}

impl Error {
    /// The same, of the job at this place among several, from 0. One of the whole command stays so.
    pub fn of_job(self, position: usize) -> Error {
        if matches!(self, Error::WrongArity { .. }) {
            return self;
        }
        Error::OfJob { number: position + 1, error: Box::new(self) }
    }
}

/// The job stands behind the prefix, by which clients know the error.
fn of_job(number: usize, error: &Error) -> String {
    let text = error.to_string();
    let (prefix, rest) = text.split_once(' ').unwrap_or(("ERR", &text));
    format!("{prefix} job {number}: {rest}")
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

impl From<EdgeFault> for Error {
    fn from(fault: EdgeFault) -> Self {
        Error::Unconnected(fault)
    }
}

fn unconnected(fault: &EdgeFault) -> String {
    match fault {
        EdgeFault::NoJob(id) => format!("NOJOB no job {} in this queue", Quoted(id)),
        EdgeFault::NotHeld(id) => format!("NOTHELD no held job {} in this queue", Quoted(id)),
        EdgeFault::HasSchedule(id) => format!(
            "ERR AFTER names {}, which has a schedule: it comes back when it is finished",
            Quoted(id)
        ),
        EdgeFault::TooManyDependents(id) => {
            format!("FULL {EDGES_MAX} jobs wait for {}", Quoted(id))
        }
        EdgeFault::TooManyPredecessors(id) => {
            format!("FULL {} waits for {EDGES_MAX} jobs", Quoted(id))
        }
        EdgeFault::HasDependents(id) => format!(
            "ERR jobs wait for {}: no job with AFTER, EVERY or CRON can replace it",
            Quoted(id)
        ),
    }
}

fn not_after(state: &State) -> String {
    match state {
        State::Ready => "ERR AFTER names no job that is ready now: begin anew without it".into(),
        State::Delayed | State::Reserved | State::Dead | State::Done | State::Held => format!(
            "ERR AFTER names no job that is {} now: FROM, the time at which it was shown, goes on from there",
            state.name()
        ),
    }
}
