//! What follows from the end of a job, or from its death or revival, for those that wait for it. A
//! job that ends costs O(log n): its bundles of edges end, and stand in one line with those that
//! ended before. The line is worked off edge by edge, as many at once as there is time for. It is
//! part of the queue: in files, in the digest, and the same on a replica.

use crate::queue::memory::impossible::{impossible, OrImpossible};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::edge::{BundleKey, Edge, EdgeKey, EndKind, OnDead, PredecessorEnd};
use super::lists::{Bundle, Ended, Origin, Pending};
use super::table::Edges;
use crate::queue::memory::slab::Slot;
use crate::queue::value::time::Time;

/// How much of what is pending is carried out at once: an edge is one unit of work. Part of what is
/// logged: a primary and its replicas have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleBudget {
    /// By an operation: enough for all that follows from one job with as many edges as it may have.
    pub of_operation: u32,
    /// By a SETTLE: less than a millisecond.
    pub of_slice: u32,
}

impl SettleBudget {
    pub const DEFAULT: SettleBudget = SettleBudget { of_operation: 110_000, of_slice: 10_000 };
}

/// What was carried out last, and what is left to do for the job that it was about.
#[derive(Clone, Debug)]
pub enum Step {
    /// One edge was settled or marked, or a place of the line was done with.
    Edge,
    /// An edge to this job was settled. Its last one, perhaps: it may be let go.
    LastEdge(Slot),
    /// The same, and the job that it waited for can't come: it dies of that, at this time.
    Orphan { slot: Slot, at: Time, of: Arc<PredecessorEnd> },
}

/// What stands in the line, as it is in files.
#[derive(Clone, Debug)]
pub enum PendingSight<'e> {
    Ended { ending: &'e PredecessorEnd, at: Time },
    Mark { from: Slot, is_of_dead: bool },
    Nothing,
}

/// Which edges end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    All,
    /// Those to dependents with ONDEAD RUN.
    Run,
}

impl Edges {
    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The job has ended, for these edges, if there are any: they are to be settled. O(log n).
    pub fn end(&mut self, from: Slot, which: Which, ending: PredecessorEnd, at: Time) {
        let Some(job) = self.predecessors.get_mut(&from) else {
            return;
        };
        let run = job.run.take();
        let hold = if which == Which::All { job.hold.take() } else { None };
        let is_known_on = job.bundles().next().is_some();
        // A bundle may be kept without edges, for a mark that is pending.
        if self.waiting_for(from) == 0 {
            self.set_death(from, None);
        }
        if !is_known_on {
            self.predecessors.remove(&from);
        }
        let ending = Arc::new(ending);
        let bundles = [hold, run].map(|bundle| bundle.filter(|key| self.end_bundle(*key, &ending)));
        let [hold, run] = bundles;
        if hold.is_some() || run.is_some() {
            self.bytes += ending.size();
            self.pending.push_back(Pending::Ended(Ended { ending, at, hold, run }));
        }
    }

    /// A job for which no other waits is about to go.
    pub fn forget_predecessor(&mut self, from: Slot) {
        let bundles = self.predecessors.remove(&from).map(|job| job.bundles().collect::<Vec<_>>());
        for key in bundles.unwrap_or_default() {
            if let Some(bundle) = self.lists.bundles.get_mut(key) {
                bundle.origin = Origin::Nothing;
            }
            self.tidy(key);
        }
    }

    /// Returns whether it has edges.
    fn end_bundle(&mut self, key: BundleKey, ending: &Arc<PredecessorEnd>) -> bool {
        let bundle = self.lists.bundles.get_mut(key).or_impossible("a job has its bundles");
        let Some(bundle) = bundle else {
            return false;
        };
        if bundle.len == 0 {
            bundle.origin = Origin::Nothing;
            self.tidy(key);
            return false;
        }
        bundle.origin = Origin::Ended(ending.clone());
        true
    }

    /// Whether the job is dead, as far as is known to those with ONDEAD HOLD. O(log n).
    pub fn record_life(&mut self, from: Slot, is_dead: bool) {
        let Some(key) = self.predecessors.get(&from).and_then(|job| job.hold) else {
            return;
        };
        let bundle = self.lists.bundles.get_mut(key).or_impossible("a job has its bundles");
        let Some(bundle) = bundle else {
            return;
        };
        bundle.is_of_dead = is_dead;
        if !bundle.is_marked_right() && !bundle.is_pending {
            bundle.is_pending = true;
            self.pending.push_back(Pending::Mark(key));
        }
    }

    /// Carries out the next step. `None` once nothing is pending.
    pub fn step(&mut self) -> Option<Step> {
        match self.pending.front()? {
            Pending::Mark(key) => {
                let key = *key;
                if self.mark_one(key).is_none() {
                    self.pending.pop_front();
                    if let Some(bundle) = self.lists.bundles.get_mut(key) {
                        bundle.is_pending = false;
                    }
                    self.tidy(key);
                }
            }
            Pending::Ended(ended) => match self.next_ended(ended) {
                Some((edge, ending, at)) => return Some(self.settle(edge, ending, at)),
                None => self.forget_ended(),
            },
            Pending::Nothing => {
                self.pending.pop_front();
            }
        }
        Some(Step::Edge)
    }

    /// `None` if all marks of the bundle are right, or it isn't about marks any more.
    fn mark_one(&mut self, key: BundleKey) -> Option<()> {
        let bundle = self.lists.bundles.get(key)?;
        if !matches!(bundle.origin, Origin::Job(_)) {
            return None;
        }
        let dependent = self.lists.mark_one(key)?;
        let is_marked = self.lists.dependents.get(dependent).or_impossible("an edge has a job")?;
        // One mark more, or one less: was it the first or the last one?
        let now_behind = is_marked.is_behind_dead();
        let was_behind = match self.lists.bundles.get(key)?.is_of_dead {
            true => is_marked.is_held && is_marked.marked > 1,
            false => is_marked.is_held,
        };
        self.count_behind_dead(was_behind, now_behind);
        Some(())
    }

    /// Of both kinds of edges, the one whose dependent was added first.
    fn next_ended(&self, ended: &Ended) -> Option<(EdgeKey, Arc<PredecessorEnd>, Time)> {
        let first = |bundle: Option<BundleKey>| {
            let edge = self.lists.first_of(bundle?)?;
            Some((self.lists.serial_of(edge), edge))
        };
        let firsts = first(ended.hold).into_iter().chain(first(ended.run));
        let (_, edge) = firsts.min_by_key(|(serial, _)| *serial)?;
        Some((edge, ended.ending.clone(), ended.at))
    }

    fn settle(&mut self, edge: EdgeKey, ending: Arc<PredecessorEnd>, at: Time) -> Step {
        let was_behind_dead = self.is_behind_dead(edge.dependent);
        let link = self.lists.unlink(edge);
        let job = self.lists.dependents.get_mut(edge.dependent);
        let Some(job) = job.or_impossible("an open edge has a dependent") else {
            return Step::Edge;
        };
        job.open -= 1;
        job.marked -= u32::from(link.is_some_and(|link| link.is_marked));
        job.due_from = job.due_from.max(at);
        let is_orphan = ending.end == EndKind::Gone && job.on_dead == OnDead::Hold;
        let step = match is_orphan && job.is_held {
            true => Step::Orphan { slot: job.slot, at, of: ending.clone() },
            false if job.can_go() => Step::LastEdge(job.slot),
            false => Step::Edge,
        };
        if let Some(edge) = job.edges.get_mut(edge.index as usize) {
            *edge = Edge::Settled(ending);
        }
        self.count_behind_dead(was_behind_dead, self.is_behind_dead(edge.dependent));
        step
    }

    /// All its edges are settled.
    fn forget_ended(&mut self) {
        let Some(Pending::Ended(Ended { ending, hold, run, .. })) = self.pending.pop_front() else {
            return impossible("the first that is pending has ended");
        };
        for key in hold.into_iter().chain(run) {
            if let Some(bundle) = self.lists.bundles.get_mut(key) {
                bundle.origin = Origin::Nothing;
            }
            self.tidy(key);
        }
        if Arc::strong_count(&ending) == 1 {
            self.bytes -= ending.size();
        }
    }

    /// The line, in order.
    pub fn pending(&self) -> impl Iterator<Item = PendingSight<'_>> {
        self.pending.iter().map(|pending| match pending {
            Pending::Ended(Ended { ending, at, .. }) => PendingSight::Ended { ending, at: *at },
            Pending::Mark(key) => match self.lists.bundles.get(*key) {
                Some(Bundle { origin: Origin::Job(from), is_of_dead, .. }) => {
                    PendingSight::Mark { from: *from, is_of_dead: *is_of_dead }
                }
                Some(_) | None => PendingSight::Nothing,
            },
            Pending::Nothing => PendingSight::Nothing,
        })
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// Where in the line each ended bundle stands.
    pub fn pending_positions(&self) -> BTreeMap<Slot, usize> {
        let bundles = self.pending.iter().enumerate().flat_map(|(position, pending)| {
            let [hold, run] = match pending {
                Pending::Ended(Ended { hold, run, .. }) => [*hold, *run],
                Pending::Mark(_) | Pending::Nothing => [None, None],
            };
            hold.into_iter().chain(run).map(move |bundle| (bundle, position))
        });
        bundles.collect()
    }

    /// Of a file: a place at which there is nothing to do.
    pub fn load_nothing(&mut self) {
        self.pending.push_back(Pending::Nothing);
    }

    /// Of a file: an ending, whose edges are still to come.
    pub fn load_ended(&mut self, ending: PredecessorEnd, at: Time) {
        self.bytes += ending.size();
        let ending = Arc::new(ending);
        self.pending.push_back(Pending::Ended(Ended { ending, at, hold: None, run: None }));
    }

    /// Of a file: the edges from this job, which are still to come, are to be marked. `false` if
    /// they are already.
    pub fn load_mark(&mut self, from: Slot, is_of_dead: bool) -> bool {
        let key = self.bundle_or_new(from, OnDead::Hold);
        match self.lists.bundles.get_mut(key) {
            Some(bundle) if !bundle.is_pending => {
                (bundle.is_of_dead, bundle.is_pending) = (is_of_dead, true);
                self.pending.push_back(Pending::Mark(key));
                true
            }
            Some(_) | None => false,
        }
    }

    /// How the pending ending at this place ended.
    pub fn pending_end(&self, position: usize) -> Option<EndKind> {
        match self.pending.get(position)? {
            Pending::Ended(ended) => Some(ended.ending.end),
            Pending::Mark(_) | Pending::Nothing => None,
        }
    }

    pub(super) fn pending_bundle_or_new(&mut self, position: usize, on_dead: OnDead) -> BundleKey {
        let Some(Pending::Ended(ended)) = self.pending.get_mut(position) else {
            impossible("an ending that is pending is at its position");
            return Slot::MAX;
        };
        let ending = ended.ending.clone();
        let bundle = ended.bundle_mut(on_dead);
        if bundle.is_none() {
            *bundle = self.lists.bundles.insert(Bundle::from(Origin::Ended(ending)));
        }
        bundle.unwrap_or(Slot::MAX)
    }

    /// Of the edges from this job to those with ONDEAD HOLD: how many there are, how many of these
    /// are marked, and whether marks are pending.
    pub fn marks_of(&self, from: Slot) -> (usize, usize, bool) {
        let hold = self.predecessors.get(&from).and_then(|job| job.hold);
        let bundle = hold.and_then(|key| self.lists.bundles.get(key));
        bundle.map_or((0, 0, false), |it| (it.len as usize, it.marked as usize, it.is_pending))
    }

    /// When a job that others wait for dies, as far as that isn't known already: those with ONDEAD
    /// RUN wait for it then.
    pub fn schedule_death(&mut self, slot: Slot, death: Option<Time>) {
        let job = self.predecessors.get(&slot).copied().unwrap_or_default();
        let hold = job.hold.and_then(|key| self.lists.bundles.get(key));
        let is_known = job.run.is_none() && hold.is_some_and(|bundle| bundle.is_of_dead);
        self.set_death(slot, death.filter(|_| !is_known));
    }
}
