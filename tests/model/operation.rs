//! Random operations. They are drawn without knowing the queue ("the third job", "a stale lease") and
//! become commands, with ids and leases, when it is their turn.

use proptest::prelude::*;

use crate::reference::{Due, Reference, Told, LAST};

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
    Finish {
        job: Which,
        claim: By,
    },
    Delete {
        job: Which,
    },
    Advance,
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
pub struct Policy {
    pub ttr: u64,
    pub attempts: u32,
    pub priority: u8,
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

#[derive(Clone, Copy, Debug)]
pub enum By {
    TheirLease,
    /// One of all leases that ever were.
    SomeLease(u16),
    NoLease(u64),
    Latest,
}

/// An operation with its names.
#[derive(Clone, Debug)]
pub enum Command {
    /// Without an id of its own, the queue makes one.
    Add {
        told: Told,
        is_named: bool,
        replaces: bool,
    },
    Pop {
        ttr: Option<u64>,
        floor: u64,
    },
    Finish {
        id: Vec<u8>,
        lease: Option<u64>,
    },
    Delete {
        id: Vec<u8>,
    },
    Advance,
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
        match *self {
            Operation::Add { id, due, policy, replaces } => {
                let is_named = !matches!(id, NewId::ByQueue);
                let told = told(id.bytes(clock), due, policy, clock);
                vec![Command::Add { told, is_named, replaces }]
            }
            Operation::AddMany { jobs, due, policy } => {
                let id = |n| format!("many {clock} {n}").into_bytes();
                let tolds = (0..jobs).map(|n| told(id(n), due, policy, clock));
                let add = |told| Command::Add { told, is_named: true, replaces: false };
                tolds.map(add).collect()
            }
            Operation::Pop { count, ttr, floor } => {
                let floor = match floor {
                    Floor::None => 0,
                    Floor::OfClock => clock * 16,
                };
                vec![Command::Pop { ttr, floor }; count]
            }
            Operation::Finish { job, claim } => {
                let id = job.id(reference);
                let lease = match claim {
                    By::TheirLease => reference.get(&id).and_then(|job| job.lease).or(Some(0)),
                    By::NoLease(number) => Some(number),
                    By::Latest => None,
                    By::SomeLease(place) => {
                        let (id, lease) = match pick(&reference.deliveries, place) {
                            Some((id, lease)) => (id.clone(), Some(*lease)),
                            None => (id, Some(1)),
                        };
                        return vec![Command::Finish { id, lease }];
                    }
                };
                vec![Command::Finish { id, lease }]
            }
            Operation::Delete { job } => vec![Command::Delete { id: job.id(reference) }],
            Operation::Advance => vec![Command::Advance],
        }
    }
}

fn told(id: Vec<u8>, due: DueIn, policy: Policy, clock: u64) -> Told {
    let due = match due {
        DueIn::Delay(delay) => Due::In(delay),
        DueIn::Ahead(ms) => Due::At((clock + ms).min(LAST)),
        DueIn::Behind(ms) => Due::At(clock.saturating_sub(ms)),
        DueIn::At(time) => Due::At(time),
    };
    let Policy { ttr, attempts, priority } = policy;
    let body = format!("made at {clock}").into_bytes();
    Told { id, body, due, ttr, attempts, priority }
}

fn pick<T>(all: &[T], place: u16) -> Option<&T> {
    all.get(all.len() * usize::from(place) / 65_536)
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

const GIVEN_IDS: u8 = 6;

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

const YEAR: u64 = 365 * 86_400_000;

/// A span: most often of a size at which things happen together.
fn span() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => Just(0u64),
        6 => Just(1u64),
        10 => 2..8u64,
        4 => 1_000..5_000u64,
        1 => (1..50u64).prop_map(|years| years * YEAR),
    ]
}

fn jump() -> impl Strategy<Value = Jump> {
    prop_oneof![
        9 => span().prop_map(Jump::Forward),
        1 => span().prop_map(Jump::Back),
    ]
}

fn due() -> impl Strategy<Value = DueIn> {
    prop_oneof![
        6 => span().prop_map(DueIn::Delay),
        3 => span().prop_map(DueIn::Ahead),
        2 => span().prop_map(DueIn::Behind),
        1 => prop_oneof![Just(0), Just(LAST), Just(LAST - 1)].prop_map(DueIn::At),
        1 => Just(DueIn::Delay(LAST)),
    ]
}

fn ttr() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..6u64, 3 => 1_000..3_000u64, 1 => Just(LAST)]
}

fn policy() -> impl Strategy<Value = Policy> {
    let attempts = prop_oneof![3 => Just(0u32), 6 => 1..4u32, 1 => Just(u32::MAX)];
    let priority = prop_oneof![5 => Just(128u8), 2 => Just(0u8), 2 => Just(255u8), 1 => any::<u8>()];
    let parts = (ttr(), attempts, priority);
    parts.prop_map(|(ttr, attempts, priority)| Policy { ttr, attempts, priority })
}

fn new_id() -> impl Strategy<Value = NewId> {
    let like = (0..3u64, prop_oneof![0..5u64, Just(7u64), Just(u64::MAX)]);
    prop_oneof![
        6 => (0..=GIVEN_IDS).prop_map(NewId::Given),
        3 => Just(NewId::ByQueue),
        1 => like.prop_map(|(ahead, number)| NewId::LikeOfQueue { ahead, number }),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        1 => (0..=GIVEN_IDS).prop_map(Which::Given),
        3 => any::<u16>().prop_map(Which::There),
    ]
}

fn claim() -> impl Strategy<Value = By> {
    prop_oneof![
        4 => Just(By::TheirLease),
        4 => any::<u16>().prop_map(By::SomeLease),
        1 => prop_oneof![0..10u64, Just(u64::MAX)].prop_map(By::NoLease),
        2 => Just(By::Latest),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let add = (new_id(), due(), policy(), prop::bool::weighted(0.3));
    let add = add.prop_map(|(id, due, policy, replaces)| Operation::Add { id, due, policy, replaces });
    let many = (200..600u64, due(), policy());
    let many = many.prop_map(|(jobs, due, policy)| Operation::AddMany { jobs, due, policy });
    let count = prop_oneof![12 => Just(1usize), 4 => 2..6usize, 1 => 100..400usize];
    let floor = prop_oneof![Just(Floor::None), Just(Floor::OfClock)];
    let pop = (count, prop::option::of(ttr()), floor);
    let pop = pop.prop_map(|(count, ttr, floor)| Operation::Pop { count, ttr, floor });
    let finish = (which(), claim()).prop_map(|(job, claim)| Operation::Finish { job, claim });
    prop_oneof![
        60 => add,
        1 => many,
        60 => pop,
        30 => finish,
        12 => which().prop_map(|job| Operation::Delete { job }),
        12 => Just(Operation::Advance),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    (jump(), operation()).prop_map(|(jump, operation)| Turn { jump, operation })
}

pub fn turns(most: usize) -> impl Strategy<Value = Vec<Turn>> {
    prop::collection::vec(turn(), 1..most)
}

/// Where the clock begins: at nothing, at a small number, today, shortly before the end of time.
pub fn clock() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => Just(0u64),
        4 => Just(1_000_000u64),
        4 => Just(1_763_725_200_000u64),
        1 => Just(LAST - 2_000),
    ]
}
