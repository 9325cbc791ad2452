//! An edge, and what a dependent knows of its edges.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::record::read_where_possible;
use crate::queue::value::time::Time;

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
pub enum EndKind {
    Done,
    Dead,
    /// It was removed before it was done.
    Gone,
}

/// The end of a predecessor, shared by all its dependents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredecessorEnd {
    pub id: Box<[u8]>,
    pub end: EndKind,
    /// The result of a job that is done, or the reason of a dead one.
    pub what: Option<Box<[u8]>>,
}

impl PredecessorEnd {
    /// Bytes of this value and of what it points to, with the counts of its references.
    pub fn size(&self) -> usize {
        let what = self.what.as_ref().map_or(0, |what| what.len());
        size_of::<PredecessorEnd>() + 2 * size_of::<usize>() + self.id.len() + what
    }
}

/// The number of a dependent among all that a queue has.
pub(super) type DependentKey = Slot;
/// The number of a [`Bundle`](super::lists::Bundle).
pub(super) type BundleKey = Slot;

/// Which edge: its dependent, and its place among the edges of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EdgeKey {
    pub dependent: DependentKey,
    pub index: u32,
}

impl EdgeKey {
    /// The end of a list.
    pub const NONE: EdgeKey = EdgeKey { dependent: Slot::MAX, index: 0 };
}

/// An open edge in the list of its bundle.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeLink {
    pub bundle: BundleKey,
    pub before: EdgeKey,
    pub behind: EdgeKey,
    /// The dependent counts it as one from a dead job.
    pub is_marked: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Edge {
    /// The dependent waits.
    Open(EdgeLink),
    /// It doesn't any more.
    Settled(Arc<PredecessorEnd>),
}

const _: () = assert!(size_of::<Edge>() <= 32, "bytes per edge are a feature");

/// An edge to a job that gets its edges.
#[derive(Clone, Debug)]
pub enum NewEdge {
    /// From the job in this slot.
    Open(Slot),
    /// The same, of a file that says that the dependent knows it to be dead.
    OfDead(Slot),
    /// From a job that has ended, as the pending ending at this place says.
    Pending {
        position: usize,
        is_marked: bool,
    },
    Settled(Arc<PredecessorEnd>),
}

impl NewEdge {
    pub fn is_settled(&self) -> bool {
        matches!(self, NewEdge::Settled(_))
    }
}

/// What a job that gets its edges waits for, or has waited for.
#[derive(Clone, Debug)]
pub struct NewDependent {
    /// In the order in which they were named.
    pub edges: Vec<NewEdge>,
    pub on_dead: OnDead,
    /// It also waits for a command.
    pub is_on_hold: bool,
    /// The job is held.
    pub is_held: bool,
    /// When it is due, once it waits no more.
    pub due: Due,
    /// From when on that is counted, as far as is known.
    pub due_from: Time,
}

impl NewDependent {
    /// Of a job that is added: it is held if it waits.
    pub fn of_new_job(
        edges: Vec<NewEdge>,
        on_dead: OnDead,
        is_on_hold: bool,
        due: Due,
    ) -> NewDependent {
        let is_held = is_on_hold || !edges.iter().all(NewEdge::is_settled);
        NewDependent { edges, on_dead, is_on_hold, is_held, due, due_from: Time::ZERO }
    }
}

/// What a job that was added with AFTER or HOLD waits for, or has waited for.
#[derive(Clone, Debug)]
pub struct Dependent {
    pub(super) slot: Slot,
    /// Its place among all dependents of the queue.
    pub(super) serial: u64,
    /// In the order in which they were named.
    pub(super) edges: Vec<Edge>,
    /// How many edges are open, and how many of these are marked as from dead jobs.
    pub(super) open: u32,
    pub(super) marked: u32,
    pub(super) on_dead: OnDead,
    /// It also waits for a command.
    pub(super) is_on_hold: bool,
    /// The job is held.
    pub(super) is_held: bool,
    /// When it is due, once it waits no more.
    pub(super) due: Due,
    /// When the last of what it waited for has ended so far.
    pub(super) due_from: Time,
}

impl Dependent {
    /// How many edges it has.
    pub fn edges_len(&self) -> usize {
        self.edges.len()
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

    pub fn is_held(&self) -> bool {
        self.is_held
    }

    pub fn due(&self) -> Due {
        self.due
    }

    /// From when on its due time is counted. Of no meaning once it is held no more.
    pub fn due_from(&self) -> Time {
        if self.is_held {
            self.due_from
        } else {
            Time::ZERO
        }
    }

    /// Lets go of the endings that other jobs know, too: the job that forgets one last frees it.
    /// Returns the bytes of its edges, and of the endings that no other job knows.
    pub(super) fn forget_shared_endings(&mut self) -> usize {
        let mut bytes = self.edges.len() * size_of::<Edge>();
        self.edges.retain(|edge| match edge {
            Edge::Settled(ending) if Arc::strong_count(ending) == 1 => {
                bytes += ending.size();
                true
            }
            Edge::Settled(_) | Edge::Open(_) => false,
        });
        bytes
    }

    /// Whether it is held, and waits for nothing.
    pub(super) fn can_go(&self) -> bool {
        self.is_held && self.open == 0 && !self.is_on_hold
    }

    pub(super) fn is_behind_dead(&self) -> bool {
        self.is_held && self.marked > 0
    }
}
