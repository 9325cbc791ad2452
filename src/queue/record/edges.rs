//! Loading records of edges. What no queue writes is refused where a job would wait for ever, or
//! where an operation would take too long. A cycle isn't searched for: its jobs wait until a
//! command ends that.

use std::collections::{BTreeMap, BTreeSet};

use crate::queue::edges::edge::{EndKind, NewDependent, NewEdge, OnDead, EDGES_MAX};
use crate::queue::edges::record::{EdgesRecord, LoadedPending, PendingRecord};
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Id;
use crate::queue::value::record::RecordError;
use crate::queue::value::state::Stage;
use crate::queue::value::time::{Millis, Time};

/// What jobs will know once the records that were read are there.
#[derive(Default)]
struct ExpectedEdges {
    /// Of each dependent, how many edges it has, how many of these are open, and whether it is on
    /// hold.
    edges: BTreeMap<Slot, (usize, usize, bool)>,
    /// How many jobs wait for this one.
    dependents: BTreeMap<Slot, usize>,
    /// Of each job that others wait for: how many edges with HOLD, how many of these are marked,
    /// and whether marks are pending.
    marks: BTreeMap<Slot, (usize, usize, bool)>,
}

impl Queue {
    /// What each job waits for, in the order in which these jobs were added.
    pub fn edge_records(&self) -> impl Iterator<Item = EdgesRecord> + '_ {
        let id_of = |slot| self.id_and_body(slot).map(|(id, _)| id);
        self.edges.iter().flat_map(move |edges| {
            let places = edges.pending_positions();
            edges.in_order().into_iter().flat_map(move |(slot, dependent)| {
                let (id, all) = (id_of(slot).unwrap_or(Id::NONE), edges.edges_of(dependent));
                EdgesRecord::of(id, dependent, all, id_of, |key| places.get(&key).copied())
            })
        })
    }

    /// What follows from the ends of jobs and isn't carried out yet, in order. The records of edges
    /// name them by their places.
    pub fn pending_records(&self) -> impl Iterator<Item = PendingRecord> + '_ {
        let id_of = |slot| self.id_and_body(slot).map(|(id, _)| id);
        let pending = self.edges.iter().flat_map(|edges| edges.pending());
        pending.map(move |pending| PendingRecord::of(&pending, id_of))
    }

    /// Takes over records of [`Queue::pending_records`]: after the jobs, and before the edges. All
    /// of them, or none.
    pub fn load_pending(&mut self, records: &[PendingRecord]) -> Result<(), RecordError> {
        let read = records.iter().map(PendingRecord::read).collect::<Result<Vec<_>, _>>()?;
        let mut marked = BTreeSet::new();
        for pending in &read {
            if let LoadedPending::Mark { from, is_of_dead } = pending {
                let slot = self.store.find(*from).ok_or(RecordError::Impossible)?;
                let (len, _, is_pending) = self.marks_of(slot);
                let can_be = len == 0 && !is_pending && self.may_be_of_dead(slot, *is_of_dead);
                if !can_be || !marked.insert(slot) {
                    return Err(RecordError::Impossible);
                }
            }
        }
        for pending in read {
            let slot = match &pending {
                LoadedPending::Mark { from, .. } => self.store.find(*from),
                LoadedPending::Ended { .. } | LoadedPending::Nothing => None,
            };
            let edges = self.edges_or_new();
            match (pending, slot) {
                (LoadedPending::Ended { ending, at }, _) => edges.load_ended(ending, at),
                (LoadedPending::Mark { is_of_dead, .. }, Some(from)) => {
                    edges.load_mark(from, is_of_dead);
                }
                (LoadedPending::Mark { .. }, None) | (LoadedPending::Nothing, _) => {
                    edges.load_nothing();
                }
            }
        }
        self.ledger.wake_now();
        Ok(())
    }

    /// Takes over records of [`Queue::edge_records`]: after the jobs. All of them, or none.
    /// O(log n) for each edge.
    pub fn load_edges(&mut self, records: &[EdgesRecord]) -> Result<(), RecordError> {
        let mut expected = ExpectedEdges::default();
        let mut before = None;
        let read = records.iter().map(|record| {
            if !record.can_follow(before.replace(record)) {
                return Err(RecordError::Impossible);
            }
            self.read_edges(record, &mut expected)
        });
        let read = read.collect::<Result<Vec<_>, _>>()?;
        for (record, (slot, edges)) in records.iter().zip(read) {
            let open = edges.iter().filter_map(from_of);
            let alive: Vec<Slot> = open.filter(|(_, dead)| !dead).map(|(from, _)| from).collect();
            if record.is_first() {
                let is_held = self.store.progress(slot).stage == Stage::Held;
                self.set_edges(slot, record.dependent(edges, is_held));
            } else {
                self.add_loaded_edges(slot, edges, record);
            }
            self.schedule_deaths_of(&alive);
        }
        Ok(())
    }

    /// The edges of a record, and whose they are, if they can be.
    fn read_edges(
        &self,
        record: &EdgesRecord,
        expected: &mut ExpectedEdges,
    ) -> Result<(Slot, Vec<NewEdge>), RecordError> {
        let slot = self.store.find(record.id()?).ok_or(RecordError::Impossible)?;
        let edges = record.edges(|id| self.store.find(id))?;
        let (mut all, mut open, on_hold) = match record.is_first() {
            true => (0, 0, true),
            false => self.edges_before(slot, expected).ok_or(RecordError::Impossible)?,
        };
        all += edges.len();
        open += self.check_pending(&edges, record.on_dead())?;
        for (from, is_dead) in edges.iter().filter_map(from_of) {
            let can_be = from != slot
                && self.may_wait_for(from, is_dead, record.on_dead())
                && (record.on_dead() == OnDead::Run || self.may_be_marked(from, is_dead, expected));
            let dependents = expected
                .dependents
                .entry(from)
                .or_insert_with(|| self.edges.as_ref().map_or(0, |edges| edges.waiting_for(from)));
            (open, *dependents) = (open + 1, *dependents + 1);
            if !can_be {
                return Err(RecordError::Impossible);
            }
            if *dependents > EDGES_MAX {
                return Err(RecordError::TooManyEdges);
            }
        }
        if all > EDGES_MAX {
            return Err(RecordError::TooManyEdges);
        }
        let is_on_hold = record.is_on_hold() && on_hold;
        let can_be = match self.store.progress(slot).stage {
            Stage::Held => open > 0 || is_on_hold || record.continues(),
            Stage::Waiting | Stage::Leased | Stage::Done => open == 0 && !record.is_on_hold(),
            // It may have died while it was held.
            Stage::Dead => true,
        };
        if !can_be || self.store.schedule_of(slot).is_some() {
            return Err(RecordError::Impossible);
        }
        expected.edges.insert(slot, (all, open, is_on_hold));
        Ok((slot, edges))
    }

    /// How many edges this job has, how many of these are open, and whether it is on hold, before the
    /// next record.
    fn edges_before(&self, slot: Slot, expected: &ExpectedEdges) -> Option<(usize, usize, bool)> {
        let known = || {
            let edges = self.edges.as_ref()?;
            let dependent = edges.dependent(slot)?;
            // One without edges hasn't begun; behind one that came later, they would be out of order.
            let has_begun = dependent.edges_len() > 0 && edges.is_last(dependent);
            has_begun
                .then(|| (dependent.edges_len(), dependent.open() as usize, dependent.is_on_hold()))
        };
        expected.edges.get(&slot).copied().or_else(known)
    }

    /// Whether an open edge can come from this job.
    fn may_wait_for(&self, from: Slot, is_dead: bool, on_dead: OnDead) -> bool {
        // With RUN, the edge was settled when that job died.
        let is_settled = is_dead && on_dead == OnDead::Run;
        self.view(from).filter(|job| job.schedule.is_none() && !is_settled).is_some_and(|job| {
            let is_marking = self.marks_of(from).2 && on_dead == OnDead::Hold;
            match job.progress.stage {
                Stage::Done => false,
                Stage::Dead => is_dead || is_marking,
                _ if is_marking => true,
                // It may have died by time, before the clock was set back.
                Stage::Waiting | Stage::Leased | Stage::Held => !is_dead || job.dies_at().is_some(),
            }
        })
    }

    fn marks_of(&self, from: Slot) -> (usize, usize, bool) {
        self.edges.as_ref().map_or((0, 0, false), |edges| edges.marks_of(from))
    }

    /// Whether the next edge from this job can be marked, or not: the marked ones are the first,
    /// and all are, or none, unless marks are pending.
    fn may_be_marked(&self, from: Slot, is_marked: bool, expected: &mut ExpectedEdges) -> bool {
        let marks = expected.marks.entry(from).or_insert_with(|| self.marks_of(from));
        let (len, marked, is_pending) = *marks;
        *marks = (len + 1, marked + usize::from(is_marked), is_pending);
        if is_marked {
            marked == len
        } else {
            is_pending || marked == 0
        }
    }

    /// Whether the edges from this job can be about to be marked so.
    fn may_be_of_dead(&self, from: Slot, is_of_dead: bool) -> bool {
        self.view(from).is_some_and(|job| match job.progress.stage {
            _ if job.schedule.is_some() => false,
            Stage::Done => false,
            Stage::Dead => is_of_dead,
            Stage::Waiting | Stage::Leased | Stage::Held => !is_of_dead || job.dies_at().is_some(),
        })
    }

    /// How many of these come from jobs that have ended, if all can be.
    fn check_pending(&self, edges: &[NewEdge], on_dead: OnDead) -> Result<usize, RecordError> {
        let places = edges.iter().filter_map(|edge| match edge {
            NewEdge::Pending { position, .. } => Some(*position),
            NewEdge::Open(_) | NewEdge::OfDead(_) | NewEdge::Settled(_) => None,
        });
        let mut count = 0;
        for position in places {
            let end = self.edges.as_ref().and_then(|edges| edges.pending_end(position));
            match (end, on_dead) {
                (None, _) | (Some(EndKind::Dead), OnDead::Hold) => {
                    return Err(RecordError::Impossible)
                }
                (Some(EndKind::Done | EndKind::Gone), _) | (Some(EndKind::Dead), OnDead::Run) => {
                    count += 1
                }
            }
        }
        Ok(count)
    }

    /// A job of a record is held. What for, a record of edges says later. Without one it is on hold,
    /// so that DQ.RESUME ends that.
    pub(super) fn hold_until_edges(&mut self, slot: Slot) {
        let due = Due::In(Millis::ZERO);
        let on_hold = NewDependent::of_new_job(Vec::new(), OnDead::Hold, true, due);
        self.set_edges(slot, on_hold);
    }

    /// Whether so many jobs have edges, once a file has been read: each held job has a record of
    /// its own, and each record a job.
    pub fn check_dependents(&self, jobs: u64) -> Result<(), RecordError> {
        let dependents = self.edges.as_ref().map_or(0, |edges| edges.dependents_len() as u64);
        if dependents == jobs {
            Ok(())
        } else {
            Err(RecordError::Impossible)
        }
    }

    fn add_loaded_edges(&mut self, slot: Slot, edges: Vec<NewEdge>, record: &EdgesRecord) {
        self.ledger.checksum_mut().edges(edges.len(), 0);
        let all = self.edges_or_new();
        edges.into_iter().for_each(|edge| {
            all.add_edge(slot, edge);
        });
        let waits = all.dependent(slot).is_some_and(|dependent| dependent.open() > 0);
        if waits && !record.is_on_hold() {
            // It was until there was an open edge.
            all.end_hold(slot, Time::ZERO);
        }
    }
}

/// Which job in the queue an edge comes from, and whether that is known to be dead.
fn from_of(edge: &NewEdge) -> Option<(Slot, bool)> {
    match edge {
        NewEdge::Open(from) => Some((*from, false)),
        NewEdge::OfDead(from) => Some((*from, true)),
        NewEdge::Pending { .. } | NewEdge::Settled(_) => None,
    }
}
