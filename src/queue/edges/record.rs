//! What is in files of the edges of a job.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::edge::{Dependent, EndKind, NewDependent, NewEdge, OnDead, PredecessorEnd};
use super::pending::PendingSight;
use super::table::EdgeSight;
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Id;
use crate::queue::value::record::{read_where_possible, Record, RecordError};
use crate::queue::value::time::{Millis, Time};

/// A record has no further edge once it has this many bytes.
const RECORD_BYTES: usize = 1 << 20;

/// The edges of a job, or some of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgesRecord {
    id: ByteBuf,
    edges: Vec<EdgeRecord>,
    /// The record before has no edges of this job.
    is_first: bool,
    /// The next record has further edges of this job.
    continues: bool,
    on_dead: OnDead,
    is_on_hold: bool,
    /// How long after its last edge the job is due, or not before which time: one of them is 0.
    delay: Millis,
    at: Time,
    /// When the last of what it waited for has ended so far, while it is held.
    #[serde(default, skip_serializing_if = "is_zero")]
    due_from: Time,
}

fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EdgeRecord(ByteBuf, StoredState, Option<ByteBuf>);

/// What follows from the end of a job, and isn't carried out yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingRecord {
    kind: PendingKind,
    /// Of the job.
    id: ByteBuf,
    /// Its result or reason.
    what: Option<ByteBuf>,
    /// When it ended.
    at: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
enum PendingKind {
    Done,
    Dead,
    Gone,
    Mark,
    Unmark,
    Nothing,
}

read_where_possible!(PendingKind, u8, |number| match number {
    0 => Some(PendingKind::Done),
    1 => Some(PendingKind::Dead),
    2 => Some(PendingKind::Gone),
    3 => Some(PendingKind::Mark),
    4 => Some(PendingKind::Unmark),
    5 => Some(PendingKind::Nothing),
    _ => None,
});

impl From<PendingKind> for u8 {
    fn from(kind: PendingKind) -> u8 {
        kind as u8
    }
}

/// A [`PendingRecord`] that was read.
#[derive(Clone, Debug)]
pub enum LoadedPending<'r> {
    Ended { ending: PredecessorEnd, at: Time },
    Mark { from: Id<'r>, is_of_dead: bool },
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
enum StoredState {
    Open,
    OpenOfDead,
    Done,
    Dead,
    Gone,
    /// Open, from a job that has ended. In place of an id: which pending record tells of that.
    Pending,
    /// The same, and it was known to be dead.
    PendingOfDead,
}

read_where_possible!(StoredState, u8, |number| match number {
    0 => Some(StoredState::Open),
    1 => Some(StoredState::OpenOfDead),
    2 => Some(StoredState::Done),
    3 => Some(StoredState::Dead),
    4 => Some(StoredState::Gone),
    5 => Some(StoredState::Pending),
    6 => Some(StoredState::PendingOfDead),
    _ => None,
});

impl From<StoredState> for u8 {
    fn from(state: StoredState) -> u8 {
        state as u8
    }
}

impl Record for EdgesRecord {}

impl Record for Vec<EdgesRecord> {}

impl Record for Vec<PendingRecord> {}

impl EdgeRecord {
    /// `id_of` is the id of a job that is in the queue; `place_of`, where an ended bundle is pending.
    fn of<'q>(
        edge: &EdgeSight,
        id_of: &impl Fn(Slot) -> Option<Id<'q>>,
        position_of: &impl Fn(Slot) -> Option<usize>,
    ) -> EdgeRecord {
        match edge {
            EdgeSight::Waits { from, is_marked } => {
                let state = if *is_marked { StoredState::OpenOfDead } else { StoredState::Open };
                let id = id_of(*from).unwrap_or(Id::NONE);
                EdgeRecord(ByteBuf::from(id.bytes()), state, None)
            }
            EdgeSight::Pending { bundle, is_marked, .. } => {
                let state =
                    if *is_marked { StoredState::PendingOfDead } else { StoredState::Pending };
                let position = position_of(*bundle).unwrap_or(usize::MAX) as u64;
                EdgeRecord(ByteBuf::from(position.to_be_bytes()), state, None)
            }
            EdgeSight::Settled(ending) => {
                let state = match ending.end {
                    EndKind::Done => StoredState::Done,
                    EndKind::Dead => StoredState::Dead,
                    EndKind::Gone => StoredState::Gone,
                };
                let what = ending.what.as_ref().map(|what| ByteBuf::from(&what[..]));
                EdgeRecord(ByteBuf::from(&ending.id[..]), state, what)
            }
        }
    }

    fn edge(&self, slot_of: &impl Fn(Id) -> Option<Slot>) -> Result<NewEdge, RecordError> {
        let EdgeRecord(id, state, what) = self;
        if matches!(state, StoredState::Pending | StoredState::PendingOfDead) {
            let position = <[u8; 8]>::try_from(&id[..]).map_err(|_| RecordError::Impossible)?;
            let position = usize::try_from(u64::from_be_bytes(position));
            let position = position.map_err(|_| RecordError::Impossible)?;
            let is_marked = *state == StoredState::PendingOfDead;
            return Ok(NewEdge::Pending { position, is_marked });
        }
        let id = Id::new(id).ok_or(RecordError::Id)?;
        let end = match state {
            StoredState::Open
            | StoredState::OpenOfDead
            | StoredState::Pending
            | StoredState::PendingOfDead => {
                let from = slot_of(id).ok_or(RecordError::Impossible)?;
                let is_of_dead = *state == StoredState::OpenOfDead;
                return Ok(if is_of_dead { NewEdge::OfDead(from) } else { NewEdge::Open(from) });
            }
            StoredState::Done => EndKind::Done,
            StoredState::Dead => EndKind::Dead,
            StoredState::Gone => EndKind::Gone,
        };
        let what = what.as_ref().map(|what| what[..].into());
        Ok(NewEdge::Settled(Arc::new(PredecessorEnd { id: id.bytes().into(), end, what })))
    }

    fn size(&self) -> usize {
        self.0.len() + self.2.as_ref().map_or(0, |what| what.len())
    }
}

impl EdgesRecord {
    /// The records of a job's edges.
    pub fn of<'q>(
        id: Id,
        dependent: &Dependent,
        edges: impl Iterator<Item = EdgeSight<'q>>,
        id_of: impl Fn(Slot) -> Option<Id<'q>>,
        position_of: impl Fn(Slot) -> Option<usize>,
    ) -> Vec<EdgesRecord> {
        let (delay, at) = match dependent.due {
            Due::In(delay) => (delay, Time::ZERO),
            Due::At(time) => (Millis::ZERO, time),
        };
        let (mut pieces, mut bytes) = (vec![Vec::new()], 0);
        for edge in edges {
            let edge = EdgeRecord::of(&edge, &id_of, &position_of);
            if bytes > RECORD_BYTES {
                pieces.push(Vec::new());
                bytes = 0;
            }
            bytes += edge.size();
            pieces.last_mut().into_iter().for_each(|piece| piece.push(edge.clone()));
        }
        let last = pieces.len() - 1;
        let record = |(position, edges)| EdgesRecord {
            id: ByteBuf::from(id.bytes()),
            edges,
            is_first: position == 0,
            continues: position < last,
            on_dead: dependent.on_dead,
            is_on_hold: dependent.is_on_hold,
            delay,
            at,
            due_from: dependent.due_from(),
        };
        pieces.into_iter().enumerate().map(record).collect()
    }

    pub fn id(&self) -> Result<Id<'_>, RecordError> {
        Id::new(&self.id).ok_or(RecordError::Id)
    }

    pub fn is_first(&self) -> bool {
        self.is_first
    }

    pub fn continues(&self) -> bool {
        self.continues
    }

    /// Whether it can stand behind this record: the records of a job stand behind each other.
    pub fn can_follow(&self, before: Option<&EdgesRecord>) -> bool {
        before.is_none_or(|before| match before.continues {
            true => !self.is_first && self.id == before.id,
            false => self.is_first,
        })
    }

    /// About how many bytes it has.
    pub fn size(&self) -> usize {
        self.edges.iter().map(EdgeRecord::size).sum::<usize>() + self.id.len()
    }

    pub fn check(&self) -> Result<(), RecordError> {
        self.id().map(drop)
    }

    pub fn on_dead(&self) -> OnDead {
        self.on_dead
    }

    pub fn is_on_hold(&self) -> bool {
        self.is_on_hold
    }

    pub fn edges(&self, slot_of: impl Fn(Id) -> Option<Slot>) -> Result<Vec<NewEdge>, RecordError> {
        let mut edges = Vec::with_capacity(self.edges.len());
        for edge in &self.edges {
            edges.push(edge.edge(&slot_of)?);
        }
        Ok(edges)
    }

    /// What the job knows, if these are its edges. A held job without an open one is on hold until
    /// a further record has one.
    pub fn dependent(&self, edges: Vec<NewEdge>, is_held: bool) -> NewDependent {
        let due = if self.at > Time::ZERO { Due::At(self.at) } else { Due::In(self.delay) };
        let EdgesRecord { on_dead, due_from, .. } = *self;
        let is_none_open = edges.iter().all(NewEdge::is_settled);
        let is_on_hold = self.is_on_hold || is_held && self.continues && is_none_open;
        NewDependent { edges, on_dead, is_on_hold, is_held, due, due_from }
    }
}

impl PendingRecord {
    pub fn of<'q>(pending: &PendingSight, id_of: impl Fn(Slot) -> Option<Id<'q>>) -> PendingRecord {
        let record = |kind, id: &[u8], what: Option<&[u8]>, at| PendingRecord {
            kind,
            id: ByteBuf::from(id),
            what: what.map(ByteBuf::from),
            at,
        };
        match pending {
            PendingSight::Ended { ending, at } => {
                let kind = match ending.end {
                    EndKind::Done => PendingKind::Done,
                    EndKind::Dead => PendingKind::Dead,
                    EndKind::Gone => PendingKind::Gone,
                };
                record(kind, &ending.id, ending.what.as_deref(), *at)
            }
            PendingSight::Mark { from, is_of_dead } => {
                let kind = if *is_of_dead { PendingKind::Mark } else { PendingKind::Unmark };
                record(kind, id_of(*from).unwrap_or(Id::NONE).bytes(), None, Time::ZERO)
            }
            PendingSight::Nothing => record(PendingKind::Nothing, b"", None, Time::ZERO),
        }
    }

    pub fn read(&self) -> Result<LoadedPending<'_>, RecordError> {
        let id = || Id::new(&self.id).ok_or(RecordError::Id);
        let ended = |end| {
            let what = self.what.as_ref().map(|what| what[..].into());
            let ending = PredecessorEnd { id: id()?.bytes().into(), end, what };
            Ok(LoadedPending::Ended { ending, at: self.at })
        };
        match self.kind {
            PendingKind::Done => ended(EndKind::Done),
            PendingKind::Dead => ended(EndKind::Dead),
            PendingKind::Gone => ended(EndKind::Gone),
            PendingKind::Mark => Ok(LoadedPending::Mark { from: id()?, is_of_dead: true }),
            PendingKind::Unmark => Ok(LoadedPending::Mark { from: id()?, is_of_dead: false }),
            PendingKind::Nothing => Ok(LoadedPending::Nothing),
        }
    }

    /// About how many bytes it has.
    pub fn size(&self) -> usize {
        self.id.len() + self.what.as_ref().map_or(0, |what| what.len())
    }

    pub fn check(&self) -> Result<(), RecordError> {
        self.read().map(drop)
    }
}
