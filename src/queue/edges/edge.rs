//! An edge, and what a dependent knows of its edges.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::record::read_where_possible;

/// A job has at most this many edges in each direction. An operation goes through all of them. Part
/// of what is logged: it must stay as it is.
pub const EDGES_MAX: usize = 10_000;

/// What a dependent does when a predecessor dies or is removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum OnDead {
    /// It goes on waiting: somebody may kick the dead job. Once that is removed, it is dead, too.
    #[default]
    Hold,
    /// The edge is settled.
    Run,
}

read_where_possible!(OnDead, u8, |number| match number {
    0 => Some(OnDead::Hold),
    1 => Some(OnDead::Run),
    _ => None,
});

impl From<OnDead> for u8 {
    fn from(on_dead: OnDead) -> u8 {
        on_dead as u8
    }
}

/// How a predecessor ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Done,
    Dead,
    /// It was removed before it was done.
    Gone,
}

/// The end of a predecessor, shared by all its dependents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    pub id: Box<[u8]>,
    pub end: End,
    /// The result of a job that is done, or the reason of a dead one.
    pub what: Option<Box<[u8]>>,
}

impl Ending {
    /// Bytes of this value and of what it points to, with the counts of its references.
    pub fn size(&self) -> usize {
        let what = self.what.as_ref().map_or(0, |what| what.len());
        size_of::<Ending>() + 2 * size_of::<usize>() + self.id.len() + what
    }
}

#[derive(Clone, Debug)]
pub enum Edge {
    /// The dependent waits for the job in this slot.
    Open { from: Slot, is_dead: bool },
    /// It doesn't any more.
    Settled(Arc<Ending>),
}

const _: () = assert!(size_of::<Edge>() <= 16, "bytes per edge are a feature");

impl Edge {
    /// Which job an open edge comes from, and whether that is known to be dead.
    pub fn from(&self) -> Option<(Slot, bool)> {
        match self {
            Edge::Open { from, is_dead } => Some((*from, *is_dead)),
            Edge::Settled(_) => None,
        }
    }

    /// Bytes of its ending, where no other edge knows that.
    pub(super) fn own_bytes(&self) -> usize {
        match self {
            Edge::Settled(ending) if Arc::strong_count(ending) == 1 => ending.size(),
            Edge::Settled(_) | Edge::Open { .. } => 0,
        }
    }
}

/// What a job that was added with AFTER or HOLD waits for, or has waited for.
#[derive(Clone, Debug)]
pub struct Dependent {
    /// Its place among all dependents of the queue.
    pub(super) serial: u64,
    /// In the order in which they were named.
    pub(super) edges: Vec<Edge>,
    /// How many edges are open, and how many of these come from dead jobs.
    pub(super) open: u32,
    pub(super) dead: u32,
    pub(super) on_dead: OnDead,
    /// It also waits for a command.
    pub(super) is_on_hold: bool,
    /// The job is held.
    pub(super) is_held: bool,
    /// When it is due, once it waits no more.
    pub(super) due: Due,
}

impl Dependent {
    pub fn new(edges: Vec<Edge>, on_dead: OnDead, is_on_hold: bool, due: Due) -> Dependent {
        let count = |is_it: fn(&Edge) -> bool| edges.iter().filter(|edge| is_it(edge)).count();
        let open = count(|edge| matches!(edge, Edge::Open { .. })) as u32;
        let dead = count(|edge| matches!(edge, Edge::Open { is_dead: true, .. })) as u32;
        let is_held = open > 0 || is_on_hold;
        Dependent { serial: 0, edges, open, dead, on_dead, is_on_hold, is_held, due }
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// How many edges are open.
    pub fn open(&self) -> u32 {
        self.open
    }

    pub fn on_dead(&self) -> OnDead {
        self.on_dead
    }

    pub fn is_on_hold(&self) -> bool {
        self.is_on_hold
    }

    /// Bytes of its edges, and of the endings that no other job knows.
    pub fn size(&self) -> usize {
        let of_endings: usize = self.edges.iter().map(Edge::own_bytes).sum();
        self.edges.len() * size_of::<Edge>() + of_endings
    }

    /// Lets go of the endings that other jobs know, too: who forgets one last frees it.
    pub fn forget_shared_endings(&mut self) {
        self.edges.retain(|edge| match edge {
            Edge::Settled(ending) => Arc::strong_count(ending) == 1,
            Edge::Open { .. } => true,
        });
    }

    pub fn is_held(&self) -> bool {
        self.is_held
    }

    pub fn due(&self) -> Due {
        self.due
    }

    /// Whether it is held, and waits for nothing.
    pub(super) fn can_go(&self) -> bool {
        self.is_held && self.open == 0 && !self.is_on_hold
    }

    pub(super) fn is_behind_dead(&self) -> bool {
        self.is_held && self.dead > 0
    }
}
