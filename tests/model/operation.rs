//! Random operations. They are drawn without knowing the queue ("the third job", "a stale lease")
//! and become commands, with ids and leases, when it is their turn.

// The fuzzer takes this file by its path, too.
#[path = "operation/commands.rs"]
mod commands;

pub use commands::{given_ids, GIVEN_IDS};

use dq::queue::{OnDead, State};

use crate::groups::Name;
use crate::job::Job;
use crate::reference::{Delivery, Reference};
use crate::subject::Subject;
use crate::told::{
    self, Add, Alteration, Bytes, Checkpoint, Command, Defaults, Due, Edges, Finishing, IfTaken,
    Options, Rule, Starts, Times, When, LAST,
};

/// One operation, after the clock has jumped.
#[derive(Clone, Debug)]
pub struct Turn {
    pub jump: Jump,
    pub defaults: Defaults,
    pub floor: Floor,
    pub readers: Readers,
    pub operation: Operation,
}

#[derive(Clone, Copy, Debug)]
pub enum Jump {
    Forward(u64),
    Back(u64),
}

/// Up to when time has passed for those who look, when the operation is carried out.
#[derive(Clone, Copy, Debug)]
pub enum Readers {
    /// As on a server: up to now.
    OfClock,
    /// Nobody has looked.
    Asleep,
    /// They have another clock.
    Ahead(i64),
}

/// Which leases belong to others.
#[derive(Clone, Copy, Debug)]
pub enum Floor {
    None,
    OfClock,
    /// So many above that of the queue.
    Above(u64),
}

#[derive(Clone, Debug)]
pub enum Operation {
    Add {
        id: NewId,
        due: DueIn,
        options: Options,
        edges: Option<EdgesIn>,
        replaces: bool,
    },
    /// In one step; each at its own time, where there are times.
    Alike {
        ids: Vec<NewId>,
        due: DueIn,
        times: TimesIn,
        options: Options,
        edges: Option<EdgesIn>,
        if_taken: IfTaken,
    },
    Schedule {
        id: u8,
        rule: RuleIn,
        starts: Option<DueIn>,
        options: Options,
        if_taken: IfTaken,
    },
    /// So many jobs of one time, more than a bucket holds.
    AddMany {
        jobs: u64,
        due: DueIn,
        options: Options,
        /// Over so many groups.
        groups: u8,
    },
    Pop {
        count: usize,
        ttr: Option<u64>,
        no_ack: bool,
    },
    FinishAndPop {
        claims: Vec<Claim>,
        count: usize,
        ttr: Option<u64>,
        no_ack: bool,
    },
    PopById {
        jobs: Vec<Which>,
        ttr: Option<u64>,
        no_ack: bool,
    },
    Finish(Vec<Claim>),
    Done {
        claim: Claim,
        result: Option<u16>,
        keep: Option<u64>,
        adds: Vec<Following>,
    },
    Release {
        claim: Claim,
        when: When,
        priority: Option<u8>,
        reason: Option<u8>,
        checkpoint: CheckpointIn,
    },
    Touch {
        claim: Claim,
        ttr: Option<u64>,
        checkpoint: CheckpointIn,
    },
    Renew(Vec<Claim>, Option<u64>),
    Bury {
        claim: Claim,
        reason: Option<u8>,
    },
    /// So many of the last deliveries, the last one first: their clients went away.
    GiveBack {
        count: usize,
    },
    Delete(Vec<Which>),
    Kick {
        at_most: usize,
        over: Option<u64>,
    },
    KickJob(Vec<Which>),
    Forget(Vec<Which>),
    Purge {
        state: State,
        older: u64,
        at_most: usize,
    },
    Pause {
        group: Option<Name>,
        span: Option<u64>,
    },
    Resume {
        group: Option<Name>,
    },
    ResumeJobs(Vec<Which>),
    Alter(Alteration),
    /// Nothing but that time passes.
    Look,
    /// What the timer does: forgets what is old.
    Upkeep,
}

/// The lengths of the texts.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointIn {
    pub body: Option<u16>,
    pub note: Option<u16>,
}

/// A job that is added as another is finished.
#[derive(Clone, Debug)]
pub struct Following {
    /// None: that of the finished job.
    pub id: Option<NewId>,
    pub due: DueIn,
    pub options: Options,
    /// Such a job has an id.
    pub schedule: Option<(RuleIn, Option<DueIn>)>,
    /// Of one without.
    pub edges: Option<EdgesIn>,
    pub if_taken: IfTaken,
}

/// When jobs that are alike are due.
#[derive(Clone, Debug)]
pub enum TimesIn {
    Same,
    /// As many as there are jobs, or more.
    Each(Vec<DueIn>),
    SpreadOver(u64),
}

/// What a new job waits for; or, if that is nothing, which held jobs wait for it.
#[derive(Clone, Debug)]
pub struct EdgesIn {
    pub after: Vec<Which>,
    pub before: Vec<Which>,
    pub on_dead: OnDead,
    pub is_on_hold: bool,
}

/// A schedule; the last of its times so far ahead.
#[derive(Clone, Copy, Debug)]
pub struct RuleIn {
    pub rule: Rule,
    pub until_in: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub enum NewId {
    /// One of a few, so that they are often taken.
    Given(u8),
    ByQueue,
    /// Given by hand, but in the form of those that the queue makes, for a moment ahead.
    LikeOfQueue {
        ahead: u64,
        number: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub enum DueIn {
    Delay(u64),
    Ahead(u64),
    Behind(u64),
    At(u64),
}

#[derive(Clone, Copy, Debug)]
pub enum Which {
    Given(u8),
    /// One of all jobs, at this place in 65536.
    There(u16),
    /// One of those that are held.
    Held(u16),
}

/// Who speaks of which job by which right.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub job: Which,
    pub by: By,
}

#[derive(Clone, Copy, Debug)]
pub enum By {
    TheirLease,
    /// One of all leases that ever were.
    SomeLease(u16),
    NoLease(u64),
    Latest,
}
