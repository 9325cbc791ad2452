//! Random operations. They are drawn without knowing the queue ("the third job", "a stale lease") and
//! become commands, with ids and leases, when it is their turn.

use dq::queue::State;

use crate::reference::Reference;
use crate::told::{Command, Due, Policy, Settings, Told, LAST};

/// One operation, after the clock has jumped.
#[derive(Clone, Debug)]
pub struct Turn {
    pub jump: Jump,
    pub operation: Operation,
}

#[derive(Clone, Copy, Debug)]
pub enum Jump {
    Forward(u64),
    Back(u64),
}

#[derive(Clone, Debug)]
pub enum Operation {
    Add {
        id: NewId,
        due: DueIn,
        policy: Policy,
        replaces: bool,
    },
    /// So many jobs of one time, more than a bucket holds.
    AddMany {
        jobs: u64,
        due: DueIn,
        policy: Policy,
    },
    Pop {
        count: usize,
        ttr: Option<u64>,
        floor: Floor,
    },
    Finish(Claim),
    Release {
        claim: Claim,
        unbegun: bool,
        delay: Option<u64>,
        reason: Option<u8>,
    },
    Touch {
        claim: Claim,
        ttr: Option<u64>,
    },
    Bury {
        claim: Claim,
        reason: Option<u8>,
    },
    /// So many of the last deliveries, the last one first.
    GiveBack {
        count: usize,
    },
    Delete(Which),
    Kick {
        at_most: usize,
    },
    KickJob(Which),
    Purge {
        state: State,
        older: u64,
        at_most: usize,
    },
    Pause {
        span: u64,
    },
    Alter(Settings),
    Advance,
    BuryOverdue {
        at_most: usize,
    },
    Upkeep,
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
pub enum Floor {
    None,
    /// As the commands do it: by the clock.
    OfClock,
}

#[derive(Clone, Copy, Debug)]
pub enum Which {
    Given(u8),
    /// One of all jobs, at this place in 65536.
    There(u16),
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

impl Jump {
    pub fn from(self, clock: u64) -> u64 {
        match self {
            Jump::Forward(ms) => (clock + ms).min(LAST),
            Jump::Back(ms) => clock.saturating_sub(ms),
        }
    }
}

impl Operation {
    /// What this is for a queue that stands as the reference does.
    pub fn commands(&self, clock: u64, reference: &Reference) -> Vec<Command> {
        let one = match *self {
            Operation::AddMany { jobs, due, policy } => return add_many(jobs, due, policy, clock),
            Operation::GiveBack { count } => return give_back(count, reference),
            Operation::Pop { count, ttr, floor } => {
                let floor = match floor {
                    Floor::None => 0,
                    Floor::OfClock => clock * 16,
                };
                return vec![Command::Pop { ttr, floor }; count];
            }
            Operation::Add { id, due, policy, replaces } => {
                let is_named = !matches!(id, NewId::ByQueue);
                Command::Add { told: told(id.bytes(clock), due, policy, clock), is_named, replaces }
            }
            Operation::Finish(claim) => {
                let (id, lease) = claim.parts(reference);
                Command::Finish { id, lease }
            }
            Operation::Release { claim, unbegun, delay, reason } => {
                let (id, lease) = claim.parts(reference);
                Command::Release { id, lease, unbegun, delay, reason: reason.map(words) }
            }
            Operation::Touch { claim, ttr } => {
                let (id, lease) = claim.parts(reference);
                Command::Touch { id, lease, ttr }
            }
            Operation::Bury { claim, reason } => {
                let (id, lease) = claim.parts(reference);
                Command::Bury { id, lease, reason: reason.map(words) }
            }
            Operation::Delete(job) => Command::Delete { id: job.id(reference) },
            Operation::Kick { at_most } => Command::Kick { at_most },
            Operation::KickJob(job) => Command::KickJob { id: job.id(reference) },
            Operation::Purge { state, older, at_most } => Command::Purge { state, older, at_most },
            Operation::Pause { span: 0 } => Command::Pause { until: 0 },
            Operation::Pause { span } => Command::Pause { until: (clock + span).min(LAST) },
            Operation::Alter(settings) => Command::Alter(settings),
            Operation::Advance => Command::Advance,
            Operation::BuryOverdue { at_most } => Command::BuryOverdue { at_most },
            Operation::Upkeep => Command::Upkeep,
        };
        vec![one]
    }
}

fn add_many(jobs: u64, due: DueIn, policy: Policy, clock: u64) -> Vec<Command> {
    let id = |n| format!("many {clock} {n}").into_bytes();
    let tolds = (0..jobs).map(|n| told(id(n), due, policy, clock));
    tolds.map(|told| Command::Add { told, is_named: true, replaces: false }).collect()
}

fn give_back(count: usize, reference: &Reference) -> Vec<Command> {
    let last = reference.deliveries.iter().rev().take(count);
    last.map(|one| Command::GiveBack { id: one.before.id.clone(), lease: one.lease }).collect()
}

fn told(id: Vec<u8>, due: DueIn, policy: Policy, clock: u64) -> Told {
    let due = match due {
        DueIn::Delay(delay) => Due::In(delay),
        DueIn::Ahead(ms) => Due::At((clock + ms).min(LAST)),
        DueIn::Behind(ms) => Due::At(clock.saturating_sub(ms)),
        DueIn::At(time) => Due::At(time),
    };
    let body = format!("made at {clock}").into_bytes();
    Told { id, body, due, policy }
}

fn words(n: u8) -> Vec<u8> {
    format!("reason {n}").into_bytes()
}

fn pick<T>(all: &[T], place: u16) -> Option<&T> {
    all.get(all.len() * usize::from(place) / 65_536)
}

impl Claim {
    fn parts(self, reference: &Reference) -> (Vec<u8>, Option<u64>) {
        let id = self.job.id(reference);
        match self.by {
            By::TheirLease => {
                let lease = reference.get(&id).and_then(|job| job.lease).or(Some(0));
                (id, lease)
            }
            By::NoLease(number) => (id, Some(number)),
            By::Latest => (id, None),
            By::SomeLease(place) => match pick(&reference.deliveries, place) {
                Some(delivery) => (delivery.before.id.clone(), Some(delivery.lease)),
                None => (id, Some(1)),
            },
        }
    }
}

impl NewId {
    fn bytes(self, clock: u64) -> Vec<u8> {
        match self {
            NewId::Given(n) => given_id(n),
            NewId::LikeOfQueue { ahead, number } => {
                format!("{}-{number}", (clock + ahead).min(LAST)).into_bytes()
            }
            NewId::ByQueue => Vec::new(),
        }
    }
}

impl Which {
    fn id(self, reference: &Reference) -> Vec<u8> {
        match self {
            Which::Given(n) => given_id(n),
            Which::There(place) => pick(&reference.jobs, place).map_or(given_id(0), |job| job.id.clone()),
        }
    }
}

pub const GIVEN_IDS: u8 = 6;

fn given_id(n: u8) -> Vec<u8> {
    // Any bytes will do; the last one is as long as ids may be.
    match n {
        0 => vec![0],
        1 => vec![255, 0, 10],
        GIVEN_IDS.. => vec![7; 512],
        n => vec![b'a' + n],
    }
}

/// Every id that is ever given by hand from the small set.
pub fn given_ids() -> impl Iterator<Item = Vec<u8>> {
    (0..=GIVEN_IDS).map(given_id)
}
