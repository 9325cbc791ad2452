//! What is in files of the edges of a job.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::edge::{Dependent, Edge, End, Ending, OnDead};
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
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct EdgeRecord(ByteBuf, StoredState, Option<ByteBuf>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
enum StoredState {
    Open,
    OpenOfDead,
    Done,
    Dead,
    Gone,
}

read_where_possible!(StoredState, u8, |number| match number {
    0 => Some(StoredState::Open),
    1 => Some(StoredState::OpenOfDead),
    2 => Some(StoredState::Done),
    3 => Some(StoredState::Dead),
    4 => Some(StoredState::Gone),
    _ => None,
});

impl From<StoredState> for u8 {
    fn from(state: StoredState) -> u8 {
        state as u8
    }
}

impl Record for EdgesRecord {}

impl Record for Vec<EdgesRecord> {}

impl EdgeRecord {
    fn of<'q>(edge: &Edge, id_of: impl Fn(Slot) -> Option<Id<'q>>) -> EdgeRecord {
        match edge {
            Edge::Open { from, is_dead } => {
                let state = if *is_dead { StoredState::OpenOfDead } else { StoredState::Open };
                let id = id_of(*from).unwrap_or(Id::NONE);
                EdgeRecord(ByteBuf::from(id.bytes()), state, None)
            }
            Edge::Settled(ending) => {
                let state = match ending.end {
                    End::Done => StoredState::Done,
                    End::Dead => StoredState::Dead,
                    End::Gone => StoredState::Gone,
                };
                let what = ending.what.as_ref().map(|what| ByteBuf::from(&what[..]));
                EdgeRecord(ByteBuf::from(&ending.id[..]), state, what)
            }
        }
    }

    fn edge(&self, slot_of: &impl Fn(Id) -> Option<Slot>) -> Result<Edge, RecordError> {
        let EdgeRecord(id, state, what) = self;
        let id = Id::new(id).ok_or(RecordError::Id)?;
        let end = match state {
            StoredState::Open | StoredState::OpenOfDead => {
                let from = slot_of(id).ok_or(RecordError::Impossible)?;
                return Ok(Edge::Open { from, is_dead: *state == StoredState::OpenOfDead });
            }
            StoredState::Done => End::Done,
            StoredState::Dead => End::Dead,
            StoredState::Gone => End::Gone,
        };
        let what = what.as_ref().map(|what| what[..].into());
        Ok(Edge::Settled(Arc::new(Ending { id: id.bytes().into(), end, what })))
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
        id_of: impl Fn(Slot) -> Option<Id<'q>>,
    ) -> Vec<EdgesRecord> {
        let (delay, at) = match dependent.due {
            Due::In(delay) => (delay, Time::ZERO),
            Due::At(time) => (Millis::ZERO, time),
        };
        let (mut pieces, mut bytes) = (vec![Vec::new()], 0);
        for edge in &dependent.edges {
            let edge = EdgeRecord::of(edge, &id_of);
            if bytes > RECORD_BYTES {
                pieces.push(Vec::new());
                bytes = 0;
            }
            bytes += edge.size();
            pieces.last_mut().into_iter().for_each(|piece| piece.push(edge.clone()));
        }
        let last = pieces.len() - 1;
        let record = |(place, edges)| EdgesRecord {
            id: ByteBuf::from(id.bytes()),
            edges,
            is_first: place == 0,
            continues: place < last,
            on_dead: dependent.on_dead,
            is_on_hold: dependent.is_on_hold,
            delay,
            at,
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

    pub fn edges(&self, slot_of: impl Fn(Id) -> Option<Slot>) -> Result<Vec<Edge>, RecordError> {
        let mut edges = Vec::with_capacity(self.edges.len());
        for edge in &self.edges {
            edges.push(edge.edge(&slot_of)?);
        }
        Ok(edges)
    }

    /// What the job knows, if these are its edges. A held job without an open one is on hold until
    /// a further record has one.
    pub fn dependent(&self, edges: Vec<Edge>, is_held: bool) -> Dependent {
        let due = if self.at > Time::ZERO { Due::At(self.at) } else { Due::In(self.delay) };
        let is_none_open = edges.iter().all(|edge| edge.from().is_none());
        let is_on_hold = self.is_on_hold || is_held && self.continues && is_none_open;
        let dependent = Dependent::new(edges, self.on_dead, is_on_hold, due);
        Dependent { is_held, ..dependent }
    }
}
