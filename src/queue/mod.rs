//! The queue as a state machine over explicit time: no server, no clock, no randomness, no globals.
//!
//! ```
//! use dq::queue::*;
//!
//! let at = |ms| Time::new(ms).unwrap();
//! let ms = |ms| Millis::new(ms).unwrap();
//! let when = |now| Circumstances { now: at(now), ..Circumstances::default() };
//! let id = Id::new(b"a").unwrap();
//! let mut queue = Queue::new((0, 0));
//!
//! let due = Due::In(ms(500));
//! let added = queue.apply(&when(0), &Add { due, ttr: Some(ms(200)), ..Add::plain(id, b"hello") });
//! assert!(matches!(added, Added::New { .. }));
//! assert!(queue.apply(&when(499), &Pop::ONE).is_empty());
//! let lease = queue.apply(&when(500), &Pop::ONE).iter().next().unwrap().lease;
//! let claims = Claims::from_slice(&[Claim { id, lease: Some(lease) }]);
//! let finished = queue.apply(&when(501), &Finish { claims });
//! assert_eq!(finished, Affected(1));
//! ```
//!
//! Each room imports only from the rooms above it:
//!
//! | room | what is in it |
//! | --- | --- |
//! | `memory/` | slabs, an index, values that are stored once; defragmentation |
//! | `value/` | times, ids, policies, rates, schedules, patterns, settings |
//! | `lines/` | sorted buckets, and the lanes, which consist of them |
//! | `groups/` | groups of jobs, which take turns |
//! | `edges/` | which jobs a job waits for |
//! | `kernel/` | what a queue consists of; how a job gets its place; the one way to change a queue |
//! | `record/` | what is in files and in a rewritten AOF |
//! | `operation/` | what commands and the timer do, one operation each |
//! | `query/` | pages, scans and forecasts, which change nothing |

#![forbid(unsafe_code)]

mod edges;
mod groups;
mod kernel;
mod lines;
mod memory;
mod operation;
mod query;
mod record;
mod value;

pub use edges::edge::{EndKind, OnDead, EDGES_MAX};
pub use edges::pending::SettleBudget;
pub use edges::record::{EdgesRecord, PendingRecord};
pub use groups::group::GroupNumber;
pub use groups::idle::PAUSED_GROUPS_MAX;
pub use groups::record::GroupRecord;
pub use groups::view::GroupView;
pub use kernel::batch::Batch;
pub use kernel::defrag::Walk;
pub use kernel::delivery::{Deliveries, Delivery, Mode, POP_BYTES_MAX};
pub use kernel::job::JobView;
pub use kernel::ledger::Events;
pub use kernel::log_state::{Checksum, Circumstances, Defaults, LogState};
pub use kernel::operation::{Affected, Changed, Operation};
pub use kernel::queue::Queue;
pub use kernel::removed::Removed;
pub use kernel::totals::Totals;
pub use kernel::watch::{FinalResult, JobNews};
pub use lines::counts::Counts;
pub use memory::defrag::Defragmenter;
pub use operation::add_many::{AddMany, AddedMany, OneOfMany, Refusal, Times, ADD_MANY_MAX};
pub use operation::consume::{FinishAndPop, FinishedAndTaken, Pop, PopById, POP_JOBS_MAX};
pub use operation::depend::Settle;
pub use operation::done::{Done, DoneOutcome, DONE_ADDS_MAX};
pub use operation::leaving::NextToLeave;
pub use operation::manage::{
    Alter, Altered, KickJob, KickSpread, Pause, Removal, Remove, Resume, Resumed,
};
pub use operation::new_edges::{EdgeFault, NewEdges};
pub use operation::passed_over::PassOver;
pub use operation::produce::{Add, Added, IfTaken};
pub use operation::renew::{Renew, Renewed, RENEWED_MAX};
pub use operation::upkeep::ForgetGroups;
pub use operation::work::{Bury, Checkpoint, Finish, Release, Touch, WhenReleased};
pub use query::dependencies::{EdgeCounts, EdgeState, EdgeView};
pub use query::forecast::Forecast;
pub use query::jobs::{After, ScanFilter, Scanned};
pub use record::block::{read_block, BlockWriter, ReadJob};
pub use record::job::JobRecord;
pub use record::queue::QueueRecord;
pub use record::replay::{Effect, Replayed};
pub use value::cron_words::CRON_NAMES;
pub use value::due::Due;
pub use value::glob::{Compared, Glob};
pub use value::ids::{Claim, Claims, Id, IdList, Ids, Lease, ID_BYTES_MAX};
pub use value::policy::{Attempts, Backoff, Policy};
pub use value::rate::{Rate, Tat};
pub use value::record::{Record, RecordError};
pub use value::recurrence::{
    Answers, Calendar, Cron, Following, Misfire, NewSchedule, Recurrence, RunState, ScheduleView,
    Starts, Timing, CRON_BYTES_MAX, ZONE_BYTES_MAX,
};
pub use value::settings::Settings;
pub use value::sink::{Sink, MAX_LEN_MAX};
pub use value::state::{Progress, Stage, State};
pub use value::tally::Tally;
pub use value::time::{Millis, Time};

#[cfg(test)]
#[allow(clippy::string_slice, reason = "scripts are ASCII")]
mod tests;
