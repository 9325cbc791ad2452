//! What one tells a queue, in plain numbers.

/// The last moment there is.
pub const LAST: u64 = (1 << 48) - 1;

#[derive(Clone, Debug)]
pub struct Told {
    pub id: Vec<u8>,
    pub body: Vec<u8>,
    pub due: Due,
    pub policy: Policy,
}

#[derive(Clone, Copy, Debug)]
pub enum Due {
    In(u64),
    At(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    pub ttr: u64,
    /// 0 is no limit.
    pub attempts: u32,
    pub priority: u8,
    pub backoff_base: u64,
    pub backoff_max: u64,
    /// 0 is for ever.
    pub ttl: u64,
    pub keep: u64,
}

impl Policy {
    /// When a life that begins now is over.
    pub fn dies(&self, now: u64) -> Option<u64> {
        (self.ttl != 0).then(|| (now + self.ttl).min(LAST))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// 0 is no limit.
    pub max_jobs: u64,
    /// 0 is for ever.
    pub dead_keep: u64,
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
    Release {
        id: Vec<u8>,
        lease: Option<u64>,
        unbegun: bool,
        delay: Option<u64>,
        reason: Option<Vec<u8>>,
    },
    Touch {
        id: Vec<u8>,
        lease: Option<u64>,
        ttr: Option<u64>,
    },
    Bury {
        id: Vec<u8>,
        lease: Option<u64>,
        reason: Option<Vec<u8>>,
    },
    GiveBack {
        id: Vec<u8>,
        lease: u64,
    },
    Delete {
        id: Vec<u8>,
    },
    Kick {
        at_most: usize,
    },
    KickJob {
        id: Vec<u8>,
    },
    Purge {
        state: dq::queue::State,
        older: u64,
        at_most: usize,
    },
    Pause {
        until: u64,
    },
    Alter(Settings),
    Advance,
    /// So many jobs whose life is over are carried to the dead: nobody sees it.
    BuryOverdue {
        at_most: usize,
    },
    /// What the timer does: buries, and forgets what is old.
    Upkeep,
}
