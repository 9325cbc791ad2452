//! The open edges of a queue, in lists. The edges from one job to dependents of one kind are a
//! *bundle*. So a job that ends settles thousands of edges at once, whoever carries that out later,
//! and an edge is taken out of its list without a search.

use crate::queue::memory::impossible::OrImpossible;
use std::sync::Arc;

use super::edge::{
    BundleKey, Dependent, DependentKey, Edge, EdgeKey, EdgeLink, OnDead, PredecessorEnd,
};
use crate::queue::memory::slab::{Slab, Slot};
use crate::queue::value::time::Time;

/// Where the edges of a bundle come from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Job(Slot),
    /// The job has ended, as far as these edges are concerned.
    Ended(Arc<PredecessorEnd>),
    /// The bundle has no edges, and its job is gone.
    Nothing,
}

/// Edges from one job, in the order in which their dependents were added.
#[derive(Clone, Debug)]
pub(super) struct Bundle {
    pub origin: Origin,
    first: EdgeKey,
    last: EdgeKey,
    pub len: u32,
    /// Its first edges are marked as from a dead job: so many, up to this one.
    pub marked: u32,
    last_marked: EdgeKey,
    /// The job is known to be dead: all edges are to be marked, or none.
    pub is_of_dead: bool,
    /// It stands among what is pending, to be marked.
    pub is_pending: bool,
}

impl Bundle {
    pub fn of(slot: Slot) -> Bundle {
        Bundle::from(Origin::Job(slot))
    }

    pub fn from(origin: Origin) -> Bundle {
        Bundle {
            origin,
            first: EdgeKey::NONE,
            last: EdgeKey::NONE,
            len: 0,
            marked: 0,
            last_marked: EdgeKey::NONE,
            is_of_dead: false,
            is_pending: false,
        }
    }

    /// Whether all marks are as they should be.
    pub fn is_marked_right(&self) -> bool {
        self.marked == if self.is_of_dead { self.len } else { 0 }
    }
}

/// What stands in the line of what is pending.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    /// These edges are to be settled, in the order in which their dependents were added.
    Ended(Ended),
    /// The edges of this bundle are to be marked as from a dead job, or no more so.
    Mark(BundleKey),
    /// Of a file, in which this place had nothing to do any more.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub ending: Arc<PredecessorEnd>,
    pub at: Time,
    pub hold: Option<BundleKey>,
    pub run: Option<BundleKey>,
}

impl Ended {
    pub fn bundle_mut(&mut self, on_dead: OnDead) -> &mut Option<BundleKey> {
        match on_dead {
            OnDead::Hold => &mut self.hold,
            OnDead::Run => &mut self.run,
        }
    }
}

impl Pending {
    pub fn ending_mut(&mut self) -> Option<&mut Arc<PredecessorEnd>> {
        match self {
            Pending::Ended(ended) => Some(&mut ended.ending),
            Pending::Mark(_) | Pending::Nothing => None,
        }
    }
}

/// Dependents with their edges, and the bundles of those that are open.
#[derive(Clone, Default)]
pub(super) struct Lists {
    pub dependents: Slab<Dependent>,
    pub bundles: Slab<Bundle>,
}

impl Lists {
    pub fn link(&self, edge: EdgeKey) -> Option<&EdgeLink> {
        match self.dependents.get(edge.dependent)?.edges.get(edge.index as usize)? {
            Edge::Open(link) => Some(link),
            Edge::Settled(_) => None,
        }
    }

    fn link_mut(&mut self, edge: EdgeKey) -> Option<&mut EdgeLink> {
        match self.dependents.get_mut(edge.dependent)?.edges.get_mut(edge.index as usize)? {
            Edge::Open(link) => Some(link),
            Edge::Settled(_) => None,
        }
    }

    /// The edges of a bundle.
    pub fn edges_of(&self, bundle: BundleKey) -> impl Iterator<Item = EdgeKey> + '_ {
        std::iter::successors(self.first_of(bundle), |edge| self.behind(*edge))
    }

    /// The next edge of the same bundle.
    pub fn behind(&self, edge: EdgeKey) -> Option<EdgeKey> {
        self.link(edge).map(|link| link.behind).filter(|behind| *behind != EdgeKey::NONE)
    }

    /// The first edge of a bundle.
    pub fn first_of(&self, bundle: BundleKey) -> Option<EdgeKey> {
        self.bundles.get(bundle).map(|bundle| bundle.first).filter(|edge| *edge != EdgeKey::NONE)
    }

    pub fn serial_of(&self, edge: EdgeKey) -> u64 {
        self.dependents.get(edge.dependent).map_or(0, |dependent| dependent.serial)
    }

    /// Adds an edge of a dependent: before this one of the bundle, or at its end. One before a
    /// marked edge is marked, so that the marked ones stay the first. Returns whether it is.
    pub fn add(&mut self, dependent: DependentKey, bundle: BundleKey, behind: EdgeKey) -> bool {
        let is_marked = self.link(behind).is_some_and(|link| link.is_marked);
        let before = match self.link(behind) {
            Some(link) => link.before,
            None => self.bundles.get(bundle).map_or(EdgeKey::NONE, |bundle| bundle.last),
        };
        let job = self.dependents.get_mut(dependent).or_impossible("a dependent is there");
        let Some(job) = job else {
            return false;
        };
        let edge = EdgeKey { dependent, index: job.edges.len() as u32 };
        job.edges.push(Edge::Open(EdgeLink { bundle, before, behind, is_marked }));
        job.open += 1;
        job.marked += u32::from(is_marked);
        self.connect(bundle, before, edge);
        self.connect_back(bundle, edge, behind);
        if let Some(bundle) = self.bundles.get_mut(bundle) {
            bundle.len += 1;
            bundle.marked += u32::from(is_marked);
        }
        is_marked
    }

    /// Takes an open edge out of its list. It is about to be settled, or to go.
    pub fn unlink(&mut self, edge: EdgeKey) -> Option<EdgeLink> {
        let link = *self.link(edge)?;
        self.connect(link.bundle, link.before, link.behind);
        self.connect_back(link.bundle, link.before, link.behind);
        let bundle = self.bundles.get_mut(link.bundle).or_impossible("an edge has a bundle")?;
        bundle.len -= 1;
        if link.is_marked {
            bundle.marked -= 1;
            if bundle.last_marked == edge {
                bundle.last_marked = link.before;
            }
        }
        Some(link)
    }

    /// What comes behind `edge` is `behind`.
    fn connect(&mut self, bundle: BundleKey, edge: EdgeKey, behind: EdgeKey) {
        if let Some(link) = self.link_mut(edge) {
            link.behind = behind;
        } else if let Some(bundle) = self.bundles.get_mut(bundle) {
            bundle.first = behind;
        }
    }

    /// What comes before `behind` is `edge`.
    fn connect_back(&mut self, bundle: BundleKey, edge: EdgeKey, behind: EdgeKey) {
        if let Some(link) = self.link_mut(behind) {
            link.before = edge;
        } else if let Some(bundle) = self.bundles.get_mut(bundle) {
            bundle.last = edge;
        }
    }

    /// Marks one more edge of a bundle, or one less, towards what is right. Returns whose it is.
    pub fn mark_one(&mut self, key: BundleKey) -> Option<DependentKey> {
        let bundle = self.bundles.get(key).filter(|bundle| !bundle.is_marked_right())?;
        let marked = if bundle.is_of_dead { self.mark_next(key) } else { self.unmark_last(key) };
        marked.or_impossible("a bundle has the edges that it counts")
    }

    /// Marks the first edge of a bundle that isn't marked.
    pub fn mark_next(&mut self, key: BundleKey) -> Option<DependentKey> {
        let bundle = self.bundles.get(key)?;
        let edge = match self.link(bundle.last_marked) {
            Some(link) => link.behind,
            None => bundle.first,
        };
        self.link_mut(edge)?.is_marked = true;
        let (dependent, bundle) =
            (self.dependents.get_mut(edge.dependent)?, self.bundles.get_mut(key)?);
        (dependent.marked, bundle.marked) = (dependent.marked + 1, bundle.marked + 1);
        bundle.last_marked = edge;
        Some(edge.dependent)
    }

    fn unmark_last(&mut self, key: BundleKey) -> Option<DependentKey> {
        let edge = self.bundles.get(key)?.last_marked;
        let link = self.link_mut(edge)?;
        link.is_marked = false;
        let before = link.before;
        let (dependent, bundle) =
            (self.dependents.get_mut(edge.dependent)?, self.bundles.get_mut(key)?);
        (dependent.marked, bundle.marked) = (dependent.marked - 1, bundle.marked - 1);
        bundle.last_marked = before;
        Some(edge.dependent)
    }
}
