//! Loading records of edges. What no queue writes is refused where a job would wait for ever, or
//! where an operation would take too long. A cycle isn't searched for: its jobs wait until a
//! command ends that.

use std::collections::BTreeMap;

use crate::queue::edges::edge::{Dependent, Edge, OnDead, EDGES_MAX};
use crate::queue::edges::record::EdgesRecord;
use crate::queue::kernel::queue::Queue;
use crate::queue::memory::slab::Slot;
use crate::queue::value::due::Due;
use crate::queue::value::ids::Id;
use crate::queue::value::record::RecordError;
use crate::queue::value::state::Stage;
use crate::queue::value::time::Millis;

/// What jobs will know once the records that were read are there.
#[derive(Default)]
struct ExpectedEdges {
    /// Of each dependent, how many edges it has, how many of these are open, and whether it is on
    /// hold.
    edges: BTreeMap<Slot, (usize, usize, bool)>,
    /// How many jobs wait for this one.
    dependents: BTreeMap<Slot, usize>,
}

impl Queue {
    /// What each job waits for, in the order in which these jobs were added.
    pub fn edge_records(&self) -> impl Iterator<Item = EdgesRecord> + '_ {
        let id_of = |slot| self.id_and_body(slot).map(|(id, _)| id);
        let dependents = self.edges.as_ref().map_or(Vec::new(), |edges| edges.in_order());
        dependents.into_iter().flat_map(move |(slot, dependent)| {
            EdgesRecord::of(id_of(slot).unwrap_or(Id::NONE), dependent, id_of)
        })
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
            let open = edges.iter().filter_map(Edge::from);
            let alive: Vec<Slot> = open.filter(|(_, dead)| !dead).map(|(from, _)| from).collect();
            if record.is_first() {
                let is_held = self.store.progress(slot).stage == Stage::Held;
                self.set_edges(slot, record.dependent(edges, is_held));
            } else {
                self.add_loaded_edges(slot, edges, record);
            }
            self.expect_deaths_of(&alive);
        }
        Ok(())
    }

    /// The edges of a record, and whose they are, if they can be.
    fn read_edges(
        &self,
        record: &EdgesRecord,
        expected: &mut ExpectedEdges,
    ) -> Result<(Slot, Vec<Edge>), RecordError> {
        let slot = self.store.find(record.id()?).ok_or(RecordError::Impossible)?;
        let edges = record.edges(|id| self.store.find(id))?;
        let (mut all, mut open, on_hold) = match record.is_first() {
            true => (0, 0, true),
            false => self.edges_before(slot, expected).ok_or(RecordError::Impossible)?,
        };
        all += edges.len();
        for (from, is_dead) in edges.iter().filter_map(Edge::from) {
            let can_be = from != slot && self.may_wait_for(from, is_dead, record.on_dead());
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
        if !can_be {
            return Err(RecordError::Impossible);
        }
        expected.edges.insert(slot, (all, open, is_on_hold));
        Ok((slot, edges))
    }

    /// How many edges this job has, how many of these are open, and whether it is on hold, before the
    /// next record.
    fn edges_before(&self, slot: Slot, expected: &ExpectedEdges) -> Option<(usize, usize, bool)> {
        let known = || {
            let dependent = self.edges.as_ref()?.dependent(slot)?;
            // One without edges hasn't begun.
            let has_begun = !dependent.edges().is_empty();
            has_begun.then(|| {
                (dependent.edges().len(), dependent.open() as usize, dependent.is_on_hold())
            })
        };
        expected.edges.get(&slot).copied().or_else(known)
    }

    /// Whether an open edge can come from this job.
    fn may_wait_for(&self, from: Slot, is_dead: bool, on_dead: OnDead) -> bool {
        // With RUN, the edge was settled when that job died.
        let is_settled = is_dead && on_dead == OnDead::Run;
        self.view(from).filter(|job| job.schedule.is_none() && !is_settled).is_some_and(|job| {
            match job.progress.stage {
                Stage::Done => false,
                Stage::Dead => is_dead,
                // It may have died by time, before the clock was set back.
                Stage::Waiting | Stage::Leased | Stage::Held => !is_dead || job.dies_at().is_some(),
            }
        })
    }

    /// A job of a record is held. What for, a record of edges says later. Without one it is on hold,
    /// so that DQ.RESUME ends that.
    pub(super) fn hold_until_edges(&mut self, slot: Slot) {
        let on_hold = Dependent::new(Vec::new(), OnDead::Hold, true, Due::In(Millis::ZERO));
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

    fn add_loaded_edges(&mut self, slot: Slot, edges: Vec<Edge>, record: &EdgesRecord) {
        self.ledger.mix().edges(edges.len(), 0);
        let all = self.edges_or_new();
        edges.into_iter().for_each(|edge| {
            all.add_edge(slot, edge);
        });
        let waits = all.dependent(slot).is_some_and(|dependent| dependent.open() > 0);
        if waits && !record.is_on_hold() {
            // It was until there was an open edge.
            all.end_hold(slot);
        }
    }
}
