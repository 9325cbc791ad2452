//! What one tells a queue, in plain numbers.

use dq::queue::{EdgeFault, OnDead};

use crate::groups::Name;

/// The last moment there is.
pub const LAST: u64 = (1 << 48) - 1;
/// From here on, the numbers of leases are used up: the year 2109.
pub const LEASES_END: u64 = 1 << 42;
/// Leases stay below this number.
pub const LEASE_MAX: u64 = (1 << 53) - 1;

pub type Bytes = Vec<u8>;

/// What jobs get that aren't told otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    pub ttr: u64,
    pub attempts: u32,
    pub backoff: Backoff,
}

/// Under which a command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Circumstances {
    pub now: u64,
    pub defaults: Defaults,
    /// 0 is none.
    pub lease_floor: u64,
}

#[derive(Clone, Debug)]
pub struct Add {
    /// Without one, the queue makes one.
    pub id: Option<Bytes>,
    pub body: Bytes,
    pub due: Due,
    pub options: Options,
    pub schedule: Option<(Rule, Starts)>,
    pub edges: Option<Edges>,
    pub if_taken: IfTaken,
}

/// Which jobs a new one waits for, and which held ones wait for it.
#[derive(Clone, Debug)]
pub struct Edges {
    pub after: Vec<Bytes>,
    pub before: Vec<Bytes>,
    pub on_dead: OnDead,
    pub is_on_hold: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfTaken {
    Refuse,
    Leave,
    Replace,
    Ensure,
}

impl IfTaken {
    /// The job that has the id.
    pub fn leaves(self) -> bool {
        matches!(self, IfTaken::Refuse | IfTaken::Leave)
    }
}

/// How a job comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    pub timing: Timing,
    pub all: bool,
    pub jitter: u64,
    /// 0 is without end.
    pub runs: u32,
    pub until: Option<u64>,
    /// 0 is never.
    pub late: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    Every(u64),
    /// See `run_state::by_cron`.
    Cron(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starts {
    ByItself,
    In(u64),
    At(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    In(u64),
    At(u64),
}

/// When jobs that are alike are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Same,
    Each,
    SpreadOver(u64),
}

impl Due {
    pub fn counted_from(self, now: u64) -> u64 {
        match self {
            Due::In(delay) => (now + delay).min(LAST),
            Due::At(time) => time.max(now),
        }
    }
}

/// What ADD may say of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub ttr: Option<u64>,
    pub attempts: Option<u32>,
    pub priority: Option<u8>,
    pub backoff: Option<Backoff>,
    pub ttl: Option<u64>,
    pub keep: Option<u64>,
    pub late: Option<u64>,
    pub group: Option<Name>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    pub base: u64,
    pub max: u64,
}

/// What a job was told, with whatever it wasn't.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub ttr: u64,
    /// 0 is no limit.
    pub attempts: u32,
    pub priority: u8,
    pub backoff: Backoff,
    /// 0 is for ever.
    pub ttl: u64,
    pub keep: u64,
    /// 0 is never; and of a job with a schedule, whose rule has it.
    pub late: u64,
}

impl Policy {
    /// When a job expires whose life begins now.
    pub fn expiry(&self, now: u64) -> Option<u64> {
        (self.ttl != 0).then(|| now + self.ttl).filter(|expiry| *expiry < LAST)
    }
}

/// How fast jobs may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub jobs: u32,
    pub per: u64,
    pub burst: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    pub ttr: Option<u64>,
    pub attempts: Option<u32>,
    pub backoff: Option<Backoff>,
    pub keep: u64,
    pub late: u64,
    /// 0 is no limit.
    pub max_jobs: u64,
    /// 0 is for ever.
    pub dead_keep: u64,
    /// 0 is no limit.
    pub concurrency: u32,
    pub rate: Option<Rate>,
    /// Likewise, of each group.
    pub group_concurrency: u32,
    pub group_rate: Option<Rate>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Alteration {
    pub ttr: Option<u64>,
    pub attempts: Option<u32>,
    pub backoff: Option<Backoff>,
    pub keep: Option<u64>,
    pub late: Option<u64>,
    pub max_jobs: Option<u64>,
    pub dead_keep: Option<u64>,
    pub concurrency: Option<u32>,
    pub rate: Option<Option<Rate>>,
    pub group_concurrency: Option<u32>,
    pub group_rate: Option<Option<Rate>>,
    /// The number of a stream, and how much it keeps.
    pub sink: Option<Option<(u8, u64)>>,
}

/// Of which delivery of which job; without a lease, of the latest one.
#[derive(Clone, Debug)]
pub struct Claim {
    pub id: Bytes,
    pub lease: Option<u64>,
}

/// What a worker keeps with a job that goes on.
#[derive(Clone, Debug, Default)]
pub struct Checkpoint {
    pub body: Option<Bytes>,
    /// An empty one is none.
    pub note: Option<Bytes>,
}

/// How a job is finished.
#[derive(Clone, Debug, Default)]
pub struct Finishing {
    pub result: Option<Bytes>,
    pub keep: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub enum When {
    AfterBackoff,
    After(u64),
    Unbegun,
}

/// What changes a queue, as it stands in a log.
#[derive(Clone, Debug)]
pub enum Command {
    Add(Add),
    /// These, in one step. They differ by ids, bodies and times, and the times are what these make
    /// of the first one's.
    Alike {
        adds: Vec<Add>,
        like: Due,
        times: Times,
    },
    Pop {
        count: usize,
        ttr: Option<u64>,
        no_ack: bool,
    },
    Finish {
        claims: Vec<Claim>,
    },
    /// The second one behind the first.
    FinishAndPop {
        claims: Vec<Claim>,
        count: usize,
        ttr: Option<u64>,
        no_ack: bool,
    },
    PopById {
        ids: Vec<Bytes>,
        ttr: Option<u64>,
        no_ack: bool,
    },
    Done {
        claim: Claim,
        finishing: Finishing,
        adds: Vec<Add>,
    },
    Release {
        claim: Claim,
        when: When,
        priority: Option<u8>,
        reason: Option<Bytes>,
        checkpoint: Checkpoint,
    },
    Touch {
        claim: Claim,
        ttr: Option<u64>,
        checkpoint: Checkpoint,
    },
    Renew {
        claims: Vec<Claim>,
        ttr: Option<u64>,
    },
    Bury {
        claim: Claim,
        reason: Option<Bytes>,
    },
    Delete {
        ids: Vec<Bytes>,
    },
    KickJob {
        ids: Vec<Bytes>,
    },
    KickSpread {
        ids: Vec<Bytes>,
        span: u64,
    },
    Forget {
        ids: Vec<Bytes>,
    },
    ForgetGroups,
    Pause {
        group: Option<Name>,
        span: Option<u64>,
    },
    Resume {
        group: Option<Name>,
    },
    ResumeJobs {
        ids: Vec<Bytes>,
    },
    /// These have died by now.
    Settle {
        ids: Vec<Bytes>,
    },
    Alter(Alteration),
}

impl Command {
    pub fn name(&self) -> &'static str {
        match self {
            Command::Add(_) => "add",
            Command::Alike { .. } => "add alike",
            Command::Pop { no_ack: false, .. } => "pop",
            Command::Pop { .. } => "pop noack",
            Command::FinishAndPop { .. } => "finish and pop",
            Command::PopById { .. } => "pop by id",
            Command::Finish { .. } => "finish",
            Command::Done { .. } => "done",
            Command::Release { .. } => "release",
            Command::Touch { .. } => "touch",
            Command::Renew { .. } => "renew",
            Command::Bury { .. } => "bury",
            Command::Delete { .. } => "delete",
            Command::KickJob { .. } => "kickjob",
            Command::KickSpread { .. } => "kickspread",
            Command::Forget { .. } => "forget",
            Command::ForgetGroups => "forget groups",
            Command::Pause { .. } => "pause",
            Command::Resume { .. } => "resume",
            Command::ResumeJobs { .. } => "resume jobs",
            Command::Settle { .. } => "settle",
            Command::Alter(_) => "alter",
        }
    }
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing, for whatever reason.
    No,
    Yes,
    Full,
    /// A schedule without a run.
    Never,
    /// The same of one that is to be there.
    Over {
        was_there: bool,
    },
    Added {
        id: Bytes,
        due: u64,
        replaced: bool,
    },
    /// And how many were too late for that, which come back.
    HandedOut(Vec<Handed>, usize),
    /// So many are finished, and then that was handed out.
    FinishedAndTaken(usize, Box<Outcome>),
    /// Nothing is handed out; but the clock was set back, and groups hear of it.
    SetBack,
    /// So many jobs.
    Jobs(usize),
    /// The claims at these places are void, and so many are extended.
    Renewed(Vec<usize>, usize),
    /// Finished, and these were added; none where an ADD left things as they were.
    Followed(Vec<Option<Bytes>>),
    /// Nothing, since an ADD would have come to this.
    Refused(Box<Outcome>),
    /// These were added; none where that left things as they were.
    Alike(Vec<Option<Bytes>>),
    /// Nothing, since the one at this place would have come to this.
    RefusedAt(usize, Box<Outcome>),
    /// One before it has its id.
    Twice,
    /// An edge can't be.
    Unconnected(EdgeFault),
}

/// What a pop hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    pub id: Bytes,
    pub body: Bytes,
    pub lease: u64,
    pub attempt: u32,
    pub end: u64,
    pub due: u64,
}

impl Outcome {
    pub fn yes_if(is_so: bool) -> Outcome {
        if is_so {
            Outcome::Yes
        } else {
            Outcome::No
        }
    }

    pub fn has_changed(&self) -> bool {
        match self {
            Outcome::No
            | Outcome::Full
            | Outcome::Never
            | Outcome::Jobs(0)
            | Outcome::Renewed(_, 0)
            | Outcome::Refused(_)
            | Outcome::RefusedAt(..)
            | Outcome::Twice
            | Outcome::Unconnected(_) => false,
            Outcome::Alike(ids) => ids.iter().any(Option::is_some),
            Outcome::Over { was_there } => *was_there,
            Outcome::FinishedAndTaken(finished, taken) => *finished > 0 || taken.has_changed(),
            Outcome::HandedOut(handed, passed_over) => !handed.is_empty() || *passed_over > 0,
            Outcome::Yes
            | Outcome::SetBack
            | Outcome::Added { .. }
            | Outcome::Jobs(_)
            | Outcome::Renewed(..)
            | Outcome::Followed(_) => true,
        }
    }
}
